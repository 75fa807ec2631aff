import { statSync } from 'node:fs';
import { constants } from 'node:os';
import { join } from 'node:path';
import { isBeneath } from '../../base/absolute-path.ts';
import { errnoOf } from '../../base/errno-of.ts';
import { SandboxError } from '../../base/errors/sandbox-error.ts';
import { shellWord } from '../../base/shell-quote.ts';
import type { NativeFailure } from '../../confine/native/contract.ts';
import { packageDirectory } from '../../confine/native/load.ts';
import type { ControlId } from '../../confine/plan/enforcement-report.ts';
import type { LaunchPlan } from '../../confine/plan/launch-plan.ts';
import { createDecider, type DecisionPorts, type DecisionRequest, WITHOUT } from '../../gate/index.ts';
import type { Command, CommandLineOptions, SandboxOptions, SpawnOptions } from '../../model/index.ts';
import { packageVersion } from '../../version.ts';
import type { Environment } from '../../workspace/index.ts';
import { type Assembly, assemble, checkOnly } from '../assemble.ts';
import { type CommandRunner, isClosed, type RunnerPorts } from '../command-runner.ts';
import { notRun } from '../launch/classify.ts';
import { CommandError } from '../launch/command-error.ts';
import { requestOf } from '../launch/decided-command.ts';
import { describeFailure } from '../launch/failure.ts';
import type { ResolvedPolicy } from '../resolve/resolve-policy.ts';
import { Handover } from './handover.ts';

/** What a program of the application's own starts, so that a command runs in the sandbox. */
export interface SandboxCommandLine {
  /** Absolute path of the program to start. */
  readonly program: string;
  /** Its arguments. They say nothing of the command and of the policy. */
  readonly args: string[];
  /** Its whole environment. Variables for the command belong into the options: these are those of the launcher. */
  readonly env: Record<string, string>;
  /** Where the command starts, canonical; the launcher can be started anywhere. */
  readonly cwd: string;
  /** Program and arguments as one line for a POSIX shell. */
  readonly shell: string;
}

/** What the process that is started gets: all that a sandbox of its own is made from, and what was decided. */
export interface Embedded {
  readonly version: string;
  /** Without what is no data. */
  readonly resolved: Omit<ResolvedPolicy, 'parentBesideTmp' | 'shadow' | 'around'>;
  readonly options: Pick<SandboxOptions, 'principal' | 'isCopy' | 'tool'>;
  readonly isOfSession: boolean;
  /** What holds the commands of this sandbox. */
  readonly held: string;
  readonly command: Command;
  readonly run: Omit<SpawnOptions, 'signal' | 'pty' | 'job'>;
  readonly terminal: boolean;
  /** Variables of this process that say where things of ours are, and all that commands get. */
  readonly env: Readonly<Record<string, string>>;
}

/** Outcome in the audit record: another process runs the command, and its end is not known here. */
const HANDED_OVER = 'handed-over';

/** What says where things of ours are, and how they are reached. */
const OF_LAUNCHER = /^(?:HOME|PATH|TMPDIR|USER|LANG|XDG_\w+|SANDBOX_RUN_\w+)$/;

/** What Node itself may need in order to start. */
const OF_LOADER = ['LD_LIBRARY_PATH'] as const;

const OF_AMOUNTS: ReadonlySet<ControlId> = new Set<ControlId>(['resource-limits', 'denials']);

/** What holds the commands of a sandbox, in one text; amounts and explanations aside. */
export function holdingOf({ report }: LaunchPlan): string {
  const held = report.controls.flatMap(({ id, state }) => (OF_AMOUNTS.has(id) ? [] : [[id, state]]));
  return JSON.stringify([report.backend, held]);
}

/** The sandbox that command lines are made for. */
interface Embedding {
  readonly runner: CommandRunner;
  readonly assembly: Assembly;
  readonly ports: RunnerPorts;
}

/** Makes command lines for one sandbox. What nobody has started goes with it. */
export class CommandLines {
  readonly #sandbox: Embedding;
  readonly #handover = new Handover();
  readonly #asking = new Set<AbortController>();
  #closed = false;

  constructor(sandbox: Embedding) {
    this.#sandbox = sandbox;
  }

  /**
   * Decides about a command, and hands over what runs it.
   * @throws {CommandError} it is refused; `handover.unavailable`; `state.unusable`; `launch.failed`.
   */
  async make(command: Command, given: CommandLineOptions): Promise<SandboxCommandLine> {
    const { runner, assembly, ports } = this.#sandbox;
    const { plan, policy } = runner.prepared;
    refuseWhatStaysHere(assembly);
    const { terminal = false, ...said } = given;
    const asked = { ...said, ...(terminal ? { pty: { cols: 80, rows: 24 } } : {}) };
    const options = runner.withEffect(asked, { stdio: [0, 1, 2] });
    const controller = new AbortController();
    this.#asking.add(controller);
    try {
      const decide = createDecider({ ...ports, outcome: () => HANDED_OVER });
      const request = requestOf(command, options, { signal: () => controller.signal });
      const decided = await decide(request);
      if (!decided.allowed || decided.resolved?.ok !== true)
        throw this.#closed ? isClosed() : new CommandError(command, runner.refused(decided));
      const unusable = notEnterable(decided.resolved.cwd, plan.workspace, options);
      if (unusable !== undefined) {
        await decided.ended?.({ result: undefined, started: false });
        const error = describeFailure(unusable);
        throw new CommandError(command, notRun(runner.contextOf(decided), { status: 'setup-failed', error }));
      }
      // The end of the command is not known here.
      await decided.ended?.({ result: undefined, started: !this.#closed });
      if (this.#closed) throw isClosed();
      const { taints = [] } = options;
      const inForce = await ports.session.taints(taints, policy.gate.taints);
      const { cwd } = decided.resolved;
      const again: DecisionRequest = { ...request, cwd, taints: inForce, approved: undefined };
      const isApproved = decided.approval?.approved === true || options.approved !== undefined;
      const fingerprint = isApproved ? await fingerprintThere(assembly, runner, again) : undefined;
      if (this.#closed) throw isClosed();
      const { env, timeout, effect, on } = asked;
      const value: Embedded = {
        version: packageVersion,
        resolved: asData(assembly.resolved),
        options: ofEmbedded(assembly),
        isOfSession: assembly.options.session !== undefined,
        held: holdingOf(plan),
        command,
        run: {
          ...{ cwd, env, timeout, effect, on, taints: inForce },
          ...(fingerprint === undefined ? {} : { approved: { fingerprint } }),
        },
        terminal,
        env: variablesFor(assembly),
      };
      const { temporaryParent, around } = assembly.resolved;
      return lineOf(this.#handover.put(temporaryParent, value), cwd, around.env);
    } finally {
      this.#asking.delete(controller);
    }
  }

  close(): void {
    this.#closed = true;
    for (const controller of this.#asking) controller.abort();
    this.#handover.close();
  }
}

const cannotGo = (what: string) =>
  new SandboxError(
    'handover.unavailable',
    `${what} cannot go with a command line, because another process runs it; use run(), start() or spawn()`,
  );

/** Refuses options that need this process while the command runs or when it has ended. */
function refuseWhatStaysHere({ options, policy, resolved, stateful }: Assembly): void {
  const { network } = policy;
  if ('deno' in process.versions || 'bun' in process.versions)
    throw new SandboxError(
      'handover.unavailable',
      'command lines start Node, which this process is not; use run(), start() or spawn()',
    );
  if (network.mode === 'listed' && network.unlisted === 'ask')
    throw cannotGo('network.unlisted = "ask", which asks while the command runs,');
  if (network.mode === 'listed' && options.gate?.lookup !== undefined) throw cannotGo('gate.lookup');
  if (stateful.tellHooks !== WITHOUT.tellHooks) throw cannotGo('a hook that is told how commands end');
  if (resolved.shadow !== undefined) throw cannotGo('the option shadow');
}

/**
 * Why a command cannot start in a directory of the workspace: a spawn of the caller's there would say that the program is missing.
 * A layer may have what the workspace has not.
 */
function notEnterable(cwd: string, workspace: string, { effect }: SpawnOptions): NativeFailure | undefined {
  if (!isBeneath(cwd, workspace) || (effect !== undefined && effect !== 'direct')) return undefined;
  const { ENOENT, ENOTDIR } = constants.errno;
  let errno = ENOTDIR;
  try {
    if (statSync(cwd).isDirectory()) return undefined;
  } catch (error) {
    const code = errnoOf(error);
    // Anything else is for the launch to say.
    if (code !== 'ENOENT' && code !== 'ENOTDIR') return undefined;
    if (code === 'ENOENT') errno = ENOENT;
  }
  return { stage: 'cwd', errno, path: cwd };
}

function asData({
  parentBesideTmp: _,
  shadow: __,
  around: ___,
  ...data
}: ResolvedPolicy): Embedded['resolved'] {
  return data;
}

function ofEmbedded({ options, stateful }: Assembly): Embedded['options'] {
  const { isCopy, tool } = options;
  return { principal: stateful.principal, isCopy, tool };
}

/**
 * What the command will be asked about with where it is launched, which is made as it is made there: without the guards of this
 * process, which have had their say.
 */
async function fingerprintThere(
  assembly: Assembly,
  { prepared, resolve }: CommandRunner,
  request: DecisionRequest,
): Promise<string | undefined> {
  const there = await assemble(
    assembly.resolved,
    prepared.plan,
    optionsThere(ofEmbedded(assembly)),
    COUNTS_THERE,
  );
  try {
    const ports = portsThere({ ...(await there.ports()), resolve });
    const { seen, resolved: found } = await createDecider(checkOnly(ports))(request);
    if (seen === undefined || found?.ok !== true) return undefined;
    return ports.makeRequest({
      ...{ command: request.command, cwd: seen.judgement.cwd, decision: seen.decision },
      ...{ effects: seen.effects(), variables: found.variables },
      ...{ changed: Object.keys(request.env ?? {}), details: request.details?.() ?? [], once: '' },
    }).fingerprint;
  } finally {
    await there.close();
  }
}

/** The options of the sandbox in the process that launches the command, which was counted before. */
export const optionsThere = (options: Embedded['options']): SandboxOptions => ({
  ...options,
  gate: { budget: WITHOUT.budget },
});

/** In the launching process nobody is asked, and nothing is counted or recorded a second time. */
export const COUNTS_THERE = { guards: false, records: false } as const;

/** @see COUNTS_THERE */
export const portsThere = (ports: DecisionPorts): DecisionPorts => {
  const { approvals, budget, record, tellHooks, session } = WITHOUT;
  return { ...ports, approvals, budget, record, tellHooks, session };
};

function variablesFor({ environment, resolved }: Assembly): Embedded['env'] {
  const own = Object.entries(resolved.around.env).filter(
    (entry): entry is [string, string] => entry[1] !== undefined && OF_LAUNCHER.test(entry[0]),
  );
  return { ...environment.variables, ...Object.fromEntries(own) };
}

function lineOf(claim: readonly string[], cwd: string, around: Environment): SandboxCommandLine {
  const program = process.execPath;
  const args = [join(packageDirectory(), 'dist/cli.cjs'), 'embedded', ...claim];
  const env: Record<string, string> = {};
  for (const name of OF_LOADER) {
    const value = around[name];
    if (value !== undefined) env[name] = value;
  }
  // Where this process is none of Node's own.
  if (process.versions.electron !== undefined) env.ELECTRON_RUN_AS_NODE = '1';
  const variables = Object.entries(env).map(([name, value]) => `${name}=${value}`);
  const words = ['/usr/bin/env', '-i', ...variables, program, ...args];
  return { program, args, env, cwd, shell: words.map(shellWord).join(' ') };
}
