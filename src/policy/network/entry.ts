import ipaddr from 'ipaddr.js';
import { orElse } from '../../base/or-else.ts';
import type { AddressRow, PortRange } from '../../confine/plan/network-rules.ts';

/** What carries what is sent. */
export type Protocol = AddressRow['protocol'];

/** What an entry stands for, apart from its ports. */
type NetworkPlace =
  /** One name, or with `beneath` all names beneath it; the empty name has every name beneath it. */
  | { readonly kind: 'name'; readonly name: string; readonly beneath: boolean }
  /** `bytes` are 16: an IPv4 address is one of ::ffff:0:0/96. */
  | { readonly kind: 'range'; readonly bytes: readonly number[]; readonly bits: number };

/** One entry of `network.allow` or `network.deny`, read. */
export interface NetworkEntry {
  /** As it was written. */
  readonly text: string;
  /** `localhost` is two: its IPv4 and its IPv6 address. */
  readonly places: readonly NetworkPlace[];
  readonly ports: readonly PortRange[];
  /** One that denies and does not say speaks of both. */
  readonly protocols: readonly Protocol[];
  /** What connections have to be, naming a host whose name is listed; `undefined`: the entry does not say. */
  readonly inside: 'tls' | 'http' | undefined;
}

/** An entry, or in a few words what is wrong with it. */
type ReadEntry = { readonly entry: NetworkEntry } | { readonly problem: string };

/** What messages say is allowed. */
const ENTRY_FORMS =
  'a name (api.example.org), *.example.org, an address or a CIDR range (10.0.0.0/8, [2001:db8::1]), each with :PORT or :PORT-PORT if need be, with /udp behind a port, or with /tls or /http';

const EVERY_PORT: PortRange = { first: 1, last: 65_535 };
/** Of an entry that allows and names none, and what is usual there. */
export const USUAL_PORTS: readonly { readonly port: PortRange; readonly inside: 'tls' | 'http' }[] = [
  { port: { first: 443, last: 443 }, inside: 'tls' },
  { port: { first: 80, last: 80 }, inside: 'http' },
];
/** The address of a host's own services, and of nothing else. */
const LOOPBACK = ['127.0.0.1', '::1'] as const;

const MAX_NAME = 253;
/** Names of hosts, and of services (`_dmarc`). The last label is no number: that would be a part of an address. */
const NAME = /^(?:[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?\.)*[a-z](?:[a-z0-9-]{0,61}[a-z0-9])?$/;

/**
 * Reads an entry. One that allows and names no port means 443 and 80, one that denies every port. Pure.
 */
export function readEntry(text: string, kind: 'allow' | 'deny'): ReadEntry {
  if (/^\w+:\/\//.test(text)) return { problem: `it has no scheme and no path; it must be ${ENTRY_FORMS}` };
  const { host, ports: written, suffix } = partsOf(text);
  const ranges = written === undefined ? undefined : portRange(written);
  if (written !== undefined && ranges === undefined)
    return { problem: 'after the colon must stand a port from 1 to 65535, or two with a - between them' };
  const inside = suffix === 'tls' || suffix === 'http' ? suffix : undefined;
  if (inside !== undefined && kind === 'deny')
    return { problem: `what is denied is denied whatever it is; leave /${inside} out` };
  // Nothing is usual there, as 443 and 80 are of TCP.
  if (suffix === 'udp' && ranges === undefined && kind === 'allow')
    return { problem: 'which port? Name it before /udp, as in example.org:443/udp' };
  const protocols = protocolsOf(suffix, kind);
  if (normalName(host) === 'localhost') return ofLocalhost(text, ranges, kind, { inside, protocols });
  const place = rangeOf(host) ?? nameOf(host);
  if (typeof place === 'string') return { problem: place };
  const usual = USUAL_PORTS.filter((one) => (inside ?? one.inside) === one.inside).map(({ port }) => port);
  const ports = ranges ?? (kind === 'allow' ? usual : [EVERY_PORT]);
  return { entry: { text, places: [place], ports, protocols, inside } };
}

function protocolsOf(suffix: string | undefined, kind: 'allow' | 'deny'): readonly Protocol[] {
  if (suffix === 'udp' || suffix === 'tcp') return [suffix];
  return kind === 'deny' ? ['tcp', 'udp'] : ['tcp'];
}

/** An IPv6 address with a port stands in brackets; without them all of it is the address. */
function partsOf(written: string): {
  readonly host: string;
  readonly ports: string | undefined;
  readonly suffix: string | undefined;
} {
  const [, text = '', suffix] = /^(.*?)(?:\/(udp|tcp|tls|http))?$/s.exec(written) ?? [];
  const bracketed = /^\[([^\]]*)\](?::(.*))?$/s.exec(text);
  if (bracketed !== null) return { host: bracketed[1] ?? '', ports: bracketed[2], suffix };
  const [host = '', ports, ...more] = text.split(':');
  return more.length > 0 ? { host: text, ports: undefined, suffix } : { host, ports, suffix };
}

function ofLocalhost(
  text: string,
  ports: readonly PortRange[] | undefined,
  kind: 'allow' | 'deny',
  { inside, protocols }: Pick<NetworkEntry, 'inside' | 'protocols'>,
): ReadEntry {
  if (inside !== undefined)
    return {
      problem: `no connection can name a listed host here, as localhost is none; leave /${inside} out`,
    };
  if (ports === undefined && kind === 'allow')
    return { problem: 'which service of this machine? Name its port, as in localhost:5432' };
  const places = LOOPBACK.map(
    (address): NetworkPlace => ({ kind: 'range', bytes: addressBytes(address) ?? [], bits: 128 }),
  );
  return { entry: { text, places, ports: ports ?? [EVERY_PORT], protocols, inside } };
}

function portRange(text: string): readonly PortRange[] | undefined {
  const match = /^(\d{1,5})(?:-(\d{1,5}))?$/.exec(text);
  if (match === null) return undefined;
  const first = Number(match[1]);
  const last = Number(match[2] ?? match[1]);
  return first >= 1 && first <= last && last <= 65_535 ? [{ first, last }] : undefined;
}

/** `undefined`: it is no address. */
function rangeOf(host: string): NetworkPlace | string | undefined {
  const [address = '', bits, ...more] = host.split('/');
  if (more.length > 0) return `it must be ${ENTRY_FORMS}`;
  const isV4 = ipaddr.IPv4.isValidFourPartDecimal(address);
  // With a zone (fe80::1%eth0) it would mean another interface on each host.
  if (!isV4 && (!address.includes(':') || address.includes('%') || !ipaddr.IPv6.isValid(address)))
    return address.includes(':') || bits !== undefined ? `it must be ${ENTRY_FORMS}` : undefined;
  const most = isV4 ? 32 : 128;
  if (bits !== undefined && !(/^\d{1,3}$/.test(bits) && Number(bits) <= most))
    return `after the slash must stand a number of bits from 0 to ${most}`;
  const bytes = addressBytes(address);
  if (bytes === undefined) return `it must be ${ENTRY_FORMS}`;
  const own = (isV4 ? 96 : 0) + Number(bits ?? most);
  const canonical = bytes.map((byte, at) => byte & maskByte(own, at));
  if (canonical.some((byte, at) => byte !== bytes[at]))
    return `${address} has bits beyond the first ${bits}; the range would be another one than it seems`;
  return { kind: 'range', bytes, bits: own };
}

/** The bits of a byte that belong to the first `bits` of an address. */
export function maskByte(bits: number, at: number): number {
  const inByte = Math.min(8, Math.max(0, bits - 8 * at));
  return (0xff << (8 - inByte)) & 0xff;
}

/** The 16 bytes of an address in its usual form, IPv4 as one of ::ffff:0:0/96; `undefined`: it is none. */
export function addressBytes(address: string): readonly number[] | undefined {
  if (address.includes('%')) return undefined;
  if (ipaddr.IPv4.isValidFourPartDecimal(address))
    return ipaddr.IPv4.parse(address).toIPv4MappedAddress().toByteArray();
  if (!address.includes(':') || !ipaddr.IPv6.isValid(address)) return undefined;
  return ipaddr.IPv6.parse(address).toByteArray();
}

function nameOf(host: string): NetworkPlace | string {
  if (host === '*') return { kind: 'name', name: '', beneath: true };
  const beneath = host.startsWith('*.');
  const written = beneath ? host.slice(2) : host;
  if (written.includes('*')) return 'a * stands for whole names only, at the beginning: *.example.org';
  const name = normalName(written);
  return name === undefined ? `it must be ${ENTRY_FORMS}` : { kind: 'name', name, beneath };
}

/**
 * A name as DNS compares it: in small letters, without the dot at its end, and in ASCII (IDNA). `undefined`: it is none
 * that a host can have, or an address in whatever form.
 */
export function normalName(written: string): string | undefined {
  const name = toAscii(written.replace(/\.$/, ''))?.toLowerCase();
  return name !== undefined && name.length <= MAX_NAME && NAME.test(name) ? name : undefined;
}

function toAscii(name: string): string | undefined {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: what is in ASCII stays as it is
  if (/^[\x00-\x7f]*$/.test(name)) return name;
  // What separates the parts of an address has no place in a name, and neither has what is written as %41.
  if (/[\s/?#@:%[\]\\]/.test(name)) return undefined;
  return orElse(() => new URL(`http://${name}/`).hostname, undefined);
}
