import { lstatSync } from 'node:fs';
import { dirname } from 'node:path';
import { homeDirectory } from '../../host/user-directories.ts';
import type { Denial } from '../../model/denial.ts';
import type { ExceededLimit, ExecutionResult } from '../../model/execution-result.ts';
import type { LaunchPlan } from '../../model/launch-plan.ts';
import type { Connection } from '../../model/network.ts';
import type { NativeDenial, NativeOutcome } from '../../native/contract.ts';
import { isBeneath } from '../../util/absolute-path.ts';
import { assertNever } from '../../util/assert-never.ts';
import { hostAndPort } from '../../util/host-and-port.ts';
import { orElse } from '../../util/or-else.ts';
import { visibleLine, visibleToml } from '../../util/visible-text.ts';
import { limitDenial } from '../launch/exceeded-limit.ts';
import { BRIEF, INSTALL_HERE, isInstalledThere, type Places, propose, whyNotProposed } from '../proposals.ts';

/** How many are named to a person or a model. */
const NAMED = 4;
const QUOTED_CHARACTERS = 200;

/** What of a plan says why something was denied. */
export type HoldingPlan = Pick<
  LaunchPlan,
  'observed' | 'workspace' | 'onlyReads' | 'protectedPaths' | 'emptied' | 'network' | 'tmp' | 'layer'
>;

/** What is said of a command that failed. */
interface Explanation {
  readonly denials?: readonly Denial[];
  readonly notLookedAt?: readonly Denial['operation'][];
}

/** What the sandbox denied a command that failed, and of what that is not known. `secret`: of `filesystem.secret`. */
export function explain(
  outcome: Pick<NativeOutcome, 'denials'>,
  plan: HoldingPlan,
  {
    connections,
    limit,
    secret,
  }: {
    readonly connections: readonly Connection[] | undefined;
    readonly limit: ExceededLimit | undefined;
    readonly secret: readonly string[];
  },
): Explanation {
  const seen = (outcome.denials?.told ?? []).filter(
    (one) => one.control !== 'nothing' && !isGoneFromLayer(one, plan),
  );
  const denials = [
    ...seen.map((one) => denialOf(one, plan, secret)),
    ...(connections ?? []).filter(({ verdict }) => verdict === 'refused').map(refusedConnection),
    ...(limit === undefined ? [] : [limitDenial(limit)]),
  ];
  // What is read in vain is seldom why a command failed.
  denials.sort((one, other) => Number(one.operation === 'read') - Number(other.operation === 'read'));
  const wereUnseen = (outcome.denials?.unseen ?? 0) > 0;
  const notLookedAt = wereUnseen ? OPERATIONS_OF_CALLS : unseen(plan);
  return {
    ...(denials.length === 0 ? {} : { denials }),
    ...(notLookedAt.length === 0 ? {} : { notLookedAt }),
  };
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

/** What nobody looks at under a plan. Where the network is shut without a namespace, no call of it gets that far. */
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
    ...(network === 'refused' ? ['connect' as const] : []),
    ...(observed === 'changes' ? ['signal' as const] : []),
  ];
}

/** A denial of the addon, in the words of a plan. `secret`: of `filesystem.secret`. */
export function denialOf(one: NativeDenial, plan: HoldingPlan, secret: readonly string[]): Denial {
  const operation = one.operation === 'remove' ? 'write' : one.operation;
  const held = heldBy(one, plan);
  const allowed = allowOf(one, held.control, { home: homeDirectory(), workspace: plan.workspace, secret });
  // As of a listed network; only the line that allows it has to say so.
  const withoutUdp = (path: string) => (operation === 'connect' ? path.replace(/(:\d+)\/udp$/, '$1') : path);
  return {
    operation,
    object: withoutUdp(one.path),
    ...(one.asked === one.path ? {} : { asked: withoutUdp(one.asked) }),
    ...(one.program === '' ? {} : { program: one.program }),
    ...(one.pid === 0 ? {} : { pid: one.pid }),
    ...held,
    ...allowed,
    at: new Date(one.firstMs).toISOString(),
    count: one.count,
  };
}

const NO_RULE = {
  read: 'no rule of the policy lets it be read',
  execute: 'no rule of the policy lets it be executed',
  write: 'no rule of the policy lets it be written',
} as const;

const OBEYED = 'programs outside the sandbox run it or obey it';
/** An installer that has no copy to write to. */
const HOOKS = /\/(?:\.husky|\.git(?:\/.*)?\/hooks)(?:\/|$)/;
const OF_HOOKS = `${OBEYED}; hooks are installed and changed outside of it`;
const HIDDEN = 'filesystem.hide hides it';
const ONLY_READS =
  'such a command only reads as a rule, and with workspace.undo none of those can write the workspace; --preview lets it';

function heldBy(
  { control, operation, path }: NativeDenial,
  plan: HoldingPlan,
): Pick<Denial, 'control' | 'why'> {
  const isIn = (paths: readonly string[]) => paths.some((above) => isBeneath(path, above));
  switch (control) {
    case 'mount':
    case 'rights':
      if (isIn(plan.emptied)) return { control: 'hidden-paths', why: HIDDEN };
      if (isIn(plan.protectedPaths))
        return { control: 'protected-paths', why: HOOKS.test(path) ? OF_HOOKS : OBEYED };
      if (
        plan.onlyReads &&
        isBeneath(path, plan.workspace) &&
        operation !== 'read' &&
        operation !== 'execute'
      )
        return { control: 'workspace-changes', why: ONLY_READS };
      return {
        control: 'filesystem',
        why: operation === 'read' || operation === 'execute' ? NO_RULE[operation] : NO_RULE.write,
      };
    case 'pinned':
      if (plan.emptied.some((hidden) => isBeneath(hidden, path)))
        return {
          control: 'hidden-paths',
          why: isIn(plan.emptied) ? HIDDEN : 'filesystem.hide hides what lies in it, so it stays where it is',
        };
      return { control: 'protected-paths', why: 'what lies in it is protected, so it stays where it is' };
    case 'view':
      if (operation === 'connect')
        return { control: 'unix-sockets', why: 'it is a socket of the host, which the policy does not list' };
      if (isBeneath(path, plan.tmp))
        return { control: 'private-tmp', why: `the command has a ${plan.tmp} of its own` };
      return {
        control: 'filesystem-view',
        why: 'the policy does not list it, so the command does not see it',
      };
    case 'privileges':
      return {
        control: 'privileges',
        why: 'it belongs to another user, and commands of root have no capabilities; run sandbox-run as its owner',
      };
    case 'network':
      return {
        control: 'network',
        why: isNameServer(path) ? 'the network is off, so no name resolves' : 'the network is off',
      };
    case 'nothing':
    case 'scope':
      return { control: 'signals', why: 'it is no process of the command' };
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
  { control, operation, path, named }: NativeDenial,
  held: Denial['control'],
  places: Places,
): Pick<Denial, 'allow' | 'notProposed'> {
  if (NOT_BY_POLICY.has(held)) return {};
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
      return creation(named, path, file('write', dirname(named)), places);
    // Names come and go in directories.
    case 'remove':
      return file('write', dirname(named));
    case 'connect':
      if (control === 'view') return allowing('network', 'unix', named, LISTED);
      // Who asks for a name wants another host than the one that knows it, and that is not known here.
      return isNameServer(path) ? {} : allowing('network', 'allow', hostOf(path), LISTED);
    case 'signal':
      return {};
    default:
      return assertNever(operation);
  }
}

/** Where the directory is too much to open, the file or directory alone that was to be made, once somebody made it. */
function creation(
  named: string,
  path: string,
  inDirectory: Pick<Denial, 'allow' | 'notProposed'>,
  places: Places,
): Pick<Denial, 'allow' | 'notProposed'> {
  if (inDirectory.notProposed === undefined) return inDirectory;
  const isThere = (at: string) =>
    orElse(() => lstatSync(at, { throwIfNoEntry: false }), undefined) !== undefined;
  const isPossible =
    isThere(dirname(named)) &&
    ![named, path].some((at) => isThere(at) || whyNotProposed(at, places, 'filesystem.write', BRIEF));
  const { allow } = isPossible ? allowing('filesystem', 'write', named) : {};
  return allow === undefined ? inDirectory : { allow: { ...allow, absent: true } };
}

const LISTED = 'mode = "listed"\n';

function allowing(table: string, name: string, value: string, before = ''): Pick<Denial, 'allow'> {
  // It stands for bytes that no policy can name.
  if (value.includes('\ufffd')) return {};
  const policy = `[${table}]\n${before}${name} = [${visibleToml(value)}]`;
  return { allow: { key: `${table}.${name}`, value, policy } };
}

const isNameServer = (endpoint: string) => /:53(?:\/udp)?$/.test(endpoint);

/** A service of this machine is listed by that name, but for those at further addresses of it. */
function hostOf(endpoint: string): string {
  return endpoint.replace(/^127\.0\.0\.1:|^\[(?:0:){7}1\]:/, 'localhost:');
}

function refusedConnection(connection: Connection): Denial {
  const { protocol, host, port, program, pid, rule, entry, at, count } = connection;
  const isUnix = protocol === 'unix';
  return {
    operation: 'connect',
    object: port === undefined ? host : hostAndPort(host, port),
    ...(program === undefined ? {} : { program }),
    ...(pid === undefined ? {} : { pid }),
    control: isUnix ? 'unix-sockets' : 'network',
    why: rule === undefined ? 'no entry of the policy lists it' : `the entry ${rule} decided`,
    ...(entry === undefined ? {} : allowing('network', isUnix ? 'unix' : 'allow', entry)),
    at,
    count,
  };
}

/** Those of a result that nothing else tells: what was refused of a listed network, and a limit, are told apart. */
export function untoldDenials({ denials = [], connections }: ExecutionResult): readonly Denial[] {
  return denials.filter(
    ({ operation }) => operation !== 'limit' && (operation !== 'connect' || connections === undefined),
  );
}

/** What was denied, for the model that wrote the command; `undefined`: there is nothing to say. Only a person can change the policy. */
export function denialsForModel(result: ExecutionResult): string | undefined {
  const denials = untoldDenials(result);
  if (denials.length === 0) return undefined;
  const what = listDenied(denials.map(describeDenial));
  const home = homeDirectory();
  const installs = denials.some(
    ({ operation, object }) =>
      (operation === 'create' || operation === 'write') && isInstalledThere(object, home),
  );
  const instead = installs ? INSTALL_HERE : 'do it without';
  return `Sandbox: denied to the command: ${what}. To try again does not help; ${instead}, or tell the user what it is needed for.`;
}

/** What was denied, in a few words. */
export function describeDenial({ operation, object, program }: Denial): string {
  const who = program === undefined ? '' : ` (${visibleLine(program, QUOTED_CHARACTERS)})`;
  return `${operation} ${visibleLine(object, QUOTED_CHARACTERS)}${who}`;
}

/** Several texts in one line, each once, as many as are read. */
export function listDenied(texts: readonly string[], separator = '; '): string {
  const distinct = [...new Set(texts)];
  const more = distinct.length - NAMED;
  return `${distinct.slice(0, NAMED).join(separator)}${more > 0 ? `${separator}and ${more} more` : ''}`;
}
