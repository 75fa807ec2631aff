import {
  type Answer,
  AUTHORITATIVE_ANSWER,
  decode,
  encode,
  type Packet,
  RECURSION_AVAILABLE,
  RECURSION_DESIRED,
} from 'dns-packet';
import ipaddr from 'ipaddr.js';
import type { AddressRow, NetworkRules } from '../../confine/plan/network-rules.ts';
import type { NameLookup } from '../../model/index.ts';
import {
  addressBytes,
  type IsOpen,
  isNameDenied,
  isPublic,
  judgeName,
  mayBeAskedAbout,
  mayLeadTo,
  normalName,
} from '../../policy/index.ts';

/** What was said to a question. */
export interface AskedName {
  readonly name: string;
  readonly allowed: boolean;
  /** The entry of the policy that decided; `undefined`: none speaks of it. */
  readonly rule: string | undefined;
  /** An address that it leads to and may not: then it leads nowhere. */
  readonly apart: string | undefined;
  /** It is listed, and nobody outside knows an address of it either. */
  readonly unknown?: true;
}

/** What a name server needs of others. */
interface NameServerPorts {
  readonly lookup: NameLookup;
  /** Lets connections through to what a name stands for, for so long. */
  readonly allow: (rows: readonly AddressRow[], lifetimeMs: number) => void;
  /** The addresses of this machine's own interfaces, as they are written. */
  readonly ownAddresses?: () => readonly string[];
  /** Domains in which programs look for names that are not whole, as this machine is set up. */
  readonly searched?: readonly string[];
}

/** Codes of answers (RFC 1035, 4.1.1). */
const FORMAT_ERROR = 1;
const SERVER_FAILURE = 2;
const NO_SUCH_NAME = 3;
/** Programs that were told of an address may use it for a while: those that keep it longer than they should, too. */
const LEAST_LIFETIME_MS = 300_000;
/** Of an address that stands for a name. */
const PLACEHOLDER_TTL = 60;
/** Nobody is told that an address is good for longer than a day. */
const LONGEST_TTL = 86_400;
/** More would not fit into an answer. */
const MOST_ADDRESSES = 16;
const EVERY_BIT = 128;
/** Names, and addresses with their names. */
const MOST_KNOWN = 4096;
const LOOPBACK = { A: '127.0.0.1', AAAA: '::1' } as const;

/** The addresses of a name that the policy lets commands know. */
interface Found {
  readonly addresses: readonly string[];
  readonly ttl: number;
  readonly asked: AskedName;
}

/** Where a name leads to that somebody has allowed. */
interface Led {
  /** `undefined`: nowhere. */
  readonly bytes: readonly number[] | undefined;
  /** An address that it leads to and may not. */
  readonly apart: string | undefined;
}

/** How many of them there are. */
const MOST_PLACEHOLDERS = 2 ** 24;

/**
 * Answers what commands ask of names: those that are listed have addresses, all others do not exist, so that nothing is
 * told to anybody by asking. Where a name leads is connected to because of the name.
 *
 * Where somebody is asked about what is not listed, those others have an address that stands for them, and are looked up only
 * once there is a connection to it, and the answer to that. So the question names the port, and the name is told to nobody
 * before.
 */
export class NameServer {
  readonly #rules: NetworkRules;
  readonly #ports: NameServerPorts;
  /** Until when what was found is good, in milliseconds of `performance.now()`. */
  readonly #known = new Map<string, { readonly until: number; readonly found: Promise<Found> }>();
  readonly #names = new Map<string, string>();
  /** What stands for names that are not listed, and back. None is ever given to another name. */
  readonly #placeholders = new Map<string, string>();
  readonly #placed = new Map<string, string>();
  #lastPlaceholder = 0;

  constructor(rules: NetworkRules, ports: NameServerPorts) {
    this.#rules = rules;
    this.#ports = ports;
  }

  /**
   * Says of addresses whether a name may open them. A public address of this machine's own leads to its services past every
   * firewall, so it counts as this machine.
   */
  openAddresses(): IsOpen {
    const own = new Set(
      (this.#ports.ownAddresses?.() ?? []).map(addressBytes).map((bytes) => bytes && textOf(bytes)),
    );
    return (bytes) => isPublic(bytes) && !own.has(textOf(bytes));
  }

  /** The name by which an address was found; `undefined`: it was not asked for. */
  nameOf(address: string): string | undefined {
    return this.#names.get(address);
  }

  /** The name that an address stands for; `undefined`: for none, or it is forgotten. */
  standsFor(address: string): string | undefined {
    return this.#placed.get(address);
  }

  /** Looks up a name that somebody has allowed to be reached at a port. Rejects if that fails. */
  async lead(name: string, port: number): Promise<Led> {
    const { addresses } = await this.#ports.lookup(name);
    const all = addresses
      .slice(0, MOST_ADDRESSES)
      .map(addressBytes)
      .filter((bytes) => bytes !== undefined);
    const isOpen = this.openAddresses();
    const usable = all.filter((bytes) => mayBeAskedAbout(this.#rules.addresses, bytes, port, isOpen));
    // What stands for a name is an IPv4 address, and so are most sockets that are connected to it.
    const bytes = usable.find((one) => textOf(one).includes('.')) ?? usable[0];
    if (bytes !== undefined) {
      forgetOldest(this.#names);
      this.#names.set(textOf(bytes), name);
    }
    const [first] = all;
    return { bytes, apart: bytes === undefined && first !== undefined ? textOf(first) : undefined };
  }

  /** Answers a message, whatever it is; `undefined`: there is nothing to answer. `onAsked` is told what was asked for. */
  async answer(message: Buffer, onAsked: (asked: AskedName) => void): Promise<Buffer | undefined> {
    const query = readQuery(message);
    if (query === undefined) return undefined;
    const [question, ...more] = query.questions ?? [];
    if (question === undefined || more.length > 0 || query.opcode !== 'QUERY')
      return reply(query, FORMAT_ERROR);
    const name = normalName(question.name);
    if (name === undefined) return reply(query, NO_SUCH_NAME);
    const { type } = question;
    if (name === 'localhost') {
      const data = type === 'A' || type === 'AAAA' ? LOOPBACK[type] : undefined;
      return reply(
        query,
        0,
        data === undefined ? [] : [{ type, name: question.name, ttl: 0, data } as Answer],
      );
    }
    try {
      const { addresses, ttl, asked } = await this.#find(name);
      onAsked(asked);
      if (!asked.allowed || addresses.length === 0) return reply(query, NO_SUCH_NAME);
      const wanted = addresses.filter((address) => (address.includes(':') ? 'AAAA' : 'A') === type);
      const answers = wanted.map((data) => ({ type, name: question.name, ttl, data }) as Answer);
      return reply(query, 0, answers);
    } catch {
      // A name server that cannot be reached is not one that knows no such name.
      return reply(query, SERVER_FAILURE);
    }
  }

  /** `undefined`: nobody is asked about it. */
  #placeholderOf(name: string): string | undefined {
    const { names, placeholders } = this.#rules;
    if (placeholders === undefined || isNameDenied(names, name) || this.#isCompleted(name)) return undefined;
    const known = this.#placeholders.get(name);
    if (known !== undefined || this.#lastPlaceholder + 1 >= MOST_PLACEHOLDERS) return known;
    this.#lastPlaceholder += 1;
    const address = placeholder(this.#lastPlaceholder);
    const forgotten = forgetOldest(this.#placeholders);
    if (forgotten !== undefined) this.#placed.delete(forgotten);
    this.#placeholders.set(name, address);
    this.#placed.set(address, name);
    return address;
  }

  /**
   * Whether a program has added a domain to what looks like a whole name: it asks for the name itself next, and that is what
   * somebody would be asked about. In a container of Kubernetes every name is asked for so at first (ndots:5).
   */
  #isCompleted(name: string): boolean {
    return (this.#ports.searched ?? []).some(
      (domain) => name.endsWith(`.${domain}`) && name.slice(0, -domain.length - 1).includes('.'),
    );
  }

  #find(name: string): Promise<Found> {
    const known = this.#known.get(name);
    if (known !== undefined && performance.now() < known.until) return known.found;
    const found = this.#look(name);
    forgetOldest(this.#known);
    // Those who ask meanwhile wait for the same answer.
    this.#known.set(name, { found, until: Number.POSITIVE_INFINITY });
    found.then(
      ({ ttl }) => this.#known.set(name, { found, until: performance.now() + ttl * 1000 }),
      () => this.#known.delete(name),
    );
    return found;
  }

  async #look(name: string): Promise<Found> {
    const { allowed, rule, ports } = judgeName(this.#rules.names, name);
    const standIn = allowed ? undefined : this.#placeholderOf(name);
    if (standIn !== undefined)
      return {
        ...{ addresses: [standIn], ttl: PLACEHOLDER_TTL },
        asked: { name, allowed: true, rule: undefined, apart: undefined },
      };
    if (!allowed) return { addresses: [], ttl: 0, asked: { name, allowed, rule, apart: undefined } };
    const { addresses: all, ttl } = await this.#ports.lookup(name);
    const read = all.map(addressBytes).filter((bytes) => bytes !== undefined);
    const usual = [...new Map(read.map((bytes) => [textOf(bytes), bytes]))]
      .slice(0, MOST_ADDRESSES)
      .map(([address, bytes]) => ({ address, bytes }));
    const isOpen = this.openAddresses();
    const usable = usual.filter(({ bytes }) =>
      ports.some(({ protocol }) => mayLeadTo(this.#rules.addresses, bytes, protocol, isOpen)),
    );
    const apart = usable.length === 0 ? usual[0]?.address : undefined;
    for (const { address } of usable) {
      forgetOldest(this.#names);
      this.#names.set(address, name);
    }
    // In the user's own network, and on this machine, a name opens nothing: the entries for the address itself say which ports are open there.
    const rows = usable
      .filter(({ bytes }) => isOpen(bytes))
      .flatMap(({ bytes }) =>
        ports.map((range) => ({ ...range, bytes, bits: EVERY_BIT, verdict: 'allow' as const })),
      );
    const seconds = Math.min(Math.max(0, Math.floor(ttl)), LONGEST_TTL);
    this.#ports.allow(rows, Math.max(seconds * 1000, LEAST_LIFETIME_MS));
    return {
      addresses: usable.map(({ address }) => address),
      ttl: seconds,
      asked: {
        ...{ name, allowed: apart === undefined, rule, apart },
        ...(usual.length === 0 ? { unknown: true } : {}),
      },
    };
  }
}

/** The address that stands for a name, by its number. Pure. */
function placeholder(number: number): string {
  return `240.${(number >> 16) & 0xff}.${(number >> 8) & 0xff}.${number & 0xff}`;
}

/** A command may ask for as many names as it likes. */
function forgetOldest<Value>(map: Map<string, Value>): Value | undefined {
  if (map.size < MOST_KNOWN) return undefined;
  for (const [oldest, value] of map) {
    map.delete(oldest);
    return value;
  }
  return undefined;
}

/** `undefined`: it is no question, or nothing that a message could be. */
function readQuery(message: Buffer): (Packet & { readonly opcode?: string }) | undefined {
  try {
    const query = decode(message);
    return query.type === 'query' ? query : undefined;
  } catch {
    return undefined;
  }
}

function reply(query: Packet, code: number, answers: Answer[] = []): Buffer {
  const flags = (query.flags ?? 0) & RECURSION_DESIRED;
  const wantsMore = query.additionals?.some(({ type }) => type === 'OPT') === true;
  return encode({
    type: 'response',
    id: query.id ?? 0,
    flags: flags | RECURSION_AVAILABLE | AUTHORITATIVE_ANSWER | code,
    questions: query.questions ?? [],
    answers,
    additionals: wantsMore
      ? [
          {
            type: 'OPT',
            name: '.',
            udpPayloadSize: 4096,
            extendedRcode: 0,
            ednsVersion: 0,
            flags: 0,
            flag_do: false,
            options: [],
          },
        ]
      : [],
  });
}

/** An address as it is written. */
export function textOf(bytes: readonly number[]): string {
  const address = ipaddr.fromByteArray([...bytes]);
  if (address instanceof ipaddr.IPv6)
    return address.isIPv4MappedAddress() ? address.toIPv4Address().toString() : address.toRFC5952String();
  return address.toString();
}
