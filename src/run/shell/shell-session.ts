import { randomUUID } from 'node:crypto';
import { SandboxError } from '../../errors/sandbox-error.ts';
import { SHELL_GROUPS } from '../../kernel/seccomp/filter.ts';
import { seccompProgram } from '../../kernel/seccomp/program.ts';
import type { ExecutionResult } from '../../model/execution-result.ts';
import type { NativeFailure, NativeOutcome } from '../../native/contract.ts';
import { isPromise } from '../../util/promise.ts';
import type { Admission, Admit } from '../admission.ts';
import { canceledBefore, classify, type RunContext } from '../classify.ts';
import type { SettledCommand } from '../command-line.ts';
import { describeFailure } from '../failure.ts';
import { createOutputConsumer } from '../output/consumer.ts';
import { createOutputSettings } from '../output/settings.ts';
import type { PreparedSandbox } from '../prepare-sandbox.ts';
import { checkSessionOptions, checkTurnOptions } from './check-session-options.ts';
import type { ShellOptions, ShellSession, TurnOptions, TurnResult } from './session-options.ts';
import { changedVariables, factsOf } from './shell-facts.ts';
import { type ShellProcess, type ShellStart, startShell, type TurnOutcome } from './shell-process.ts';
import { readShellState, type ShellState } from './shell-state.ts';
import { checkSnapshot, isUsableDirectory, restoreVariables, type ShellSnapshot } from './snapshot.ts';

/** What a session needs of its sandbox. */
export interface ShellParts {
  readonly prepared: PreparedSandbox;
  readonly admit: Admit;
  readonly settle: (
    command: string,
    options: { readonly cwd?: string; readonly env?: Readonly<Record<string, string | undefined>> },
  ) => SettledCommand;
  readonly onClosed: (session: ShellSession) => void;
}

const BROKEN =
  'the shell was ended, because the command wrote to the channel through which the shell reports to its session';

const IDLE_UNSEEN = 'limits.idle_timeout_seconds does not hold for the commands of a session';

/** The first turn tells what the shell begins with; a shell that cannot even do that is of no use. */
const START_TIMEOUT_MS = 20_000;

/** What the confinement's own filter leaves to commands and a shell cannot; `undefined`: there is nothing of it. */
async function filterOfShells({ plan, features }: PreparedSandbox): Promise<Uint8Array | undefined> {
  const { seccompGroups: held } = plan;
  if (held.length === 0 || SHELL_GROUPS.every((group) => held.includes(group))) return undefined;
  return (await seccompProgram(SHELL_GROUPS, features.architecture)).bytes;
}

/**
 * Starts a session.
 * @throws {SandboxError} `usage.invalid`, `cwd.unusable`, `session.closed` if the shell cannot be started.
 */
export async function openShell(parts: ShellParts, given: ShellOptions = {}): Promise<ShellSession> {
  const options = checkSessionOptions(given);
  const { prepared, admit, settle } = parts;
  const { addon, confinement, policy, plan, settle: settleLeftBehind } = prepared;
  const snapshot = options.restore === undefined ? undefined : checkSnapshot(options.restore, plan);
  const output = createOutputSettings(policy.limits)({});
  const warnings: string[] = policy.limits.idleTimeoutMs === 0 ? [] : [IDLE_UNSEEN];
  const addedFilter = await filterOfShells(prepared);
  const plain = settle(':', {});
  const usual = plain.ok ? plain.variables : {};

  let shell: ShellProcess;
  let first: ShellState;
  let state: ShellState | undefined;
  let lastKnown: ShellState;
  let ranUnseenCode = false;
  let closed = false;

  async function start(from: ShellSnapshot | undefined): Promise<void> {
    const restored = from === undefined ? undefined : restoreVariables(from.env, usual);
    for (const { name, why } of restored?.refused ?? []) {
      const warning = `${name} was not restored: ${why}`;
      if (!warnings.includes(warning)) warnings.push(warning);
    }
    const cwd = from?.cwd ?? options.cwd;
    const settled = settle(':', {
      ...(cwd === undefined ? {} : { cwd }),
      env: { ...options.env, ...restored?.env },
    });
    if (!settled.ok) throw new SandboxError(settled.code, settled.message);
    const begun = begin({
      program: settled.program,
      env: settled.env,
      cwd: settled.cwd,
      output,
      killGraceMs: policy.limits.killGraceMs,
      addedFilter,
    });
    const hello = await begun.turn({ text: ':', assignments: '', timeout: START_TIMEOUT_MS });
    const said = hello.alive && !hello.end.timedOut ? readShellState(hello.end.state) : undefined;
    if (said === undefined) {
      const outcome = hello.alive ? await begun.kill() : hello.outcome;
      throw startFailure(outcome);
    }
    shell = begun;
    first = said;
    state = said;
    lastKnown = said;
    ranUnseenCode = false;
  }

  function begin(how: ShellStart): ShellProcess {
    try {
      return startShell(addon, confinement, how);
    } catch (error) {
      const failure = (error as { readonly failure?: NativeFailure }).failure;
      if (failure === undefined) throw error;
      // No thread or no descriptor for it.
      const { code, message } = describeFailure(failure);
      throw new SandboxError(code, message);
    }
  }

  /** A new shell in place of one that has ended. */
  async function restart(): Promise<void> {
    const { cwd, exported } = lastKnown;
    await start({ cwd: isUsableDirectory(cwd, plan) ? cwd : plan.workspace, env: exported });
  }

  await start(snapshot);

  let controller: AbortController | undefined;
  let running = false;
  let queue: Promise<unknown> = Promise.resolve();

  const isClosed = () =>
    new SandboxError('session.closed', 'this session has ended; make a new one with sandbox.session()');

  async function runNow(command: string, options: TurnOptions): Promise<TurnResult> {
    if (closed) throw isClosed();
    const mine = new AbortController();
    controller = mine;
    const signal =
      options.signal === undefined ? mine.signal : AbortSignal.any([mine.signal, options.signal]);
    const isGivenUp = () => closed || signal.aborted;
    const after = (result: ExecutionResult, restarted = false): TurnResult => ({
      ...result,
      cwdAfter: lastKnown.cwd,
      restarted,
    });
    try {
      const changed = changedVariables(lastKnown, { variables: usual, first });
      const env =
        changed === undefined && options.env === undefined ? undefined : { ...changed, ...options.env };
      const { approved, taints, timeout = policy.limits.timeoutMs } = options;
      const asked = admit({
        command,
        options: {
          cwd: lastKnown.cwd,
          ...(env === undefined ? {} : { env }),
          ...(approved === undefined ? {} : { approved }),
          ...(taints === undefined ? {} : { taints }),
          ...(options.timeout === undefined ? {} : { timeout }),
        },
        signal: () => signal,
        shell: factsOf(state, first, ranUnseenCode),
      });
      const admission: Admission = isPromise(asked) ? await asked : asked;
      if (!admission.admitted) return after(admission.result);
      const { context, ended, examination } = admission;
      if (isGivenUp()) {
        const canceled = canceledBefore(context);
        return after((await ended?.(canceled, false)) ?? canceled);
      }
      const leavesDoubts = examination?.leavesDoubts() ?? false;
      const launched = await launchTurn(command, options, timeout, context, signal);
      if (leavesDoubts) ranUnseenCode = true;
      const result = (await ended?.(launched.result, true)) ?? launched.result;
      if (launched.alive) return after(result);
      if (closed) return after(result);
      try {
        await restart();
        return after(result, true);
      } catch (error) {
        // The command has run: its result is told, and the next one is told that there is no shell.
        closed = true;
        parts.onClosed(session);
        const why = error instanceof Error ? error.message : String(error);
        return after({ ...result, warnings: [...result.warnings, `the session has ended: ${why}`] });
      }
    } finally {
      if (controller === mine) controller = undefined;
    }
  }

  async function launchTurn(
    command: string,
    options: TurnOptions,
    timeout: number,
    context: RunContext,
    signal: AbortSignal,
  ): Promise<{ readonly result: ExecutionResult; readonly alive: boolean }> {
    const consumer = options.onOutput && createOutputConsumer(options.onOutput, () => shell.interrupt());
    const onAbort = () => shell.interrupt();
    signal.addEventListener('abort', onAbort, { once: true });
    running = true;
    const begun = performance.now();
    let how: TurnOutcome;
    try {
      how = await shell.turn({
        text: command,
        assignments: assignmentsOf(options.env),
        timeout,
        receiver: consumer,
      });
    } finally {
      running = false;
      signal.removeEventListener('abort', onAbort);
    }
    if (how.alive) {
      state = readShellState(how.end.state);
      if (state !== undefined) lastKnown = state;
    }
    const outcome = outcomeOf(how, performance.now() - begun, closed);
    const leftBehind = settleLeftBehind(outcome);
    const after = { leftBehind, warnings: how.alive || !how.broken ? [] : [BROKEN] };
    const result = classify(context, outcome, after, plan, { view: output.view, spilled: undefined });
    // Whoever ends the command or the session does not wait for a consumer, which may never be done.
    const settled = await consumer?.settled(Promise.resolve(result), signal);
    return { result: settled ?? result, alive: how.alive };
  }

  async function close(): Promise<void> {
    if (closed) return;
    closed = true;
    controller?.abort();
    await shell.kill();
    await queue.catch(() => {});
    // In the meantime a new one may have taken its place.
    await shell.kill();
    parts.onClosed(session);
  }

  const session: ShellSession = {
    id: randomUUID(),
    get cwd() {
      return lastKnown.cwd;
    },
    get warnings() {
      return [...warnings];
    },
    run: (command, given = {}) => {
      let options: TurnOptions;
      try {
        if (typeof command !== 'string')
          throw new SandboxError('usage.invalid', 'a command of a session must be a shell string');
        options = checkTurnOptions(given);
        if (closed) throw isClosed();
      } catch (error) {
        return Promise.reject(error);
      }
      const turn = queue.then(() => runNow(command, options));
      queue = turn.catch(() => {});
      return turn;
    },
    interrupt: () => {
      if (running) return shell.interrupt();
      if (controller === undefined) return false;
      controller.abort();
      return true;
    },
    snapshot: () => {
      const env = { ...lastKnown.exported };
      for (const name of ['PWD', 'OLDPWD', 'SHLVL', '_', 'HOME', 'TMPDIR']) delete env[name];
      return { cwd: lastKnown.cwd, env };
    },
    close,
    [Symbol.asyncDispose]: close,
  };
  return session;
}

function startFailure(outcome: NativeOutcome): SandboxError {
  if (outcome.failure !== undefined) {
    const { code, message } = describeFailure(outcome.failure, outcome.treeEnded);
    return new SandboxError(code, message);
  }
  const how = outcome.signal === 0 ? `exited ${outcome.exitCode}` : `was ended by signal ${outcome.signal}`;
  const said = outcome.stderr?.toString('utf8').trim().split('\n').at(-1) ?? '';
  return new SandboxError(
    'session.closed',
    `the shell of the session cannot be started: it ${how}${said === '' ? '' : ` (${said})`}`,
  );
}

/** As bash reads them: values in single quotes. */
function assignmentsOf(env: Readonly<Record<string, string>> | undefined): string {
  return Object.entries(env ?? {})
    .map(([name, value]) => `${name}='${value.replaceAll("'", "'\\''")}' `)
    .join('');
}

/**
 * A turn as if it had been a command of its own: how it ended, or how the shell did that ended with it.
 * `durationMs`: of the turn, `closed`: the session was ended.
 */
function outcomeOf(how: TurnOutcome, durationMs: number, closed: boolean): NativeOutcome {
  if (!how.alive) return { ...how.outcome, durationMs, canceled: how.outcome.canceled || closed };
  return {
    ...how.end,
    kind: 'ended',
    signal: 0,
    canceled: how.end.interrupted,
    // The shell is still there, and perhaps jobs in the background.
    treeEnded: false,
    userCpuMs: 0,
    systemCpuMs: 0,
    maxRssKib: 0,
    launcherMaxRssKib: 0,
  };
}
