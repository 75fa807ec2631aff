import { isatty } from 'node:tty';
import { isBeneath } from '../../base/absolute-path.ts';
import { SandboxError } from '../../base/errors/sandbox-error.ts';
import { shellWord } from '../../base/shell-quote.ts';
import { visibleText } from '../../base/visible-text.ts';
import { loadAddon } from '../../confine/native/load.ts';
import type { Command, ExecutionResult, RunOptions, SandboxOptions } from '../../model/index.ts';
import {
  briefly,
  endedBy,
  exitStatus,
  failureForModel,
  messageForModel,
  type OpenSandbox,
  type OwnRunOptions,
  openSandbox,
  type Sandbox,
  type StartedCommand,
} from '../../run/index.ts';
import { gateOf, hasTerminal } from '../shared/ask-here.ts';
import { caller, currentDirectory } from '../shared/caller.ts';
import { jsonText, printError, printNote, printOut } from '../shared/print.ts';
import { describeBackend, describePlan, describeReport } from '../shared/show-plan.ts';
import { SignalForwarding, untilEnded } from '../shared/signals.ts';
import type { SessionBackground } from '../warm/background.ts';
import { startServer, takeServerAddress } from '../warm/start.ts';
import { parseRunArguments, type RunArguments } from './options.ts';
import {
  ownStreams,
  printEnd,
  printRemarks,
  printWaiting,
  runForwarding,
  runOnTerminal,
  streamsForModel,
} from './pass-through.ts';

/** More letters wrong than that are another word. */
const MOST_TYPOS = 2;

/** Words that other programs use for what a subcommand of ours does. */
const OTHER_WORDS: Readonly<Record<string, string>> = {
  setup: 'install',
  uninstall: 'install --uninstall',
  explain: 'check',
  version: '--version',
};

/**
 * `sandbox-run [options] COMMAND`: runs it and returns the exit status. `subcommands`: what its first word may have been
 * meant for.
 */
export async function run(args: readonly string[], subcommands: readonly string[]): Promise<number> {
  const server = takeServerAddress();
  const wanted = parseRunArguments(args);
  if (wanted === undefined) return 0;
  // For the next one: this one does not wait for it.
  if (server !== undefined && wanted.warm === true) await startServer(server);
  const isUnreached =
    server !== undefined &&
    !wanted.quiet &&
    !wanted.forModel &&
    (await (await import('../services/unreached.ts')).sayUnreached(wanted));
  if (wanted.tty && !wanted.json && !wanted.dryRun && !isatty(0)) {
    throw new SandboxError(
      'usage.invalid',
      '-t needs a terminal on standard input; leave it out, or add --json to capture what is shown on one',
    );
  }
  using signals = new SignalForwarding();
  try {
    await using sandbox = await openSandbox(sandboxFor(wanted, signals), caller());
    return await runIn(sandbox, wanted, signals, subcommands, undefined, isUnreached);
  } catch (error) {
    if (!wanted.forModel || !(error instanceof SandboxError)) throw error;
    return statusForModel(error);
  }
}

/** Says to a model what failed, and gives the exit status. */
export function statusForModel(error: SandboxError): number {
  printError(failureForModel('nothing was run, or its end is not known', error.message));
  return error.exitStatus;
}

/** The options of the sandbox that a command line asks for. */
export function sandboxFor(wanted: RunArguments, signals: SignalForwarding): SandboxOptions {
  const { forModel } = wanted;
  const asked = {
    quiet: wanted.quiet || forModel === true,
    ticket: wanted.approval,
    asked: wanted.asked,
    forModel,
    isCaptured: wanted.json,
  };
  return { ...wanted.sandbox, gate: gateOf(asked, signals) };
}

/**
 * Runs the command of a command line in its sandbox, and returns the exit status. `background`: the background commands of the agent's
 * session; `undefined`: it has none. `isUnreached`: a message has said that the command does not reach the services of its workspace.
 */
export async function runIn(
  sandbox: OpenSandbox,
  wanted: RunArguments,
  signals: SignalForwarding,
  subcommands: readonly string[],
  background?: SessionBackground,
  isUnreached = false,
): Promise<number> {
  if (wanted.dryRun) {
    printOut(
      wanted.json
        ? jsonText({ ...sandbox.plan, ...sandbox.defaults })
        : visibleText(describePlan(sandbox.plan, sandbox.defaults), { keep: '\n' }),
    );
    return 0;
  }
  if (wanted.verbose) printNote(describeReport(sandbox.plan.report));
  const weaker =
    wanted.quiet || wanted.forModel
      ? undefined
      : describeBackend(sandbox.plan, () => isatty(caller().stdio[2]));
  if (weaker !== undefined) printError(weaker);
  const { published } = sandbox.prepared;
  // The user of a server needs to know it before the server ends.
  if (published !== undefined)
    published.tell = wanted.json ? undefined : wanted.quiet ? () => {} : printError;
  // Signals are delivered between turns of the event loop.
  await new Promise(setImmediate);
  const early = signals.early;
  if (early !== undefined) return endedBy(early);
  const current = currentDirectory();
  const { gone } = caller();
  const options = {
    approved: wanted.approved === true,
    taints: wanted.taints,
    // Nobody waits for the end of what runs in the background, when its changes would be applied.
    ...(wanted.live === true ? { effect: 'direct' as const } : {}),
    ...wanted.effect,
    ...(gone === undefined ? {} : { signal: gone }),
    cwd: isBeneath(current, sandbox.workspace) ? current : sandbox.workspace,
  };
  if (background !== undefined && (await stopsInBackground(sandbox, wanted, options, background))) return 0;
  let ended = () => {};
  const onStart = (started: StartedCommand) => {
    if (background !== undefined && wanted.live === true)
      ended = addToBackground(background, wanted, sandbox.workspace, started);
  };
  let result: ExecutionResult;
  if (wanted.tty && !wanted.json) {
    const onTerminal = await runOnTerminal(sandbox, wanted.command, options, signals);
    if (onTerminal.by !== undefined) return endedBy(onTerminal.by);
    result = onTerminal.result;
  } else {
    const streams =
      wanted.forModel && !wanted.json
        ? streamsForModel({ cut: wanted.live !== true })
        : { options: streamsOf(sandbox, wanted), finish: () => {} };
    const all = { ...options, ...streams.options };
    const running = runForwarding(sandbox, wanted.command, all, signals, onStart);
    const settled = await running.finally(() => ended());
    // The reader of our output is gone: end like a command that wrote there itself.
    if (settled === undefined) return endedBy('SIGPIPE');
    streams.finish();
    result = settled;
  }
  if (wanted.json)
    printOut(
      `${jsonOf(result, messageForModel(result, sandbox.plan, { command: wanted.command }), wanted.full)}\n`,
    );
  const unheard = signals.early;
  if (result.status === 'canceled' && unheard !== undefined) {
    if (!wanted.quiet) printError(`${unheard} came before the command began; it was not run`);
    return endedBy(unheard);
  }
  if (wanted.forModel)
    printRemarks(result, {
      ...{ said: wanted.command, plan: sandbox.plan, quiet: wanted.quiet },
      knowsBoundaries: true,
    });
  if (wanted.forModel) {
    const news = wanted.live === true ? undefined : await background?.news(String(wanted.sandbox.session));
    if (news !== undefined) printNote(`${news}\n`);
  } else {
    const { quiet } = wanted;
    const meant =
      result.error?.code === 'program.not_found' && typeof wanted.command !== 'string'
        ? await meantInstead(wanted.command, subcommands)
        : undefined;
    const asked = changesToAskAbout(result, sandbox, wanted);
    printEnd(result, { json: wanted.json, quiet, meant, isAsked: asked !== undefined, isUnreached });
    if (!quiet && asked !== undefined) await askNow(asked, sandbox);
  }
  return exitStatus(result);
}

const inWords = (command: Command) => (typeof command === 'string' ? command : command.join(' '));

/** Adds a command that its agent runs in the background. Returns a function to call when the command has ended. */
function addToBackground(
  background: SessionBackground,
  { command, sandbox: { session } }: RunArguments,
  workspace: string,
  { cancel, result, members, ports }: StartedCommand,
): () => void {
  const stop = async () => {
    cancel();
    await result.catch(() => {});
  };
  const of = { command: inWords(command), session: String(session), workspace, since: Date.now() };
  return background.add({ ...of, members, ports, stop });
}

/** Ends background commands if `command` is a `kill PID` of them that the policy allows, and tells the model. Returns whether it did. */
async function stopsInBackground(
  sandbox: OpenSandbox,
  { command, live, sandbox: { session } }: RunArguments,
  { cwd, taints }: Pick<RunOptions, 'cwd' | 'taints'>,
  background: SessionBackground,
): Promise<boolean> {
  const meant = live === true ? undefined : await background.targetsOfKill(inWords(command));
  if (meant === undefined) return false;
  const { decision } = await sandbox.check(command, { cwd, taints });
  // Questions and refusals are left to the ordinary run of the command.
  if (decision !== undefined && decision.verdict !== 'allow') return false;
  await Promise.all(meant.map((one) => one.stop()));
  const news = await background.news(String(session));
  printNote(`${news ?? 'In the background: that command had ended already.'}\n`);
  return true;
}

/**
 * The id of changes that wait, and that somebody can be asked about here: where what a person types and reads is the
 * terminal, and the policy asks there.
 */
function changesToAskAbout(
  { changes }: ExecutionResult,
  { prepared }: OpenSandbox,
  { json }: RunArguments,
): string | undefined {
  const { stdio } = caller();
  const isHere = !json && isatty(stdio[0]) && isatty(stdio[2]) && hasTerminal();
  if (!isHere || changes?.state !== 'waiting' || prepared.policy.approval.ask !== 'terminal')
    return undefined;
  return changes.id;
}

async function askNow(id: string, { prepared }: OpenSandbox): Promise<void> {
  const { askAboutChanges } = await import('../shared/ask-changes.ts');
  const end = performance.now() + prepared.policy.approval.timeoutMs;
  const asked = await untilEnded(({ signal }) => askAboutChanges(id, { end, signal }));
  if (asked !== 'all') printWaiting(id);
}

/**
 * The command's own streams, unless its output is captured. Where no person looks at the terminal of a command, it has the
 * size of the one outside, or the usual one.
 */
function streamsOf(sandbox: Sandbox, { json, tty, output }: RunArguments): OwnRunOptions {
  const { stdio: inherited } = caller();
  if (json && tty) {
    const [cols, rows] = [0, 1, 2].map((fd) => loadAddon().terminalSize(fd)).find(Boolean) ?? [80, 24];
    return { stdin: 'inherit', inherited, pty: { cols, rows }, ...output };
  }
  if (json) return { stdin: 'inherit', inherited, ...output };
  return ownStreams(sandbox);
}

/** Escapes may make text six times as long, and a string has its limit. */
function jsonOf(result: ExecutionResult, forModel: string | undefined, full: boolean): string {
  try {
    return JSON.stringify({ ...(full ? result : briefly(result)), messageForModel: forModel });
  } catch (error) {
    throw new SandboxError(
      'output.lost',
      `the command ended (${result.status}), but its output is too long for JSON; use a smaller --max-output, with --spill for all of it`,
      { cause: error },
    );
  }
}

/**
 * What a user may have meant by a first word for which there is no program, in one line; `undefined`: just that word.
 */
async function meantInstead(
  words: readonly string[],
  subcommands: readonly string[],
): Promise<string | undefined> {
  const [first = '', ...rest] = words;
  if (rest.length === 0 && /\s|[;&|<>$`]/.test(first))
    return `a shell string needs -c: sandbox-run -c ${shellWord(first)}`;
  const other = Object.hasOwn(OTHER_WORDS, first) ? OTHER_WORDS[first] : undefined;
  const { distance } = await import('fastest-levenshtein');
  const near = subcommands
    .map((name) => ({ name, typos: distance(first, name) }))
    .sort((one, two) => one.typos - two.typos)[0];
  // Of a short word everything is near.
  const isNear = near !== undefined && near.typos <= Math.min(MOST_TYPOS, Math.floor(near.name.length / 2));
  const meant = other ?? (isNear ? near.name : undefined);
  return meant === undefined ? undefined : `did you mean sandbox-run ${meant}?`;
}
