import { createHash } from 'node:crypto';
import { hostname } from 'node:os';
import { relative } from 'node:path';
import { isBeneath } from '../../base/absolute-path.ts';
import { redact } from '../../base/redact.ts';
import { readableWord } from '../../base/shell-quote.ts';
import type { SeccompGroupName } from '../../confine/kernel/seccomp/groups.ts';
import type { ControlId } from '../../confine/plan/enforcement-report.ts';
import type { LaunchPlan } from '../../confine/plan/launch-plan.ts';
import { type CommandEffects, isListedVariable } from '../../judge/index.ts';
import {
  type ApprovalRequest,
  type Command,
  type Decision,
  type JobOrigin,
  POLICY_KEYS,
  type Policy,
  type WantedConnection,
} from '../../model/index.ts';
import { packageVersion } from '../../version.ts';
import { describePush, type Environment } from '../../workspace/index.ts';
import { directoryIdentityOf, expanded, identityOf, treeIdentityOf } from './shown-state.ts';

/** What does not change from command to command of one sandbox. */
interface ApprovalSurroundings {
  readonly policy: Policy;
  /** `undefined`: nothing is enforced by us, the command runs somewhere else. */
  readonly plan: LaunchPlan | undefined;
  /** Names of variables that the policy or the caller asked for, beyond what every command has. */
  readonly given: () => ReadonlySet<string>;
  /** The caller's variables: they say where git finds the user's settings, by which a push is described. */
  readonly env: Environment;
  readonly principal: string;
  readonly session: string | undefined;
  /** What the policy gives every command. */
  readonly usual?: Readonly<Record<string, string>>;
}

/** What is asked about. */
interface AskedCommand {
  readonly command: Command;
  /** Canonical. */
  readonly cwd: string;
  readonly decision: Decision;
  readonly effects: CommandEffects;
  /** The command's whole environment; HOME and TMPDIR may be missing. Missing: what the policy gives every command. */
  readonly variables?: Readonly<Record<string, string | undefined>> | undefined;
  /** Names that the request itself sets or takes away. */
  readonly changed: readonly string[];
  /** What else the request says: its input, a terminal, the state of its shell. */
  readonly details: readonly string[];
  /** The job of a fleet that it is for. */
  readonly job?: JobOrigin | undefined;
  /** Set if a running command wants this connection, and the question is about that. */
  readonly connection?: WantedConnection;
  /** A value unique to this request: an open command is not known completely, so each time is another question. */
  readonly once: string;
}

/** Makes requests for one sandbox. */
export type ApprovalRequestMaker = (asked: AskedCommand) => ApprovalRequest;

/**
 * As this process has them they say nothing about what a command does: how the terminal looks, which language people speak, by
 * which name the directory was entered that is known anyway.
 */
const COSMETIC = /^(?:TERM|COLORTERM|NO_COLOR|LANG|LANGUAGE|LC_\w+|TZ|USER|PWD)$/;

const digest = (value: unknown) => createHash('sha256').update(JSON.stringify(value)).digest('hex');

/** What is there now of what a command would use: which directories these are, what patterns match there, and what goes. */
function stateOf({ parts }: CommandEffects, cwd: string) {
  const paths = (of: 'removes' | 'overwrites' | 'matches' | 'directories') => [
    ...new Set(parts.flatMap((part) => part[of])),
  ];
  return {
    unseen: [...new Set(parts.flatMap((part) => part.unseen()))],
    bound: digest([
      [cwd, ...paths('directories')].map(directoryIdentityOf),
      paths('matches').map(expanded),
      paths('removes').map((path) => treeIdentityOf(path)),
    ]),
    overwrites: digest(paths('overwrites').map((path) => treeIdentityOf(path, true))),
  };
}

/**
 * Everything that a person has to see, and the fingerprint over everything that matters. Made again right before the
 * launch, it has the same fingerprint only if nothing of it has changed.
 */
export function approvalRequestMaker(surroundings: ApprovalSurroundings): ApprovalRequestMaker {
  const { policy, plan, given, env, principal, session, usual = {} } = surroundings;
  // The confinement then says that there is no network, so the question does not name it as reachable.
  const hasNoNetwork = plan !== undefined && policy.network.mode === 'off';
  // Computed for the first request: most commands are never asked about.
  const once = () => ({
    confinement:
      plan === undefined ? ['nothing confines it here: it runs somewhere else'] : confinementOf(policy, plan),
    planDigest: digest(plan === undefined ? null : confining(plan)),
    policyVersion: digest([packageVersion, deciding(policy)]),
    namesGiven: given(),
  });
  let made: ReturnType<typeof once> | undefined;
  return (asked) => {
    made ??= once();
    const { confinement, planDigest, policyVersion, namesGiven } = made;
    const { command, cwd, decision, effects, variables = usual } = asked;
    const changed = new Set(asked.changed);
    const text = (name: string) => {
      const value = variables[name];
      return value === undefined ? `-${name}` : `${name}=${value}`;
    };
    const names = [...new Set([...Object.keys(variables), ...changed])].sort();
    const files = effects.parts.flatMap(({ executable, files }) =>
      executable === undefined ? files() : [executable, ...files()],
    );
    const { connection, job } = asked;
    const state = stateOf(effects, cwd);
    const { unseen, overwrites } = state;
    const rule = effects.proposedRule?.();
    return {
      ...(connection === undefined ? {} : { connection }),
      // Host and job are only shown, and not part of the fingerprint: an approval holds for other jobs with the same command.
      ...(policy.state.url === undefined ? {} : { host: hostname() }),
      ...(job === undefined ? {} : { job }),
      fingerprint:
        connection !== undefined && plan !== undefined
          ? connectionFingerprint(connection, plan.workspace, policy.profile)
          : fingerprint({
              command,
              cwd,
              executables: [...new Set(files)].map((path) => ({
                name: path,
                path,
                identity: identityOf(path),
              })),
              environment: names.filter((name) => changed.has(name) || !COSMETIC.test(name)).map(text),
              profile: policy.profile,
              confinement: [planDigest, ...boundTo(asked, state)],
              policyVersion,
            }),
      ...(rule === undefined ? {} : { rule }),
      ...(connection === undefined
        ? {
            overwrites,
            ...(unseen.length === 0 ? {} : { unseen }),
          }
        : {}),
      principal,
      session,
      command,
      cwd,
      decision,
      parts: effects.parts.map(({ source, executable, remarks }) => ({ source, executable, remarks })),
      environment: names.filter((name) => changed.has(name) || namesGiven.has(name)).map(text),
      profile: policy.profile,
      ...atStake(effects, decision, cwd, env),
      touches: [
        ...effects.writes.map((path) => fromDirectory(path, cwd)),
        ...(decision.reach === 'network' && !hasNoNetwork ? ['the network'] : []),
      ],
      confinement,
    };
  };
}

/** What else an answer is bound to, besides the policy and the files that are executed. */
function boundTo(
  { decision, effects, details, once }: Parameters<ApprovalRequestMaker>[0],
  { unseen, bound, overwrites }: ReturnType<typeof stateOf>,
): readonly string[] {
  const questions = decision.reasons.filter(({ verdict }) => verdict === 'ask');
  return [
    ...details,
    // The directory of each part, and the reasons for the question: a session that was tainted since has more of them.
    digest([effects.parts.map(({ directories }) => directories), decision.risk, decision.reach]),
    bound,
    digest(questions.map(({ check, code, words }) => [check, code, words])),
    ...(unseen.length > 0 ? [once] : []),
    // A fingerprint of check() is good for one later run, and never remembered.
    ...(once === '' ? [overwrites] : []),
  ];
}

/** What would be lost or reached, by name. */
function atStake(
  { lost = () => [], hosts = [], pushes = [] }: CommandEffects,
  { verdict, reach }: Decision,
  cwd: string,
  env: Environment,
): Pick<ApprovalRequest, 'lost' | 'reached'> {
  if (verdict !== 'ask') return {};
  const gone = lost().map((path) => fromDirectory(path, cwd));
  const reached =
    reach === 'local'
      ? []
      : [
          ...hosts.map((host) => readableWord(redact(host))),
          ...pushes.flatMap((push) => describePush(push, env)),
        ];
  return {
    ...(gone.length === 0 ? {} : { lost: gone }),
    ...(reached.length === 0 ? {} : { reached }),
  };
}

const fromDirectory = (path: string, cwd: string) =>
  path !== cwd && isBeneath(path, cwd) ? relative(cwd, path) : path;

/** Controls about limits and reports, which do not change what a command can reach. */
const OF_AMOUNTS: ReadonlySet<ControlId> = new Set<ControlId>(['resource-limits', 'denials']);

/**
 * What a supervisor answers for, and what refuses it where nobody does: that depends on whether calls are looked at, which is an
 * amount. A command gives no file the bit with either, and changes no process outside.
 */
const ANSWERED_GROUPS: Partial<Readonly<Record<SeccompGroupName, SeccompGroupName>>> = {
  '@set-id-of-files': '@set-id',
  '@other-process-groups': '@other-processes',
};

/**
 * A plan without what makes no difference to what a command does and reaches: how much it may use, how long it may run, and
 * what is watched in order to explain it.
 */
function confining(plan: LaunchPlan): object {
  const { backend, controls } = plan.report;
  const held = controls.flatMap(({ id, state }) => (OF_AMOUNTS.has(id) ? [] : [[id, state]]));
  const seccompGroups = plan.seccompGroups.map((name) => ANSWERED_GROUPS[name] ?? name);
  return { ...plan, limits: [], treeLimits: {}, observed: undefined, seccompGroups, report: [backend, held] };
}

/** The parts of a policy that a fingerprint covers: without approvers, audit and budgets, which do not change what the command can do. */
function deciding({
  approval,
  audit,
  reviewer,
  state,
  gate,
  limits,
  security,
  sandbox,
  ...rest
}: Policy): object {
  const { commands, ...others } = rest;
  return {
    ...others,
    // Rules that allow are left out: they do not change what is asked about.
    commands: { ...commands, rules: commands.rules.filter(({ verdict }) => verdict !== 'allow') },
    umask: limits.umask,
    autonomy: security.autonomy,
    sandbox: { ...sandbox, explain: undefined },
  };
}

const NETWORK: Readonly<Record<Policy['network']['mode'], string>> = {
  off: 'it has no network',
  listed: 'it can reach the hosts that the policy lists',
  open: 'it can use the network of this machine',
};

/** What confines a command, for the person who decides about it. */
function confinementOf(policy: Policy, plan: LaunchPlan): readonly string[] {
  const writable = plan.paths.filter(({ access }) => access === 'write').map(({ path }) => path);
  const missing = plan.report.controls.filter(({ state }) => state === 'unsupported' || state === 'degraded');
  return [
    `it can write ${writable.join(', ') || 'nothing'}${policy.filesystem.tmp !== 'host' ? ' and a temporary directory of its own' : ''}`,
    NETWORK[policy.network.mode],
    policy.filesystem.home === 'private'
      ? 'the home directory is out of its reach'
      : 'it can write the home directory',
    ...missing.map(
      ({ id, state, reason }) =>
        `${state === 'degraded' ? 'only in part' : 'not at all'} enforced here: ${id} (${reason})`,
    ),
  ];
}

/** Names of variables of a caller that somebody asked for, beyond those that all profiles pass. */
export function givenVariables(named: Policy, env: Environment): ReadonlySet<string> {
  const builtIn: readonly string[] = POLICY_KEYS.environment.pass.default;
  const passed = Object.keys(env).filter((name) =>
    named.environment.pass.some((entry) => !builtIn.includes(entry) && isListedVariable(name, [entry])),
  );
  return new Set([...Object.keys(named.environment.set), ...passed]);
}

/** A host and port, for the commands of one workspace: whichever program of theirs connects. What is denied is never asked. */
function connectionFingerprint({ host, port }: WantedConnection, workspace: string, profile: string): string {
  const text = JSON.stringify(['sandbox-run connection 1', host, port, workspace, profile]);
  return createHash('sha256').update(text).digest('hex');
}

/** A program that a command names, and the file that would be executed for it. */
interface FingerprintExecutable {
  /** As the command names it. */
  readonly name: string;
  /** Canonical; `undefined`: none was found, or it is no program. */
  readonly path: string | undefined;
  /** Changes whenever the file does: device, inode, size, times, …. */
  readonly identity: string | undefined;
}

/** Everything that matters about a command: an answer is good for exactly this. */
export interface FingerprintParts {
  readonly command: Command;
  /** Canonical. */
  readonly cwd: string;
  readonly executables: readonly FingerprintExecutable[];
  /** As in `ApprovalRequest`; in any order. */
  readonly environment: readonly string[];
  readonly profile: string;
  readonly confinement: readonly string[];
  /** The version of the effective policy: another policy is another request. */
  readonly policyVersion: string;
}

/** SHA-256, hexadecimal. Different parts give different text to hash: nested lists in JSON, in which nothing runs together. */
export function fingerprint(parts: FingerprintParts): string {
  const { command, executables, environment } = parts;
  const text = JSON.stringify([
    'sandbox-run approval 1',
    typeof command === 'string' ? ['shell', command] : ['argv', ...command],
    parts.cwd,
    executables.map(({ name, path, identity }) => [name, path ?? null, identity ?? null]),
    [...environment].sort(),
    parts.profile,
    parts.confinement,
    parts.policyVersion,
  ]);
  return createHash('sha256').update(text).digest('hex');
}
