import { lookup, Resolver } from 'node:dns';
import { readFileSync } from 'node:fs';
import { networkInterfaces } from 'node:os';
import { assertNever } from '../../base/assert-never.ts';
import { errnoOf } from '../../base/errno-of.ts';
import { hostAndPort } from '../../base/host-and-port.ts';
import { orElse } from '../../base/or-else.ts';
import { visibleLine } from '../../base/visible-text.ts';
import { nativeRow } from '../../confine/backends/confinement-spec.ts';
import { errnoName } from '../../confine/kernel/errno.ts';
import type { NativeAddon, NativeConfinement, NativeEffects } from '../../confine/native/contract.ts';
import type { NetworkRules } from '../../confine/plan/network-rules.ts';
import type { AskConnection } from '../../gate/index.ts';
import type { Connection, NameLookup } from '../../model/index.ts';
import { denialOf, judgeHost, normalName } from '../../policy/index.ts';
import { ConnectionQuestions } from './connection-questions.ts';
import { type AskedName, NameServer, textOf } from './name-server.ts';
import type {
  NativeConnection,
  NativeConnectionAsked,
  NativeHostAsked,
  NativeNameAsked,
} from './native-network.ts';

type NativeAsked = NativeNameAsked | NativeConnectionAsked | NativeHostAsked;

/** Of one command: names that were looked up in vain. */
const MOST_NAMES = 128;
const MOST_CONNECTIONS = 256;
/** Of a host that a connection asked for: more is no name. */
const NAME_CHARACTERS = 253;
const NOTHING = Buffer.alloc(0);

/** Where the network is listed: answers for the commands of one sandbox, and tells what they asked for. */
export interface NetworkBroker {
  /** A command begins, or a turn of a shell. `ask`: how somebody is asked what it may reach beyond what is listed. */
  begin(id: number, ask: AskConnection | undefined): void;
  /** A command asks for a name, wants to connect to what is not listed, or one of its connections asks for a host. */
  onAsked(id: number, event: NativeAsked): void;
  /** What a command asked for since the last call, with what the addon says of it; `undefined`: nothing. */
  connectionsOf(id: number, effects: NativeEffects): readonly Connection[] | undefined;
  /** A command has ended: nobody is asked about it any more. */
  end(id: number): void;
}

/** What a command asked for since it was last told. */
interface CommandNetwork {
  readonly unanswered: Map<string, Connection>;
  readonly questions: ConnectionQuestions;
  hasEnded: boolean;
}

/** Makes the broker of a confinement. */
export function createBroker(
  addon: NativeAddon,
  confinement: NativeConfinement,
  rules: NetworkRules,
  lookup: NameLookup = lookupAsMachine,
): NetworkBroker {
  const names = new NameServer(rules, {
    lookup,
    allow: (rows, lifetimeMs) => addon.allowAddresses(confinement, rows.map(nativeRow), lifetimeMs),
    ownAddresses: () =>
      Object.values(networkInterfaces()).flatMap((all) => (all ?? []).map((one) => one.address)),
    searched: rules.placeholders === undefined ? [] : searchedDomains(),
  });
  const commands = new Map<number, CommandNetwork>();
  const networkOf = (id: number): CommandNetwork => {
    const known = commands.get(id);
    if (known !== undefined) return known;
    const fresh = {
      unanswered: new Map(),
      questions: new ConnectionQuestions(rules, names),
      hasEnded: false,
    };
    commands.set(id, fresh);
    return fresh;
  };
  const onNameAsked = (id: number, { query, message }: NativeNameAsked) => {
    const note = (asked: AskedName) => {
      if (!asked.allowed || asked.unknown === true) noteName(networkOf(id).unanswered, asked);
    };
    // Also where there is nothing to say: the command may ask only so much at a time.
    void names.answer(message ?? NOTHING, note).then((answer) => {
      addon.answerName(id, query, answer ?? NOTHING);
    });
  };
  const onConnectionAsked = (id: number, { question, connection }: NativeConnectionAsked) => {
    void networkOf(id)
      .questions.decide(connection)
      .then((outcome) => {
        if ('bytes' in outcome) {
          const { bytes, inside } = outcome;
          addon.answerConnection(id, question, Uint8Array.from(bytes), 0, inside ?? '');
        } else {
          addon.answerConnection(id, question, undefined, outcome.errno, '');
        }
      });
  };
  const onHostAsked = (id: number, { question, host, port }: NativeHostAsked) => {
    const { allowed, rule } = judgeHost(rules.names, host, port);
    const isApproved = rule === undefined && networkOf(id).questions.isApproved(host, port);
    addon.answerHost(id, question, allowed || isApproved, rule ?? '');
  };
  return {
    begin: (id, ask) => {
      if (ask !== undefined) networkOf(id).questions.begin(ask);
    },
    onAsked(id, event) {
      switch (event.kind) {
        case 'name-asked':
          return onNameAsked(id, event);
        case 'connection-asked':
          return onConnectionAsked(id, event);
        case 'host-asked':
          return onHostAsked(id, event);
        default:
          return assertNever(event);
      }
    },
    connectionsOf(id, { connections }) {
      const network = commands.get(id);
      const told = [
        ...(connections?.told ?? []).map((one) => connectionOf(one, rules, names, network?.questions)),
        ...(network?.unanswered.values() ?? []),
      ];
      network?.unanswered.clear();
      network?.questions.forget();
      if (network?.hasEnded === true) commands.delete(id);
      return told.length === 0 ? undefined : told.slice(0, MOST_CONNECTIONS);
    },
    end(id) {
      const network = commands.get(id);
      network?.questions.end();
      if (network !== undefined) network.hasEnded = true;
    },
  };
}

function noteName(unanswered: Map<string, Connection>, { name, allowed, rule, apart }: AskedName): void {
  const known = unanswered.get(name);
  if (known === undefined && unanswered.size >= MOST_NAMES) return;
  // One that leads to an address of the user's own network needs an entry for that.
  const entry = rule === undefined ? name : apart;
  unanswered.set(name, {
    verdict: allowed ? 'allowed' : 'refused',
    protocol: 'name',
    host: name,
    ...(apart === undefined ? {} : { address: apart }),
    ...(rule === undefined ? {} : { rule }),
    error: 'NXDOMAIN',
    ...(entry === undefined ? {} : { entry }),
    at: known?.at ?? new Date().toISOString(),
    count: (known?.count ?? 0) + 1,
  });
}

function connectionOf(
  one: NativeConnection,
  rules: NetworkRules,
  names: NameServer,
  questions: ConnectionQuestions | undefined,
): Connection {
  if (one.path !== undefined) return toSocket(one, one.path);
  const connectedTo = textOf([...one.address]);
  const standsFor = names.standsFor(connectedTo);
  const host = standsFor ?? names.nameOf(connectedTo) ?? connectedTo;
  const asked = questions?.about(host, one.port);
  const rule =
    one.rule ||
    (one.allowed ? undefined : denialOf(rules.names, host, one.port, one.udp ? 'udp' : 'tcp')) ||
    undefined;
  const isDenied = !one.allowed && rule !== undefined;
  const approval = asked?.approval ?? (one.allowed || isDenied ? undefined : questions?.refusedUnasked);
  // In the user's own network only an entry for the address opens a port, whichever name led there.
  const listable = standsFor !== undefined || names.openAddresses()([...one.address]) ? host : connectedTo;
  // Of what stands for a name nobody has to know.
  const address = standsFor === undefined ? connectedTo : (asked?.address ?? asked?.apart);
  const hasEntry = !one.allowed && !isDenied && one.flaw === '';
  return {
    verdict: one.allowed ? 'allowed' : 'refused',
    protocol: one.udp ? 'udp' : 'tcp',
    host,
    ...(address === undefined ? {} : { address }),
    port: one.port,
    ...aboutIt(one, rule),
    ...(one.name === '' ? {} : { askedFor: visibleLine(one.name, NAME_CHARACTERS) }),
    ...(one.flaw === '' ? {} : { flaw: one.flaw }),
    ...(approval === undefined ? {} : { approval }),
    // What an entry denies another one does not allow.
    ...(hasEntry ? entryOf(one, asked?.apart ?? listable, asked?.apart ?? connectedTo) : {}),
  };
}

/** An abstract socket cannot be listed: it has no object, and who takes its name first has it. */
function toSocket(one: NativeConnection, path: string): Connection {
  return {
    verdict: one.allowed ? 'allowed' : 'refused',
    protocol: 'unix',
    host: path,
    ...aboutIt(one, one.rule || undefined),
    ...(one.allowed || path.startsWith('@') ? {} : { entry: path }),
  };
}

function aboutIt(one: NativeConnection, rule: string | undefined) {
  return {
    program: one.program,
    pid: one.pid,
    ...(rule === undefined ? {} : { rule }),
    ...(one.errno === 0 ? {} : { error: errnoName(one.errno) }),
    at: new Date(one.firstMs).toISOString(),
    count: one.count,
  };
}

/** What would let it through; nothing, if what it asked for is the name of no host. */
function entryOf(
  { name, port, udp }: NativeConnection,
  host: string,
  address: string,
): { readonly entry?: string } {
  if (name === '') return { entry: `${entryFor(host, address, port)}${udp ? '/udp' : ''}` };
  const asked = normalName(name);
  return asked === undefined ? {} : { entry: `${asked}:${port}` };
}

/** No address is this machine, as Linux takes it. */
const THIS_MACHINE = ['127.0.0.1', '::1', '0.0.0.0', '::'];

function entryFor(host: string, address: string, port: number): string {
  return THIS_MACHINE.includes(address) ? `localhost:${port}` : hostAndPort(host, port);
}

/** Of an address of which no name server says how long it is good: from a file, say. */
const USUAL_TTL = 60;
/** How long it is waited for that once the addresses are known. */
const TTL_PATIENCE_MS = 50;
/** There is no such name, or it has no address: what getaddrinfo says for good. */
const NO_SUCH_NAME = ['ENOTFOUND', 'ENODATA', 'EAI_NONAME', 'EAI_NODATA'];

/** Looks a name up as programs of this machine do: files, name servers, and what else the machine is set to ask. */
const lookupAsMachine: NameLookup = (name) =>
  new Promise((done, failed) => {
    let ttl = USUAL_TTL;
    const known = shortestTtl(name).then((seconds) => {
      ttl = seconds ?? USUAL_TTL;
    });
    lookup(name, { all: true, order: 'verbatim' }, (error, found) => {
      if (error !== null) {
        if (NO_SUCH_NAME.includes(errnoOf(error) ?? '')) done({ addresses: [], ttl: 0 });
        else failed(error);
        return;
      }
      const addresses = found.map(({ address }) => address);
      const late = new Promise((over) => setTimeout(over, TTL_PATIENCE_MS).unref());
      void Promise.race([known, late]).then(() => done({ addresses, ttl }));
    });
  });

/** Domains in which programs of this machine look for names that are not whole (resolv.conf(5)). */
function searchedDomains(path = '/etc/resolv.conf'): readonly string[] {
  const text = orElse(() => readFileSync(path, 'utf8'), '');
  const lines = text.split('\n').map((line) => line.trim().split(/\s+/));
  // The last one counts.
  const [, ...domains] = lines.findLast(([word]) => word === 'search' || word === 'domain') ?? [];
  return domains.map(normalName).filter((domain) => domain !== undefined);
}

/** `undefined`: no name server says. */
async function shortestTtl(name: string): Promise<number | undefined> {
  const resolver = new Resolver({ timeout: 1000, tries: 1 });
  const ask = (resolve: 'resolve4' | 'resolve6') =>
    new Promise<readonly number[]>((done) => {
      resolver[resolve](name, { ttl: true }, (error, found) =>
        done(error === null ? found.map(({ ttl }) => ttl) : []),
      );
    });
  const all = (await Promise.all([ask('resolve4'), ask('resolve6')])).flat();
  return all.length === 0 ? undefined : Math.min(...all);
}
