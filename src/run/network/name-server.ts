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
import type { NameLookup } from '../../model/gate-ports.ts';
import type { AddressRow, NetworkRules } from '../../model/network.ts';
import { addressBytes, normalName } from '../../policy/network/entry.ts';
import { judgeName, mayLeadTo } from '../../policy/network/rules.ts';

/** What was said to a question. */
export interface AskedName {
  readonly name: string;
  readonly allowed: boolean;
  /** The entry of the policy that decided; `undefined`: none speaks of it. */
  readonly rule: string | undefined;
  /** An address that it leads to and may not: then it leads nowhere. */
  readonly apart: string | undefined;
}

/** What a name server needs of others. */
interface NameServerPorts {
  readonly lookup: NameLookup;
  /** Lets connections through to what a name stands for, for so long. */
  readonly allow: (rows: readonly AddressRow[], lifetimeMs: number) => void;
}

/** Codes of answers (RFC 1035, 4.1.1). */
const FORMAT_ERROR = 1;
const SERVER_FAILURE = 2;
const NO_SUCH_NAME = 3;
/** Programs that were told of an address may use it for a while: those that keep it longer than they should, too. */
const LEAST_LIFETIME_MS = 300_000;
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

/**
 * Answers what commands ask of names: those that are listed have addresses, all others do not exist, so that nothing is
 * told to anybody by asking. Where a name leads is connected to because of the name.
 */
export class NameServer {
  readonly #rules: NetworkRules;
  readonly #ports: NameServerPorts;
  /** Until when what was found is good, in milliseconds of `performance.now()`. */
  readonly #known = new Map<string, { readonly until: number; readonly found: Promise<Found> }>();
  readonly #names = new Map<string, string>();

  constructor(rules: NetworkRules, ports: NameServerPorts) {
    this.#rules = rules;
    this.#ports = ports;
  }

  /** The name by which an address was found; `undefined`: it was not asked for. */
  nameOf(address: string): string | undefined {
    return this.#names.get(address);
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
    if (!allowed) return { addresses: [], ttl: 0, asked: { name, allowed, rule, apart: undefined } };
    const { addresses: all, ttl } = await this.#ports.lookup(name);
    const usual = [...new Set(all)].slice(0, MOST_ADDRESSES).flatMap((address) => {
      const bytes = addressBytes(address);
      return bytes === undefined ? [] : [{ address: textOf(bytes), bytes }];
    });
    const usable = usual.filter(({ bytes }) => mayLeadTo(this.#rules.addresses, bytes));
    const apart = usable.length === 0 ? usual[0]?.address : undefined;
    for (const { address } of usable) {
      forgetOldest(this.#names);
      this.#names.set(address, name);
    }
    const rows = usable.flatMap(({ bytes }) =>
      ports.map(({ first, last, rule: entry, inside }) => ({
        ...{ bytes, bits: EVERY_BIT, first, last, verdict: 'allow' as const, inside, rule: entry },
      })),
    );
    const seconds = Math.min(Math.max(0, Math.floor(ttl)), LONGEST_TTL);
    this.#ports.allow(rows, Math.max(seconds * 1000, LEAST_LIFETIME_MS));
    return {
      addresses: usable.map(({ address }) => address),
      ttl: seconds,
      asked: { name, allowed: apart === undefined, rule, apart },
    };
  }
}

/** A command may ask for as many names as it likes. */
function forgetOldest(map: Map<string, unknown>): void {
  if (map.size < MOST_KNOWN) return;
  for (const oldest of map.keys()) {
    map.delete(oldest);
    return;
  }
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
