import ipaddr from 'ipaddr.js';
import { NOT_LOOKED_INTO } from '../../base/words.ts';
import type { AddressRow, NameRow, NetworkRules, PortRange } from '../../confine/plan/network-rules.ts';
import {
  addressBytes,
  maskByte,
  type NetworkEntry,
  normalName,
  type Protocol,
  USUAL_PORTS,
} from './entry.ts';

/** QUIC, which cannot be inspected as `network.verify` demands. */
const QUIC: readonly PortRange[] = [{ first: 443, last: 443 }];

/** What rules say of an address or a name; `rule` undefined: none speaks of it, and so it is refused. */
interface NetworkVerdict {
  readonly allowed: boolean;
  readonly rule: string | undefined;
}

/**
 * Ranges of which only a rule speaks that lies in them: no list of all addresses opens the services of this machine, the
 * metadata of a cloud, or an IPv4 address in another coat. IPv4 is such a range of IPv6 itself.
 */
const APART: readonly { readonly range: string; readonly what: string }[] = [
  { range: '::ffff:0:0/96', what: 'IPv4' },
  { range: '127.0.0.0/8', what: 'this machine' },
  { range: '::1/128', what: 'this machine' },
  { range: '0.0.0.0/8', what: 'this network, which Linux takes for this machine' },
  { range: '::/128', what: 'no address, which Linux takes for this machine' },
  { range: '169.254.0.0/16', what: 'this link, and the metadata of clouds' },
  { range: 'fe80::/10', what: 'this link' },
  { range: 'fd00:ec2::/32', what: 'metadata of a cloud' },
  { range: '224.0.0.0/4', what: 'groups of hosts' },
  { range: '240.0.0.0/4', what: 'reserved, with the broadcast address' },
  { range: 'ff00::/8', what: 'groups of hosts' },
  { range: '::/96', what: 'IPv4 in IPv6, outdated' },
  { range: '::ffff:0:0:0/96', what: 'IPv4 in IPv6, translated (RFC 2765)' },
  { range: '64:ff9b::/96', what: 'IPv4 in IPv6 (RFC 6052)' },
  { range: '64:ff9b:1::/48', what: 'IPv4 in IPv6 (RFC 8215)' },
  { range: '2002::/16', what: 'IPv4 in IPv6 (6to4)' },
  { range: '2001::/32', what: 'IPv4 in IPv6 (Teredo)' },
];

let ranges: NetworkRules['apart'] | undefined;
/** The ranges of {@link APART} as numbers. Made on first use: most policies list no network, and it takes 4 ms. */
const apartRanges = (): NetworkRules['apart'] =>
  (ranges ??= APART.map(({ range }) => {
    const [address = '', bits] = range.split('/');
    return { bytes: addressBytes(address) ?? [], bits: Number(bits) + (address.includes('.') ? 96 : 0) };
  }));

/**
 * 240.0.0.0/8: reserved, so that no host has one of them (RFC 1112, 4), and programs connect to them as to any other. That
 * many that none has to be given to two names.
 */
const PLACEHOLDERS = { bytes: addressBytes('240.0.0.0') ?? [], bits: 96 + 8 };

/** Whether it is one that stands for a name. Pure. */
export function isPlaceholder(bytes: readonly number[]): boolean {
  return isWithin(bytes, PLACEHOLDERS.bytes, PLACEHOLDERS.bits);
}

/**
 * The rules of a policy in the form in which they are looked at. `asks`: somebody is asked about what none speaks of.
 * `verify`: whether connections to names have to be what is usual at the usual ports, naming a host that may be reached. Pure.
 */
export function networkRules(
  allow: readonly NetworkEntry[],
  deny: readonly NetworkEntry[],
  {
    asks = false,
    verify = 'none',
  }: { readonly asks?: boolean; readonly verify?: NetworkRules['verify'] } = {},
): NetworkRules {
  const addresses: AddressRow[] = [];
  const names: NameRow[] = [];
  for (const [verdict, entries] of [['deny', deny] as const, ['allow', allow] as const]) {
    for (const { entry, place, protocol } of partsOf(entries)) {
      const { text: rule, ports, inside } = entry;
      if (place.kind === 'name') {
        const { name, beneath } = place;
        const isSplit = verdict === 'allow' && verify === 'sni' && inside === undefined && protocol === 'tcp';
        const parts = isSplit ? byWhatIsUsual(ports) : [{ ports, inside }];
        names.push(...parts.map((part) => ({ name, beneath, ...part, protocol, verdict, rule })));
        if (verdict === 'allow' && verify === 'sni' && protocol === 'udp')
          names.push({
            name,
            beneath,
            ports: QUIC,
            inside: undefined,
            protocol,
            verdict: 'deny',
            rule: NOT_LOOKED_INTO,
          });
      } else {
        const { bytes, bits } = place;
        addresses.push(...ports.map((range) => ({ ...range, bytes, bits, protocol, verdict, rule, inside })));
      }
    }
  }
  return {
    addresses,
    names,
    apart: apartRanges(),
    looksInside:
      (asks && verify === 'sni') || [...names, ...addresses].some(({ inside }) => inside !== undefined),
    verify,
    ...(asks ? { placeholders: PLACEHOLDERS } : {}),
  };
}

/** What entries say of each place and protocol. */
function partsOf(entries: readonly NetworkEntry[]) {
  return entries.flatMap((entry) =>
    entry.places.flatMap((place) => entry.protocols.map((protocol) => ({ entry, place, protocol }))),
  );
}

/** What a connection to a name that somebody has allowed has to be; `undefined`: anything. Pure. */
export function insideOfApproved({ verify }: NetworkRules, port: number): NameRow['inside'] {
  return verify === 'sni' ? USUAL_PORTS.find((usual) => isAmong(port, usual.port))?.inside : undefined;
}

/** The usual ports among some, each by itself, and the others. */
function byWhatIsUsual(ports: readonly PortRange[]): readonly Pick<NameRow, 'ports' | 'inside'>[] {
  const usual = USUAL_PORTS.filter(({ port }) => ports.some((range) => isAmong(port.first, range))).map(
    ({ port, inside }) => ({ ports: [port], inside }),
  );
  const others = ports.flatMap((range) =>
    withoutPorts(
      range,
      USUAL_PORTS.map(({ port }) => port),
    ),
  );
  return others.length === 0 ? usual : [...usual, { ports: [...others], inside: undefined }];
}

function isAmong(port: number, { first, last }: PortRange): boolean {
  return first <= port && port <= last;
}

/** Whether the first `bits` of two addresses are the same. */
function isWithin(bytes: readonly number[], range: readonly number[], bits: number): boolean {
  return bytes.every((byte, at) => ((byte ^ (range[at] ?? 0)) & maskByte(bits, at)) === 0);
}

/** What rules say of an address at a port, and what a connection there has to be (`undefined`: anything). */
interface AddressVerdict extends NetworkVerdict {
  readonly inside: AddressRow['inside'];
}

/**
 * What rules for addresses say of one. A rule that denies is stronger than all that allow; of these, one that allows anything
 * is stronger than one that wants a look. Pure.
 */
export function judgeAddress(
  rows: readonly AddressRow[],
  bytes: readonly number[],
  port: number,
  protocol: Protocol = 'tcp',
): AddressVerdict {
  const leastBits = Math.max(
    0,
    ...apartRanges()
      .filter((range) => isWithin(bytes, range.bytes, range.bits))
      .map(({ bits }) => bits),
  );
  const speaking = rows.filter(
    (row) => row.protocol === protocol && isAmong(port, row) && isWithin(bytes, row.bytes, row.bits),
  );
  const allowing = speaking.filter(({ bits }) => bits >= leastBits);
  const row =
    speaking.find(({ verdict }) => verdict === 'deny') ??
    allowing.find(({ inside }) => inside === undefined) ??
    allowing[0];
  return { allowed: row?.verdict === 'allow', rule: row?.rule, inside: row?.inside };
}

/** What is known of a name. */
interface NameVerdict extends NetworkVerdict {
  /** To be reached at the addresses of the name. */
  readonly ports: readonly (PortRange & Pick<NameRow, 'rule' | 'inside' | 'protocol'>)[];
}

/** What rules say of a name that `normalName` gave. One that is denied at every port is not looked up. Pure. */
export function judgeName(rows: readonly NameRow[], name: string): NameVerdict {
  const speaking = rows.filter((row) => covers(row, name));
  const denied = speaking.filter(({ verdict }) => verdict === 'deny');
  const ports = speaking
    .filter(({ verdict }) => verdict === 'allow')
    .flatMap(({ ports: ranges, ...row }) => ranges.map((range) => ({ ...row, ...range })))
    .flatMap(({ first, last, protocol, rule, inside }) =>
      withoutPorts(
        { first, last, protocol, rule, inside },
        denied.filter((row) => row.protocol === protocol).flatMap((row) => row.ports),
      ),
    );
  const rule = ports[0]?.rule ?? denied[0]?.rule;
  return { allowed: ports.length > 0, rule, ports };
}

/** What rules say of the host that a connection to a port itself asks for, whatever led there. Pure. */
export function judgeHost(
  rows: readonly NameRow[],
  host: string,
  port: number,
  protocol: Protocol = 'tcp',
): NetworkVerdict {
  const name = normalName(host);
  if (name === undefined) return { allowed: false, rule: undefined };
  const speaking = rows.filter((row) => speaksOf(row, name, port, protocol));
  const row = speaking.find(({ verdict }) => verdict === 'deny') ?? speaking[0];
  return { allowed: row?.verdict === 'allow', rule: row?.rule };
}

/** What of a range of ports is left without others. */
function withoutPorts<Range extends PortRange>(range: Range, denied: readonly PortRange[]): readonly Range[] {
  return denied.reduce<readonly Range[]>(
    (left, { first, last }) =>
      left.flatMap((part) =>
        [
          { ...part, last: Math.min(part.last, first - 1) },
          { ...part, first: Math.max(part.first, last + 1) },
        ].filter((rest) => rest.first <= rest.last),
      ),
    [range],
  );
}

function covers(row: NameRow, name: string): boolean {
  if (!row.beneath) return row.name === name;
  return row.name === '' || name.endsWith(`.${row.name}`);
}

function speaksOf(row: NameRow, name: string, port: number, protocol: Protocol): boolean {
  return row.protocol === protocol && covers(row, name) && row.ports.some((range) => isAmong(port, range));
}

/** The rule that denies a name at a port; `undefined`: none. Pure. */
export function denialOf(
  rows: readonly NameRow[],
  name: string,
  port: number,
  protocol: Protocol = 'tcp',
): string | undefined {
  return rows.find((row) => row.verdict === 'deny' && speaksOf(row, name, port, protocol))?.rule;
}

/** Whether `network.deny` speaks of a name at every port of TCP. Pure. */
export function isNameDenied(rows: readonly NameRow[], name: string): boolean {
  const denied = rows
    .filter((row) => row.verdict === 'deny' && row.protocol === 'tcp' && covers(row, name))
    .flatMap((row) => row.ports);
  return withoutPorts({ first: 1, last: 65_535 }, denied).length === 0;
}

/**
 * Whether somebody may be asked about an address, or lead a connection there that was allowed by name: it is one of the
 * public network that nothing denies, or an entry allows just that. Otherwise a name could be made to lead into the user's
 * own network once there is an answer. Pure.
 */
export function mayBeAskedAbout(
  rows: readonly AddressRow[],
  bytes: readonly number[],
  port: number,
  isOpen: IsOpen = isPublic,
): boolean {
  const { allowed, rule } = judgeAddress(rows, bytes, port);
  return allowed || (rule === undefined && isOpen(bytes));
}

/**
 * Whether commands are told that a name leads to an address: it is a public one, or some rule of the same protocol allows the
 * address itself. Whether it opens ports there, {@link isPublic} says. Pure.
 */
export function mayLeadTo(
  rows: readonly AddressRow[],
  bytes: readonly number[],
  protocol: Protocol = 'tcp',
  isOpen: IsOpen = isPublic,
): boolean {
  if (isOpen(bytes)) return true;
  const here = rows.filter((row) => row.protocol === protocol && isWithin(bytes, row.bytes, row.bits));
  const denied = here.filter(({ verdict }) => verdict === 'deny');
  return here.some(
    (row) =>
      row.verdict === 'allow' &&
      withoutPorts(row, denied).some(({ first }) => judgeAddress(rows, bytes, first, protocol).allowed),
  );
}

/** Whether names may open an address: it is public, and none of this machine's own. */
export type IsOpen = (bytes: readonly number[]) => boolean;

/**
 * Whether it is an address that anybody's host may have. A name opens its ports at such addresses only: at others each port
 * needs an entry for the address itself, because whoever owns the name says where it leads. Pure.
 */
export function isPublic(bytes: readonly number[]): boolean {
  const address = ipaddr.fromByteArray([...bytes]);
  if (address instanceof ipaddr.IPv6 && address.isIPv4MappedAddress())
    return address.toIPv4Address().range() === 'unicast';
  return (
    address.range() === 'unicast' &&
    !apartRanges()
      .slice(1)
      .some((r) => isWithin(bytes, r.bytes, r.bits))
  );
}
