import { readEntry } from '../../policy/network/entry.ts';
import { as, type Draft, type NamedHost, narrower, type Outcome, type Part } from './draft.ts';

/** Notes that the source speaks of a host. What becomes of it, `translateHosts` says. */
export function nameHost(
  draft: Draft,
  use: NamedHost['use'],
  part: Part,
  meaning: Omit<NamedHost, keyof Part | 'use'>,
): 'noted' {
  draft.hosts.push({ ...part, use, ...meaning });
  return 'noted';
}

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
  const { hosts, policy } = draft;
  const entries = hosts.map((host) => ({ host, entry: entryOf(host) }));
  const isLost = entries.some(({ host, entry }) => host.use === 'deny' && entry === undefined);
  const off = isLost ? 'something is denied there that cannot be said here' : draft.noHosts;
  const isAllowed = entries.some(({ host, entry }) => host.use === 'allow' && entry !== undefined);
  const isListed = isAllowed && off === undefined;
  if (hosts.length > 0) policy.network.mode = isListed ? 'listed' : 'off';
  for (const { host, entry } of entries) {
    const { use, outcome } = host;
    if (entry !== undefined && isListed) {
      policy.network[use] = [...(policy.network[use] ?? []), entry];
      const isUsual = use === 'allow' && !/:\d+$/.test(entry);
      draft.note(host, outcome ?? (isUsual ? USUAL_PORTS : as(`network.${use} = ["${entry}"]`)));
    } else if (use === 'deny') draft.note(host, as('network.mode = "off"'));
    else draft.note(host, off === undefined ? NO_NAME : narrower(`${off}, so the network is off`, LISTED));
  }
  if (isListed)
    draft.remarks.push(
      'There, a proxy lets hosts through, for programs that use it; here, every program reaches what is listed (docs/network.md).',
      'A name that leads to a private or loopback address is not reached here unless network.allow lists the address, too.',
    );
}

/** A whole name, or all beneath one; `*.com` is none, as there. */
const NAME = /^(?:\*\.(?=[^.]+\.))?[a-z0-9_-]+(?:\.[a-z0-9_-]+)+$/i;

/** As it stands in a policy; `undefined`: it cannot. */
function entryOf({ text, use, port }: NamedHost): string | undefined {
  const [, name = '', own] = /^(.*?)(?::(\d{1,5}))?$/s.exec(text) ?? [];
  const at = port ?? own;
  const entry = at === undefined ? name : `${name}:${at}`;
  const read = readEntry(entry, use);
  if ('problem' in read || (port !== undefined && own !== undefined)) return undefined;
  // What is denied may be an address as well, and every name at a port.
  const isName = NAME.test(name) && read.entry.places.every(({ kind }) => kind === 'name');
  return isName || use === 'deny' ? entry : undefined;
}
