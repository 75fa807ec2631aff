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

/** Without a call for so long it is of no use to anybody. */
const UNUSED_MS = 1_800_000;
/** How often it looks whether it can still be found, and is still wanted. */
const LOOK_MS = 10_000;
/** Time for what is open to be closed. */
const ENDING_MS = 10_000;
/** A server that was started for a service has no use for others if that service has not begun by then. */
const QUESTION_MS = 120_000;
/** Something of ours went wrong. */
const FAILED = 125;

/**
 * Internal, started by `hook` and by `--warm`: serves calls of this user that native/client hands over on a socket. Each is
 * done as a process of its own would do it, with the caller's environment, directory and streams; what such a process would
 * do otherwise here (a terminal, a question on one, help) is left to it.
 */
export async function warm([path = '', rehearsed]: readonly string[]): Promise<number> {
  ensureStateDirectory(dirname(path));
  return untilEnded(async ({ signal }) => {
    const addon = loadAddon();
    const agents = new AgentCommands();
    const policies = new OpenPolicies(agents, () => sessions.endSoon());
    const services = new Supervisor(path, agents, () => sessions.servicesEnded());
    const sessions = new Sessions(services);
    const rehearsal = new Rehearsal(policies, () => sessions.isBusy);
    const state = lazyState(stateDirectory());
    // Each call opens and closes the database, which takes long for who is the only one.
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
            // Its user may be asked now, and come back.
            if (taken === undefined) setTimeout(() => sessions.servicesEnded(), QUESTION_MS).unref();
            return taken;
          }
          return takeCall(call, { policies, sessions, rehearsal, services, agents, path });
        });
      },
    });
    serveOthersOnly();
    if (session !== undefined) {
      // Its beginning, and all calls until now, were answered elsewhere.
      sessions.saw({ kind: 'session-start', session: session.session });
      rehearsal.begin(session, { ...process.env });
    }
    const socket = statSync(listener.path).ino;
    const unreachable = deferred<void>();
    const look = () => {
      if (!isThere(listener.path, socket)) unreachable.resolve();
      // By hooks that were answered elsewhere, because this was on its way or stopped.
      for (const { at, session: ended, agentGoesOn } of notedEnds(path))
        if ((at >= performance.timeOrigin || ended === session?.session) && sessions.hasEnded(ended)) {
          // Which agent's it was is not noted.
          const name = sessionNameOf('', ended);
          endSession({ policies, services, agents }, (one) => one.endsWith(name), agentGoesOn);
        }
    };
    look();
    const looking = setInterval(look, LOOK_MS);
    await Promise.race([listener.ended, sessions.over, unreachable.promise, aborted(signal)]);
    clearInterval(looking);
    rehearsal.end();
    // One that cannot end, for a thread that waits for something, ends with the process.
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

/** What the calls of one server share. */
interface Parts {
  readonly policies: OpenPolicies;
  readonly sessions: Sessions;
  readonly rehearsal: Rehearsal;
  readonly services: Supervisor;
  readonly agents: AgentCommands;
  readonly path: string;
}

/**
 * The session of an agent has ended, and what was started for it with it, unless the agent goes on and runs it still. Returns what
 * its user may want to know of that.
 */
function endSession(
  { policies, services, agents }: Pick<Parts, 'policies' | 'services' | 'agents'>,
  isOver: (session: string) => boolean,
  agentGoesOn: boolean,
): string | undefined {
  const all = agents.allOver(isOver);
  const runsOn = agentGoesOn && agents.isRunning(all);
  const commands = runsOn ? [] : agents.endSession(all);
  const ended = [
    ...services.endSession(runsOn ? isOver : all),
    ...commands.map(({ command }) => quoted(command)),
  ];
  // Else its machine is kept for the session that the agent begins next.
  if (!runsOn) policies.endSession(all);
  return ended.length === 0 ? undefined : `sandbox-run: with this session ended ${ended.join(', ')}`;
}

/** Whether the path still leads to our socket: else nobody finds us any more. */
const isThere = (path: string, inode: number) => statSync(path, { throwIfNoEntry: false })?.ino === inode;

/** What is to be done for a call; `undefined`: the client does it. */
async function takeCall(
  { args, caller, hasTerminal, parent }: Call,
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
          sessions.saw(event);
          if (event.kind === 'session-end') {
            noteEnd(path, event);
            const ended = sessionNameOf(agent, event.session);
            if (event.agentGoesOn) sessions.left(ended, parent, rest);
            return endSession({ policies, services, agents }, (one) => one === ended, event.agentGoesOn);
          }
          if (event.kind !== 'session-start') return undefined;
          const before = sessions.takeLeft(parent, rest);
          if (before !== undefined && agents.isRunning(agents.allOver((one) => one === before)))
            agents.goOn(sessionNameOf(agent, event.session), before);
          forgetEnds(path, [event.session]);
          rehearsal.begin({ args: rest, session: event.session, cwd: currentDirectory() }, caller.env);
          return undefined;
        });
        // The agent has its answer first.
        if (rewritten !== undefined) setImmediate(lookAhead, rewritten, caller, policies);
        return status;
      },
      [Symbol.dispose]: () => {},
    };
  }
  const asked = await quietly(caller, () => (first === 'sandbox-sh' ? ofShell(rest) : ofRun(args)));
  return asked && takeCommand(asked, hasTerminal, policies, services);
}

/** A service that is to begin; `undefined`: the client says what is wrong, asks its user, or reads which services there are. */
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
  // Signals of the call have no command to go to: a service has its own life.
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

/** Resolves what the command that a hook has just rewritten will ask for, while the agent starts it. */
function lookAhead(words: readonly string[], { cwd, env }: Call['caller'], policies: OpenPolicies): void {
  const caller = silentCaller(cwd(), env);
  const look = async () => {
    using signals = new SignalForwarding();
    const asked = ofRun(words);
    if (asked !== undefined) await policies.lookAhead(await asked.options(signals), caller);
  };
  // What fails is said to the command, for which it fails as well.
  void onBehalfOf(caller, look).catch(() => {});
}

/** What is said of arguments is said by the client itself, which has to parse them then. */
function quietly<T>(caller: Call['caller'], parse: () => T): T | undefined {
  try {
    return onBehalfOf({ ...caller, write: () => false }, parse);
  } catch (error) {
    if (error instanceof SandboxError) return undefined;
    throw error;
  }
}

/** A command that is to run in a sandbox with these options. */
interface Asked {
  readonly command: Command;
  readonly taints?: readonly Taint[];
  /** Its user has approved it, or must not be asked on a terminal that may be the model's. */
  readonly asksNobody?: boolean;
  /** It is handed over only to reach services that run. */
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
  // A script has to be read first, in the sandbox, and who types wants the terminal.
  if (wanted.kind !== 'run' || wanted.source.from !== 'string') return undefined;
  const confined = { wanted, settings: readShellSettings(caller().env) };
  return {
    command: sh.commandFor(wanted.source.text, wanted),
    options: (signals) => sh.sandboxFor(confined, signals),
    run: (sandbox, signals) => sh.runIn(sandbox, confined, signals),
    failed: sh.statusOf,
  };
}

/** A policy that is no file, such as a named pipe, may have to be waited for: by its own caller only. */
function hasPlainPolicy({ policy }: SandboxOptions): boolean {
  if (typeof policy !== 'string') return true;
  return statSync(policy, { throwIfNoEntry: false })?.isFile() !== false;
}

/** With paths that are relative for the caller, and would mean others here. */
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

/** `undefined`: there is none, which the client says when it has none, either. */
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

/** Whether its user would be asked on the caller's terminal, where only the caller can. */
async function isAskedThere(
  sandbox: OpenSandbox,
  { command, taints = [], asksNobody }: Pick<Asked, 'command' | 'taints' | 'asksNobody'>,
): Promise<boolean> {
  if (asksNobody === true || sandbox.policy.approval.ask !== 'terminal') return false;
  const { decision } = await sandbox.check(command, { taints, cwd: currentDirectory() });
  return decision?.verdict === 'ask';
}
