import { readEntry } from '../../policy/network/entry.ts';
import { as, type Draft, type HostUse, narrower, type Outcome, type Part } from './draft.ts';

/** A whole name, or all beneath one; `*.com` is none, as there. */
const NAME = /^(?:\*\.(?=[^.]+\.))?[a-z0-9_-]+(?:\.[a-z0-9_-]+)+$/i;

/** How the source names a host, apart from the name. */
interface HostMeaning {
  readonly text: string;
  /** The only port that it is about; `undefined`: every one, unless the text has one. */
  readonly port?: number;
  /** What else is to be said of it. */
  readonly outcome?: Outcome;
}

/** Notes that the source speaks of a host. What becomes of it, `translateHosts` says. */
export function nameHost(draft: Draft, use: HostUse, part: Part, meaning: HostMeaning): 'noted' {
  draft.hosts.push({ ...part, use, ...meaning });
  return 'noted';
}

const NOT_LISTED = 'list the hosts that commands need in network.allow, with network.mode = "listed"';

/** That name alone is taken over: what a source means by an address or a pattern differs too much. */
const NO_NAME = narrower('only names and *.NAME are taken over, with a port if need be', NOT_LISTED);

/** A name that is reached at every port there. */
const USUAL_PORTS = narrower(
  'it is in network.allow, at the ports 443 and 80, and there at every one',
  'write other ports behind the name in network.allow',
);

/**
 * Makes a list of hosts of what the source says of them, once all is known: a denial that cannot be said leaves the network
 * off, and so does whatever else there decides about requests.
 */
export function translateHosts(draft: Draft): void {
  const { hosts, policy } = draft;
  const entries = hosts.map((host) => ({ host, entry: entryOf(host) }));
  const isLost = entries.some(({ host, entry }) => host.use === 'deny' && entry === undefined);
  const reason = isLost ? 'something is denied there that cannot be said here' : draft.noHosts;
  const allowed = entries.some(({ host, entry }) => host.use === 'allow' && entry !== undefined);
  const isListed = allowed && reason === undefined;
  if (hosts.length > 0) policy.network.mode = isListed ? 'listed' : 'off';
  for (const { host, entry } of entries) {
    if (entry !== undefined && isListed) {
      policy.network[host.use] = [...(policy.network[host.use] ?? []), entry];
      draft.note(host, host.outcome ?? outcomeOf(host, entry));
    } else if (host.use === 'deny') {
      draft.note(host, as('network.mode = "off"'));
    } else {
      const off = reason === undefined ? undefined : narrower(`${reason}, so the network is off`, NOT_LISTED);
      draft.note(host, off ?? NO_NAME);
    }
  }
  if (isListed)
    draft.remarks.push(
      'There, a proxy lets hosts through, for programs that use it; here, every program reaches what is listed (docs/network.md).',
      'A name that leads to a private or loopback address is not reached here unless network.allow lists the address, too.',
    );
}

const outcomeOf = ({ use }: { readonly use: HostUse }, entry: string): Outcome =>
  use === 'allow' && !/:\d+$/.test(entry) ? USUAL_PORTS : as(`network.${use} = ["${entry}"]`);

/** As it stands in a policy; `undefined`: it cannot. */
function entryOf({ text, use, port }: HostMeaning & { readonly use: HostUse }): string | undefined {
  const [, name = '', own] = /^(.*?)(?::(\d{1,5}))?$/s.exec(text) ?? [];
  const at = port ?? own;
  const entry = at === undefined ? name : `${name}:${at}`;
  const read = readEntry(entry, use);
  if ('problem' in read || (port !== undefined && own !== undefined)) return undefined;
  // What is denied may be an address as well, and every name at a port.
  const isName = NAME.test(name) && read.entry.places.every(({ kind }) => kind === 'name');
  return isName || use === 'deny' ? entry : undefined;
}
