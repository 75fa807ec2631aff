import { readEntry } from '../../policy/index.ts';
import { as, type Draft, type NamedHost, narrower, type Outcome } from './draft.ts';

/** Denies every host. */
export function denyHosts(draft: Draft, why: string): Outcome {
  draft.noHosts = why;
  return as('network.mode = "off"');
}

const LISTED = 'network.mode = "listed" with network.allow';
/** Hosts that commands may reach there, or somebody is asked about, and that are not taken over. */
export const NO_HOSTS = narrower('it names no host that could be listed here', LISTED);
/** What a source means by an address or a pattern differs too much. */
const NO_NAME = narrower('only names and *.NAME are taken over, with a port if need be', LISTED);
const USUAL_PORTS = narrower('it can be reached at the ports 443 and 80 only', 'NAME:PORT in network.allow');

/**
 * Makes a list of hosts of what the source says of them, once all is known: a denial that cannot be said leaves the network
 * off, and so does whatever else there decides about requests.
 */
export function translateHosts(draft: Draft): void {
  const { hosts, noHosts, policy } = draft;
  const known = new Set(hosts.filter(isKnown));
  const isLost = hosts.some((host) => host.use === 'deny' && !known.has(host));
  const off = isLost ? 'something is denied there that cannot be said here' : noHosts;
  const isListed = off === undefined && [...known].some(({ use }) => use === 'allow');
  if (hosts.length > 0) policy.network.mode = isListed ? 'listed' : 'off';
  for (const host of hosts) {
    const { use, text, outcome } = host;
    if (isListed && known.has(host)) {
      policy.network[use] = [...(policy.network[use] ?? []), text];
      const isUsual = use === 'allow' && !PORT.test(text);
      draft.note(host, outcome ?? (isUsual ? USUAL_PORTS : as(`network.${use} = ["${text}"]`)));
    } else if (use === 'deny') draft.note(host, as('network.mode = "off"'));
    else draft.note(host, off === undefined ? NO_NAME : narrower(`${off}, so the network is off`, LISTED));
  }
  if (isListed)
    draft.remarks.push(
      'There, a proxy lets hosts through, for programs that use it; here, every program reaches what is listed (docs/network.md).',
      'A name that leads to a private or loopback address is not reached here unless network.allow lists the address, too.',
    );
}

const PORT = /:\d{1,5}$/;
/** A whole name, or all beneath one; `*.com` is none, as there. */
const NAME = /^(?:\*\.(?=[^.]+\.))?[a-z0-9_-]+(?:\.[a-z0-9_-]+)+$/i;

/** Whether it can stand in a policy. What is denied may be an address as well, and every name at a port. */
function isKnown({ text, use }: NamedHost): boolean {
  const read = readEntry(text, use);
  if ('problem' in read || use === 'deny') return !('problem' in read);
  return NAME.test(text.replace(PORT, '')) && read.entry.places.every(({ kind }) => kind === 'name');
}
