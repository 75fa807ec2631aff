import { nativeRow } from '../../backends/confinement-spec.ts';
import { errnoName } from '../../kernel/errno.ts';
import type { NameLookup } from '../../model/gate-ports.ts';
import type { Connection, NetworkRules } from '../../model/network.ts';
import type {
  NativeAddon,
  NativeConfinement,
  NativeConnection,
  NativeEffects,
  NativeNameAsked,
} from '../../native/contract.ts';
import { lookupAsMachine } from './lookup.ts';
import { type AskedName, NameServer, textOf } from './name-server.ts';

/** Of one command: names that were looked up in vain. */
const MOST_NAMES = 128;
const MOST_CONNECTIONS = 256;
const NOTHING = Buffer.alloc(0);

/** Where the network is listed: answers for the commands of one sandbox, and tells what they asked for. */
export interface NetworkBroker {
  /** A command asks for a name. */
  onNameAsked(id: number, event: NativeNameAsked): void;
  /** What a command asked for since the last call, with what the addon says of it; `undefined`: nothing. */
  connectionsOf(id: number, effects: NativeEffects): readonly Connection[] | undefined;
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
  });
  const refused = new Map<number, Map<string, Connection>>();
  return {
    onNameAsked(id, { query, message }) {
      const note = (asked: AskedName) => {
        if (!asked.allowed) noteName(refused, id, asked);
      };
      // Also where there is nothing to say: the command may ask only so much at a time.
      void names.answer(message ?? NOTHING, note).then((answer) => {
        addon.answerName(id, query, answer ?? NOTHING);
      });
    },
    connectionsOf(id, { connections }) {
      const told = [
        ...(connections?.told ?? []).map((one) => connectionOf(one, names)),
        ...(refused.get(id)?.values() ?? []),
      ];
      refused.delete(id);
      return told.length === 0 ? undefined : told.slice(0, MOST_CONNECTIONS);
    },
  };
}

function noteName(
  refused: Map<number, Map<string, Connection>>,
  id: number,
  { name, rule, apart }: AskedName,
): void {
  const ofCommand = refused.get(id) ?? new Map<string, Connection>();
  refused.set(id, ofCommand);
  const known = ofCommand.get(name);
  if (known === undefined && ofCommand.size >= MOST_NAMES) return;
  // One that leads to an address of the user's own network needs an entry for that.
  const entry = rule === undefined ? name : apart;
  ofCommand.set(name, {
    verdict: 'refused',
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

function connectionOf(one: NativeConnection, names: NameServer): Connection {
  if (one.path !== undefined) return toSocket(one, one.path);
  const address = textOf([...one.address]);
  const host = names.nameOf(address) ?? address;
  const isDenied = !one.allowed && one.rule !== '';
  return {
    verdict: one.allowed ? 'allowed' : 'refused',
    protocol: one.udp ? 'udp' : 'tcp',
    host,
    address,
    port: one.port,
    ...aboutIt(one),
    // What an entry denies another one does not allow.
    ...(one.allowed || isDenied || one.udp ? {} : { entry: entryFor(host, address, one.port) }),
  };
}

/** An abstract socket cannot be listed: it has no object, and who takes its name first has it. */
function toSocket(one: NativeConnection, path: string): Connection {
  return {
    verdict: one.allowed ? 'allowed' : 'refused',
    protocol: 'unix',
    host: path,
    ...aboutIt(one),
    ...(one.allowed || path.startsWith('@') ? {} : { entry: path }),
  };
}

function aboutIt(one: NativeConnection) {
  return {
    program: one.program,
    pid: one.pid,
    ...(one.rule === '' ? {} : { rule: one.rule }),
    ...(one.errno === 0 ? {} : { error: errnoName(one.errno) }),
    at: new Date(one.firstMs).toISOString(),
    count: one.count,
  };
}

function entryFor(host: string, address: string, port: number): string {
  if (address === '127.0.0.1' || address === '::1') return `localhost:${port}`;
  return `${host.includes(':') ? `[${host}]` : host}:${port}`;
}
