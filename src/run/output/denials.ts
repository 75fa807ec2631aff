import { lstatSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { isBeneath } from '../../base/absolute-path.ts';
import { assertNever } from '../../base/assert-never.ts';
import { hostAndPort, networkEntry } from '../../base/host-and-port.ts';
import { orElse } from '../../base/or-else.ts';
import { visibleLine, visibleToml } from '../../base/visible-text.ts';
import { NOT_LOOKED_INTO } from '../../base/words.ts';
import type { NativeOutcome } from '../../confine/native/contract.ts';
import type { LaunchPlan } from '../../confine/plan/launch-plan.ts';
import type { ApprovalAnswer, Connection, Decision, Denial, ExceededLimit } from '../../model/index.ts';
import { presetOf } from '../../policy/index.ts';
import { behindAlias, isServedHere, remotesOf, TREE_AROUND, userConfigFiles } from '../../workspace/index.ts';
import { limitDenial } from '../launch/exceeded-limit.ts';
import { BRIEF, type Places, propose, whyNotProposed, withoutDetours } from '../proposals.ts';
import type { NativeDenial } from './native-denials.ts';

/** The parts of a plan that explain a denial. */
export type HoldingPlan = Pick<
  LaunchPlan,
  | 'observed'
  | 'workspace'
  | 'paths'
  | 'onlyReads'
  | 'protectedPaths'
  | 'emptied'
  | 'network'
  | 'tmp'
  | 'layer'
>;

/** What is said of a command that failed. */
interface Explanation {
  readonly denials?: readonly Denial[];
  readonly notLookedAt?: readonly Denial['operation'][];
}

/** What the sandbox denied a command that failed, and of what that is not known. */
export function explain(
  outcome: Pick<NativeOutcome, 'denials'>,
  plan: HoldingPlan,
  {
    connections,
    limit,
    places,
  }: {
    readonly connections: readonly Connection[] | undefined;
    readonly limit: ExceededLimit | undefined;
    readonly places: Places;
  },
): Explanation {
  const seen = seenOf(outcome, plan);
  const denials = [
    ...seen.map((one) => denialOf(one, plan, places)),
    ...refusedConnections(connections).map(refusedConnection),
    ...(limit === undefined ? [] : [limitDenial(limit)]),
  ];
  // Programs look for many files that they can do without: reads come last.
  denials.sort((one, other) => Number(one.operation === 'read') - Number(other.operation === 'read'));
  const wereUnseen = (outcome.denials?.unseen ?? 0) > 0;
  const notLookedAt = wereUnseen ? OPERATIONS_OF_CALLS : unseen(plan);
  return {
    ...(denials.length === 0 ? {} : { denials }),
    ...(notLookedAt.length === 0 ? {} : { notLookedAt }),
  };
}

const seenOf = ({ denials }: Pick<NativeOutcome, 'denials'>, plan: HoldingPlan) =>
  (denials?.told ?? []).filter((one) => one.control !== 'nothing' && !isGoneFromLayer(one, plan));

/** What git left as it was in the working tree around the workspace: it goes on there, and may even end with 0 (`git checkout`). */
export function leftByGit(
  outcome: Pick<NativeOutcome, 'denials'>,
  plan: HoldingPlan,
  places: Places,
): readonly Denial[] | undefined {
  const left = seenOf(outcome, plan).filter((one) => treeLeftBy(one, plan) !== undefined);
  return left.length === 0 ? undefined : left.map((one) => denialOf(one, plan, places));
}

/** The working tree in which git could not change something, if the workspace is a part of it. */
function treeLeftBy(
  { control, operation, path, program }: NativeDenial,
  { paths, workspace, protectedPaths }: HoldingPlan,
): string | undefined {
  const isHeld = control === 'mount' || control === 'rights' || control === 'pinned';
  const isChange = operation === 'write' || operation === 'create' || operation === 'remove';
  if (program !== 'git' || !isHeld || !isChange || isBeneath(path, workspace)) return undefined;
  const tree = paths.find(({ reason }) => reason === TREE_AROUND)?.path;
  const isIn = (root: string) => isBeneath(path, root);
  return tree !== undefined && isIn(tree) && !isIn(join(tree, '.git')) && !protectedPaths.some(isIn)
    ? tree
    : undefined;
}

/** The workspace has it, and the command not any more: it, or a preview below, removed that from the layer. */
function isGoneFromLayer(
  { control, path }: NativeDenial,
  { layer, workspace, emptied }: HoldingPlan,
): boolean {
  return (
    layer !== undefined &&
    control === 'view' &&
    isBeneath(path, workspace) &&
    !emptied.some((hidden) => isBeneath(path, hidden))
  );
}

/** The operations that only somebody who looks at calls knows of. */
const OPERATIONS_OF_CALLS = ['read', 'write', 'create', 'execute', 'connect', 'signal'] as const;

/** The operations whose denials are not observed under a plan. */
function unseen({ observed, network }: HoldingPlan): readonly Denial['operation'][] {
  if (observed === 'nothing')
    return [
      'read',
      'write',
      'create',
      'execute',
      ...(network === 'listed' ? [] : ['connect' as const]),
      'signal',
    ];
  return [
    ...(observed === 'changes' ? ['read' as const] : []),
    ...(observed === 'changes' ? ['signal' as const] : []),
  ];
}

/**
 * What a command would have needed that the policy refuses by its text, as if the kernel had denied it: the same is proposed.
 * `undefined`: nothing that a policy could list.
 */
export function deniedByText({ reasons }: Decision, places: Places): readonly Denial[] | undefined {
  const refused = reasons.filter(({ verdict }) => verdict === 'deny');
  // Where something else is refused as well, the line would be refused still.
  if (refused.length === 0 || refused.some(({ needs }) => needs === undefined)) return undefined;
  const at = new Date().toISOString();
  const denials = new Map<string, Denial>();
  for (const { words, needs = [] } of refused) {
    const isSsh = needs.some(({ value }) => value === '@ssh-agent');
    for (const { key, value: named, isDirectory } of needs) {
      const value = isSsh && key === 'network.allow' && named ? behindAlias(named, places.home) : named;
      const isUnix = key === 'network.unix';
      if (isUnix && places.env.SSH_AUTH_SOCK === undefined) continue;
      const object = value ?? words[0] ?? '';
      const [table = '', name = ''] = key.split('.');
      if (table === 'filesystem' && name === 'read' && !isThere(object)) continue;
      const operation =
        table === 'network' ? 'connect' : name === 'read' ? 'read' : isThere(object) ? 'write' : 'create';
      const held =
        table === 'network'
          ? { control: isUnix ? ('unix-sockets' as const) : ('network' as const), why: WHY.networkOff }
          : { control: 'filesystem' as const, why: name === 'read' ? WHY.unlisted : WHY.notWritable };
      const proposed =
        table === 'network'
          ? value === undefined
            ? {}
            : allowing(table, name, value, LISTED)
          : allowOf(
              { control: 'rights', operation, path: object, named: object, program: '', isDirectory },
              held.control,
              places,
            );
      denials.set(`${key} ${object}`, { operation, object, ...held, ...proposed, at, count: 1 });
    }
  }
  return denials.size === 0 ? undefined : [...denials.values()];
}

const isThere = (at: string) =>
  orElse(() => lstatSync(at, { throwIfNoEntry: false }), undefined) !== undefined;

/** A denial of the addon, in the words of a plan. */
export function denialOf(one: NativeDenial, plan: HoldingPlan, places: Places): Denial {
  const operation = one.operation === 'remove' ? 'write' : one.operation;
  const tree = treeLeftBy(one, plan);
  const held =
    tree === undefined ? heldBy(one, plan) : { control: 'filesystem' as const, why: WHY.restOfTree };
  const allowed =
    tree === undefined ? allowOf(one, held.control, places) : allowing('filesystem', 'write', tree);
  // Without /udp, like connections of a listed network; only the proposed policy line needs it.
  const withoutUdp = (path: string) => (operation === 'connect' ? path.replace(/(:\d+)\/udp$/, '$1') : path);
  return {
    operation,
    object: one.control === 'sockets' ? SOCKETS[one.path === 'unix' ? 'unix' : 'inet'] : withoutUdp(one.path),
    ...(one.asked === one.path ? {} : { asked: withoutUdp(one.asked) }),
    ...(one.program === '' ? {} : { program: one.program }),
    ...(one.pid === 0 ? {} : { pid: one.pid }),
    ...held,
    ...allowed,
    at: new Date(one.firstMs).toISOString(),
    count: one.count,
  };
}

const QUOTED_CHARACTERS = 200;

/** The object of a denial where `socket` itself was refused, so that no address is known. */
export const SOCKETS = { inet: 'a TCP or UDP socket', unix: 'a Unix socket' } as const;

const OBEYED = 'programs outside the sandbox run it or obey it';

/** THE sentences that say why something was denied. test/cli/first-forty.test.ts has the whole text of each, for person and model. */
export const WHY = {
  networkOff: 'the network is off',
  hostSockets: 'without namespaces it could reach servers outside of the sandbox',
  unlisted: 'the policy does not list it',
  notWritable: 'the policy does not list it as writable',
  restOfTree: 'only the workspace can be written of this working tree, so git changed that part alone',
  obeyed: OBEYED,
  hooks: `${OBEYED}; hooks are installed and changed outside of it`,
  hidden: 'filesystem.hide hides it',
  aroundHidden: 'it contains files that filesystem.hide hides, so it cannot be moved or removed',
  granted:
    'what is in it can be written, but it cannot be replaced, moved or removed itself (cp instead of mv)',
  aroundObeyed: 'it contains protected files, so it cannot be moved or removed',
  onlyReads:
    'this command is known as one that only reads, and with workspace.undo = "always" such commands cannot write the workspace; run it with --preview',
  privateTmp: (tmp: string) => `the command has a ${tmp} of its own`,
  otherUser:
    'it belongs to another user, and commands of root have no capabilities; run sandbox-run as its owner',
  otherProcess: 'the process does not belong to the command',
  unnamedHost: (flaw: string) => `it sent ${flaw} there, where a listed host must be named (network.verify)`,
  noSuchHost: 'it does not exist',
  leadsElsewhere: (address: string) => `it leads to ${address}, an address that no entry allows`,
  unseenHost: `${NOT_LOOKED_INTO} forbids it: a name asked for by QUIC is not seen, and with TCP it is`,
  forbidden: (rule: string) => `network.deny forbids it (${rule})`,
  refused: 'the policy does not list it, and the answer was no',
  expired: 'the policy does not list it, and nobody answered in time',
  unasked: 'the policy does not list it, and nobody is there to ask',
  failed: (detail: string) => `the policy does not list it, and asking failed${detail}`,
} as const;

/** An installer that has no copy to write to. */
const HOOKS = /\/(?:\.husky|\.git(?:\/.*)?\/hooks)(?:\/|$)/;

function heldBy(
  { control, operation, path }: NativeDenial,
  plan: HoldingPlan,
): Pick<Denial, 'control' | 'why'> {
  const isIn = (paths: readonly string[]) => paths.some((above) => isBeneath(path, above));
  switch (control) {
    case 'mount':
    case 'rights':
      if (isIn(plan.emptied)) return { control: 'hidden-paths', why: WHY.hidden };
      if (isIn(plan.protectedPaths))
        return { control: 'protected-paths', why: HOOKS.test(path) ? WHY.hooks : WHY.obeyed };
      if (
        plan.onlyReads &&
        isBeneath(path, plan.workspace) &&
        operation !== 'read' &&
        operation !== 'execute'
      )
        return { control: 'workspace-changes', why: WHY.onlyReads };
      return {
        control: 'filesystem',
        why: operation === 'read' || operation === 'execute' ? WHY.unlisted : WHY.notWritable,
      };
    case 'pinned':
      if (plan.emptied.some((hidden) => isBeneath(hidden, path)))
        return {
          control: 'hidden-paths',
          why: isIn(plan.emptied) ? WHY.hidden : WHY.aroundHidden,
        };
      // A path that is granted itself is a mount point.
      if (
        plan.paths.some((one) => one.path === path) &&
        !plan.protectedPaths.some((inner) => isBeneath(inner, path))
      )
        return { control: 'filesystem', why: WHY.granted };
      return { control: 'protected-paths', why: WHY.aroundObeyed };
    case 'view':
      if (operation === 'connect') return { control: 'unix-sockets', why: WHY.unlisted };
      if (isBeneath(path, plan.tmp)) return { control: 'private-tmp', why: WHY.privateTmp(plan.tmp) };
      return { control: 'filesystem-view', why: WHY.unlisted };
    case 'privileges':
      return {
        control: 'privileges',
        why: WHY.otherUser,
      };
    case 'network':
      return { control: 'network', why: WHY.networkOff };
    case 'sockets':
      return path === 'unix'
        ? { control: 'unix-sockets', why: WHY.hostSockets }
        : { control: 'network', why: WHY.networkOff };
    case 'nothing':
    case 'scope':
      return { control: 'signals', why: WHY.otherProcess };
    default:
      return assertNever(control);
  }
}

/** Controls of which no path in a policy takes anything back. */
const NOT_BY_POLICY: ReadonlySet<Denial['control']> = new Set([
  'protected-paths',
  'hidden-paths',
  'privileges',
  'workspace-changes',
]);

/** What would let it through, or why that is not proposed; neither: nothing that a policy can say. */
function allowOf(
  {
    control,
    operation,
    path,
    named: asNamed,
    program,
    isDirectory = false,
  }: Pick<NativeDenial, 'control' | 'operation' | 'path' | 'named' | 'program' | 'isDirectory'>,
  held: Denial['control'],
  places: Places,
): Pick<Denial, 'allow' | 'notProposed'> {
  if (NOT_BY_POLICY.has(held) || control === 'pinned') return {};
  const named = asNamed.startsWith('/') ? withoutDetours(asNamed, path, places.workspace) : asNamed;
  const file = (name: 'read' | 'write', at: string) => {
    const proposed = propose({ list: `filesystem.${name}`, named: at, object: path }, places, BRIEF);
    return 'why' in proposed ? { notProposed: proposed.why } : allowing('filesystem', name, proposed.value);
  };
  switch (operation) {
    case 'read':
    case 'execute':
      return file('read', named);
    case 'write':
      return file('write', named);
    case 'create':
      return MAKE_ANEW.test(program)
        ? file('write', dirname(named))
        : creation({ named, path, isDirectory }, file('write', dirname(named)), places);
    // Names come and go in directories.
    case 'remove':
      return file('write', dirname(named));
    case 'connect':
      if (control === 'sockets') return path === 'unix' ? allowing('network', 'allow', '@own', LISTED) : {};
      if (control === 'view') return allowing('network', 'unix', named, LISTED);
      // A program that asks a DNS server wants to reach another host, which is known of some programs only.
      if (isNameServer(path)) {
        const entry = presetOf(program) ?? remoteOf(program, places);
        return entry === undefined ? {} : allowing('network', 'allow', entry, LISTED);
      }
      return allowing('network', 'allow', hostOf(path), LISTED);
    case 'signal':
      return {};
    default:
      return assertNever(operation);
  }
}

/** Programs that fail if their target exists, or remove it first: they need its directory. */
const MAKE_ANEW = /^(?:mkdir|mkfifo|mknod|ln|install)$/;

/** Where the directory is too much to open, the file or directory alone that was to be made, once somebody made it. */
function creation(
  { named, path, isDirectory }: Pick<NativeDenial, 'named' | 'path'> & { readonly isDirectory: boolean },
  inDirectory: Pick<Denial, 'allow' | 'notProposed'>,
  places: Places,
): Pick<Denial, 'allow' | 'notProposed'> {
  if (inDirectory.notProposed === undefined) return inDirectory;
  const isPossible =
    isThere(dirname(named)) &&
    ![named, path].some((at) => isThere(at) || whyNotProposed(at, places, 'filesystem.write', BRIEF));
  const { allow } = isPossible ? allowing('filesystem', 'write', named) : {};
  return allow === undefined
    ? inDirectory
    : { allow: { ...allow, absent: isDirectory ? 'directory' : 'path' } };
}

const LISTED = 'mode = "listed"\n';

function allowing(table: string, name: string, value: string, before = ''): Pick<Denial, 'allow'> {
  // U+FFFD stands for bytes that a policy cannot name.
  if (value.includes('\ufffd')) return {};
  const policy = `[${table}]\n${before}${name} = [${visibleToml(value)}]`;
  return { allow: { key: `${table}.${name}`, value, policy } };
}

/** The only host of the repository's remotes to which git would have gone by this program; `undefined`: there is none, or more. */
function remoteOf(program: string, { home, workspace, env }: Places): string | undefined {
  const isWeb = /^git-remote-http/.test(program);
  if (!isWeb && program !== 'ssh') return undefined;
  const userFiles = userConfigFiles(home, env);
  const urls = orElse(() => remotesOf(workspace, userFiles), []).filter(
    (url) => /^https?:/.test(url) === isWeb,
  );
  const entries = urls.map((url) => networkEntry(url));
  const [entry, ...others] = new Set(isWeb ? entries : entries.map((one) => one && behindAlias(one, home)));
  return others.length === 0 ? entry : undefined;
}

/** Whether an endpoint is a DNS server, by its port. */
export const isNameServer = (endpoint: string) => /:53(?:\/udp)?$/.test(endpoint);

/** Names the usual loopback addresses `localhost`; a policy lists other loopback addresses as they are. */
function hostOf(endpoint: string): string {
  return endpoint.replace(/^127\.0\.0\.1:|^\[(?:0:){7}1\]:/, 'localhost:');
}

/** Refused connections, except TCP to a loopback port where no server listens: that fails outside of the sandbox too. */
export const refusedConnections = (connections: readonly Connection[] = []): readonly Connection[] =>
  connections.filter(
    ({ verdict, protocol, host, port }) =>
      verdict === 'refused' &&
      (protocol !== 'tcp' || port === undefined || !LOOPBACK.test(host) || isServedHere(port)),
  );
const LOOPBACK = /^(?:127(?:\.\d+){3}|::1)$/;

/** Something that was refused of a listed network, as a denial. */
export function refusedConnection(connection: Connection): Denial {
  const { protocol, host, port, program, pid, entry, at, count } = connection;
  const isUnix = protocol === 'unix';
  return {
    operation: 'connect',
    object: port === undefined ? host : hostAndPort(host, port),
    ...(program === undefined ? {} : { program }),
    ...(pid === undefined ? {} : { pid }),
    control: isUnix ? 'unix-sockets' : 'network',
    why: whyRefused(connection),
    ...(entry === undefined ? {} : allowing('network', isUnix ? 'unix' : 'allow', entry)),
    at,
    count,
  };
}

function whyRefused({ protocol, rule, address, askedFor, flaw, approval }: Connection): string {
  if (flaw !== undefined) return WHY.unnamedHost(flaw);
  const asked =
    askedFor === undefined ? '' : `it asked for ${visibleLine(askedFor, QUOTED_CHARACTERS)} there, and `;
  const leads = protocol === 'name' && rule !== undefined && address !== undefined;
  if (leads || (approval?.approved === true && askedFor === undefined))
    return address === undefined ? WHY.noSuchHost : WHY.leadsElsewhere(address);
  if (rule === NOT_LOOKED_INTO) return WHY.unseenHost;
  if (rule !== undefined) return `${asked}${WHY.forbidden(rule)}`;
  return `${asked}${approval === undefined || approval.approved ? WHY.unlisted : unlistedAfter(approval)}`;
}

/** The policy does not list it, and there was no approval either. */
function unlistedAfter({ reason, detail }: Extract<ApprovalAnswer, { approved: false }>): string {
  switch (reason) {
    case 'failed':
      return WHY.failed(detail === undefined ? '' : ` (${visibleLine(detail, QUOTED_CHARACTERS)})`);
    case 'denied':
      return WHY.refused;
    case 'expired':
      return WHY.expired;
    case 'nobody':
      return WHY.unasked;
    default:
      return assertNever(reason);
  }
}
