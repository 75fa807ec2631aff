import { statSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import { sessionNameOf } from '../../agents/index.ts';
import { deferred } from '../../base/deferred.ts';
import { directoryPath } from '../../base/directory-path.ts';
import { SandboxError } from '../../base/errors/sandbox-error.ts';
import { describeShortage } from '../../base/errors/shortage.ts';
import type { MaybePromise } from '../../base/promise.ts';
import { loadAddon } from '../../confine/native/load.ts';
import { within } from '../../gate/index.ts';
import type { Command, SandboxOptions, Taint } from '../../model/index.ts';
import { hasState, lazyState, type OpenSandbox, stateDirectory } from '../../run/index.ts';
import { type Call, listenForCalls, type Work } from '../../serve/index.ts';
import { ensureStateDirectory } from '../../workspace/index.ts';
import { SUBCOMMANDS } from '../dispatch.ts';
import { answerCall } from '../hook/answer.ts';
import { parseRunArguments } from '../run/options.ts';
import * as run from '../run/run.ts';
import { isServiceCommand, parseChoice, parseUp } from '../services/options.ts';
import { Supervisor, statusOf } from '../services/supervisor.ts';
import { parseShellArguments } from '../sh/arguments.ts';
import * as sh from '../sh/confined.ts';
import { readShellSettings } from '../sh/settings.ts';
import { gateOf } from '../shared/ask-here.ts';
import { caller, currentDirectory, onBehalfOf, serveOthersOnly } from '../shared/caller.ts';
import { printError } from '../shared/print.ts';
import { aborted, SignalForwarding, untilEnded } from '../shared/signals.ts';
import { AgentCommands, quoted, type SessionBackground } from './background.ts';
import { type Lease, OpenPolicies } from './pool.ts';
import { Rehearsal, silentCaller } from './rehearsal.ts';
import { Sessions } from './sessions.ts';
import { forgetEnds, notedEnds, noteEnd, type Rehearsed } from './start.ts';

/** Milliseconds without a call after which the server ends. */
const UNUSED_MS = 1_800_000;
/** Milliseconds between two looks at whether the socket is still in place, and which sessions have ended. */
const LOOK_MS = 10_000;
/** Milliseconds for services and sandboxes to be closed when the server ends. */
const ENDING_MS = 10_000;
/** Milliseconds for which a server that was started for a service waits while the user is asked about that service. */
const QUESTION_MS = 120_000;
/** The exit status for an error of this program. */
const FAILED = 125;

/**
 * Internal, started by `hook`, `--warm` and `up`: serves calls of this user that native/client hands over on a socket. A call behaves
 * as in a process of its own, with the caller's environment, directory and streams. Calls that would behave differently in the server
 * (a terminal, a question on it, help) are left to the client.
 */
export async function warm([path = '', rehearsed]: readonly string[]): Promise<number> {
  ensureStateDirectory(dirname(path));
  return untilEnded(async ({ signal }) => {
    const addon = loadAddon();
    const agents = new AgentCommands();
    const policies = new OpenPolicies(agents, () => sessions.endSoon());
    const services = new Supervisor(path, agents, () => sessions.endWithoutSessions());
    const sessions = new Sessions(services);
    const rehearsal = new Rehearsal(policies, () => sessions.isBusy);
    const state = lazyState(stateDirectory());
    // Each call opens and closes the database, which is slow unless this process has it open already.
    const keepOpen = async () => void (hasState() && (await state()));
    const session: Rehearsed | undefined = rehearsed === undefined ? undefined : JSON.parse(rehearsed);
    const listener = await listenForCalls({
      ...{ path, addon, unusedTimeout: UNUSED_MS, onBehalfOf },
      startsNothing: ([first = '']) => isServiceCommand(first) && first !== 'up',
      isNeeded: () => services.isBusy,
      take: async (call) => {
        const [first = '', ...rest] = call.args;
        if (isServiceCommand(first) && first !== 'up')
          return sessions.during(async () => {
            const choice = quietly(call.caller, () => parseChoice(first, rest));
            return choice && services.answer(first, choice);
          });
        if (sessions.endsSoon) return undefined;
        return sessions.during(async () => {
          await keepOpen().catch(() => {});
          if (first === 'up') {
            const taken = await takeService(call, rest, policies, services);
            // The client may ask its user now, and call again with the answer.
            if (taken === undefined) setTimeout(() => sessions.endWithoutSessions(), QUESTION_MS).unref();
            return taken;
          }
          return takeCall(call, { policies, sessions, rehearsal, services, agents, path });
        });
      },
    });
    serveOthersOnly();
    if (session !== undefined) {
      // Another process answered the start of this session, so this server has not seen it.
      sessions.record({ kind: 'session-start', session: session.session, agentGoesOn: false });
      rehearsal.begin(session, { ...process.env });
    }
    const socket = statSync(listener.path).ino;
    const unreachable = deferred<void>();
    const look = () => {
      if (!isThere(listener.path, socket)) unreachable.resolve();
      // Hooks that other processes answered, while this server was starting or suspended, have noted the ends of sessions.
      for (const { at, session: ended, agentGoesOn } of notedEnds(path))
        if ((at >= performance.timeOrigin || ended === session?.session) && sessions.recordEnd(ended)) {
          // The note does not name the agent, so the session of any agent with this ID is meant.
          const name = sessionNameOf('', ended);
          endSession({ policies, services, agents }, (one) => one.endsWith(name), agentGoesOn);
        }
    };
    look();
    const looking = setInterval(look, LOOK_MS);
    await Promise.race([listener.ended, sessions.over, unreachable.promise, aborted(signal)]);
    clearInterval(looking);
    rehearsal.end();
    // Something that cannot be closed, because a thread of it is blocked, ends with the process.
    const closed = async () => {
      await services.endAll();
      await listener.close('the server is stopping');
      await policies.close();
      await state.close();
    };
    await within(closed(), ENDING_MS);
    return 0;
  });
}

/** The parts of a server that its calls share. */
interface Parts {
  readonly policies: OpenPolicies;
  readonly sessions: Sessions;
  readonly rehearsal: Rehearsal;
  readonly services: Supervisor;
  readonly agents: AgentCommands;
  readonly path: string;
}

/**
 * Ends the services, background commands and machine of a session that has ended. If the agent keeps running and has background
 * commands, these and the machine are kept for its next session. Returns a line for the user; `undefined`: nothing was ended.
 */
function endSession(
  { policies, services, agents }: Pick<Parts, 'policies' | 'services' | 'agents'>,
  isOver: (session: string) => boolean,
  agentGoesOn: boolean,
): string | undefined {
  const isInChain = agents.withChain(isOver);
  const keepsRunning = agentGoesOn && agents.isRunning(isInChain);
  const commands = keepsRunning ? [] : agents.endSession(isInChain);
  const ended = [
    ...services.endSession(keepsRunning ? isOver : isInChain),
    ...commands.map(({ command }) => quoted(command)),
  ];
  if (!keepsRunning) policies.endSession(isInChain);
  return ended.length === 0 ? undefined : `sandbox-run: ended with this session: ${ended.join(', ')}`;
}

/** Whether the path still leads to this server's socket. If not, no client finds the server any more. */
const isThere = (path: string, inode: number) => statSync(path, { throwIfNoEntry: false })?.ino === inode;

/** The work for a call; `undefined`: the server does not accept it, and the client performs it in a new process. */
async function takeCall(
  { args, caller, hasTerminal, above }: Call,
  { policies, sessions, rehearsal, services, agents, path }: Parts,
): Promise<Work | undefined> {
  const [first = '', ...rest] = args;
  if (first === 'hook') {
    const wanted = quietly(caller, () => sessions.hookOf(rest));
    if (wanted === undefined || !hasPlainPolicy(wanted.options.sandbox)) return undefined;
    const { agent, options } = wanted;
    let rewritten: readonly string[] | undefined;
    const kept = {
      ...options,
      createChecker: policies.checker.bind(policies),
      onRewritten: (words: readonly string[]) => {
        rewritten = words;
      },
    };
    return {
      do: async () => {
        const status = await answerCall({ agent, options: kept }, (event) => {
          sessions.record(event);
          if (event.kind === 'other') return undefined;
          const name = sessionNameOf(agent, event.session);
          if (event.kind === 'session-end') {
            noteEnd(path, event);
            sessions.rememberPrevious(name, above, rest, event.agentGoesOn);
            return endSession({ policies, services, agents }, (one) => one === name, event.agentGoesOn);
          }
          sessions.recordCall(name, above, event.kind === 'session-start');
          if (event.kind !== 'session-start') return undefined;
          const previous = event.agentGoesOn ? sessions.takePrevious(above, rest) : undefined;
          if (previous !== undefined && agents.isRunning(agents.withChain((one) => one === previous)))
            agents.continueSession(previous, name);
          forgetEnds(path, [event.session]);
          rehearsal.begin({ args: rest, session: event.session, cwd: currentDirectory() }, caller.env);
          return undefined;
        });
        // Only after the agent has its answer, so that it does not wait for this.
        if (rewritten !== undefined) setImmediate(lookAhead, rewritten, caller, policies);
        return status;
      },
      [Symbol.dispose]: () => {},
    };
  }
  const asked = await quietly(caller, () => (first === 'sandbox-sh' ? ofShell(rest) : ofRun(args)));
  // The hooks before it may have been answered elsewhere, and its end may be all that is heard here of its session.
  if (asked?.session !== undefined) sessions.recordCall(asked.session, above, false);
  return asked && takeCommand(asked, hasTerminal, policies, services);
}

/**
 * The work for a call of `up`; `undefined`: the server does not accept it, and the client prints what is wrong, asks its user, or
 * reads which services the policy files name.
 */
async function takeService(
  { caller, hasTerminal }: Call,
  args: readonly string[],
  policies: OpenPolicies,
  services: Supervisor,
): Promise<Work | undefined> {
  const wish = quietly(caller, () => parseUp(args));
  if (wish === undefined || !('command' in wish)) return undefined;
  const signals = new SignalForwarding();
  const gate = gateOf({ quiet: wish.quiet }, signals);
  // Signals to the call of `up` must not reach the service, which outlives that call.
  signals[Symbol.dispose]();
  const options = { ...whereCalled(wish.sandbox), gate };
  if (!hasPlainPolicy(options)) return undefined;
  const lease = await leased(() => policies.serviceSandbox(options, caller));
  if (lease === undefined) return undefined;
  const asked = {
    command: wish.command,
    taints: wish.run.taints ?? [],
    asksNobody: wish.run.approved !== false,
  };
  if (hasTerminal && (await isAskedThere(lease.lent, asked))) {
    lease[Symbol.dispose]();
    return undefined;
  }
  return {
    do: () => services.up({ ...wish, sandbox: options }, lease).catch(statusOf),
    [Symbol.dispose]: () => {},
  };
}

/** Resolves the policy for a command that a hook has just rewritten, while the agent starts that command. */
function lookAhead(words: readonly string[], { cwd, env }: Call['caller'], policies: OpenPolicies): void {
  const caller = silentCaller(cwd(), env);
  const look = async () => {
    using signals = new SignalForwarding();
    const asked = ofRun(words);
    if (asked !== undefined) await policies.lookAhead(await asked.options(signals), caller);
  };
  // Errors are ignored on purpose: the command meets the same error and reports it.
  void onBehalfOf(caller, look).catch(() => {});
}

/** Parses arguments without printing anything. `undefined`: the arguments are wrong, and the client prints why. */
function quietly<T>(caller: Call['caller'], parse: () => T): T | undefined {
  try {
    return onBehalfOf({ ...caller, write: () => false }, parse);
  } catch (error) {
    if (error instanceof SandboxError) return undefined;
    throw error;
  }
}

/** A call that runs a command in a sandbox. */
interface Asked {
  readonly command: Command;
  readonly taints?: readonly Taint[];
  /** The user has approved the command, or must not be asked because the terminal may be the model's. */
  readonly asksNobody?: boolean;
  /** The session of an agent, by `sessionNameOf`. */
  readonly session?: string | undefined;
  /** The call is accepted only if the command reaches running services: otherwise the server has no advantage for it. */
  readonly onlyForServices?: boolean;
  readonly options: (signals: SignalForwarding) => MaybePromise<SandboxOptions>;
  readonly run: (
    sandbox: OpenSandbox,
    signals: SignalForwarding,
    background: SessionBackground | undefined,
  ) => Promise<number>;
  readonly failed: (error: SandboxError) => number;
}

function ofRun(args: readonly string[]): Asked | undefined {
  const [first = ''] = args;
  if (Object.hasOwn(SUBCOMMANDS, first)) return undefined;
  const parsed = parseRunArguments(args);
  if (
    parsed === undefined ||
    parsed.tty ||
    parsed.dryRun === true ||
    (parsed.approval ?? parsed.asked) !== undefined
  )
    return undefined;
  const wanted = { ...parsed, sandbox: whereCalled(parsed.sandbox) };
  if (!hasPlainPolicy(wanted.sandbox)) return undefined;
  return {
    ...{
      command: wanted.command,
      taints: wanted.taints,
      asksNobody: wanted.approved === true || wanted.forModel === true,
      session:
        wanted.forModel === true && typeof wanted.sandbox.session === 'string'
          ? wanted.sandbox.session
          : undefined,
      onlyForServices: wanted.warm !== true && wanted.sandbox.session === undefined,
    },
    options: (signals) => run.sandboxFor(wanted, signals),
    run: (sandbox, signals, background) =>
      run.runIn(sandbox, wanted, signals, [], wanted.forModel === true ? background : undefined),
    failed: (error) => {
      if (wanted.forModel === true) return run.statusForModel(error);
      printError(error.problem, error.remedy);
      return error.exitStatus;
    },
  };
}

function ofShell(args: readonly string[]): Asked | undefined {
  const wanted = parseShellArguments(args);
  // Other sources are left to the client: a script must be read in the sandbox first, and an interactive shell needs the terminal.
  if (wanted.kind !== 'run' || wanted.source.from !== 'string') return undefined;
  const confined = { wanted, settings: readShellSettings(caller().env) };
  return {
    command: sh.commandFor(wanted.source.text, wanted),
    options: (signals) => sh.sandboxFor(confined, signals),
    run: (sandbox, signals) => sh.runIn(sandbox, confined, signals),
    failed: sh.statusOf,
  };
}

/** False if the policy is a special file, such as a named pipe: reading it could block the server for other callers. */
function hasPlainPolicy({ policy }: SandboxOptions): boolean {
  if (typeof policy !== 'string') return true;
  return statSync(policy, { throwIfNoEntry: false })?.isFile() !== false;
}

/** Options with absolute paths: relative ones mean the caller's directory, and the server has another one. */
function whereCalled(options: SandboxOptions): SandboxOptions {
  const workspace = directoryPath(options.workspace);
  const { policy } = options;
  const cwd = currentDirectory();
  return {
    ...options,
    ...(workspace === undefined ? {} : { workspace: resolve(cwd, workspace) }),
    ...(typeof policy === 'string' ? { policy: resolve(cwd, policy) } : {}),
  };
}

async function takeCommand(
  asked: Asked,
  hasTerminal: boolean,
  policies: OpenPolicies,
  services: Supervisor,
): Promise<Work | undefined> {
  const signals = new SignalForwarding();
  const lease = await leased(async () => {
    const options = await asked.options(signals);
    if (asked.onlyForServices === true && !(await policies.reachesServices(options, caller())))
      return undefined;
    return policies.sandbox(options, caller());
  });
  const giveUp = () => {
    signals[Symbol.dispose]();
    lease?.[Symbol.dispose]();
  };
  if (lease === undefined || (hasTerminal && (await isAskedThere(lease.lent, asked)))) {
    giveUp();
    return undefined;
  }
  const { lent, background, reachesServices } = lease;
  if (background !== undefined)
    background.services = reachesServices === true ? () => services.linesForModel(lent.workspace) : undefined;
  return {
    do: async () => {
      try {
        return await asked.run(lease.lent, signals, lease.background);
      } catch (error) {
        if (error instanceof SandboxError) return asked.failed(error);
        const ours = error instanceof Error ? (error.stack ?? error.message) : String(error);
        printError(describeShortage(error) ?? ours);
        return FAILED;
      }
    },
    [Symbol.dispose]: giveUp,
  };
}

/** The lease of a sandbox; `undefined`: it cannot be made, and the client will meet the same error and report it. */
async function leased(
  open: () => Promise<Lease<OpenSandbox> | undefined>,
): Promise<Lease<OpenSandbox> | undefined> {
  try {
    return await open();
  } catch (error) {
    if (error instanceof SandboxError) return undefined;
    throw error;
  }
}

/** Whether the user has to be asked on the caller's terminal, which only the client can do. */
async function isAskedThere(
  sandbox: OpenSandbox,
  { command, taints = [], asksNobody }: Pick<Asked, 'command' | 'taints' | 'asksNobody'>,
): Promise<boolean> {
  if (asksNobody === true || sandbox.policy.approval.ask !== 'terminal') return false;
  const { decision } = await sandbox.check(command, { taints, cwd: currentDirectory() });
  return decision?.verdict === 'ask';
}
