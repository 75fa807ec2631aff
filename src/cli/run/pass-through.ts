import { isatty } from 'node:tty';
import { readableWord } from '../../base/shell-quote.ts';
import type { NativeAddon } from '../../confine/native/contract.ts';
import { loadAddon } from '../../confine/native/load.ts';
import type { LaunchPlan } from '../../confine/plan/launch-plan.ts';
import { whyOnlyOnce } from '../../gate/index.ts';
import { isSettledByAutonomy } from '../../judge/index.ts';
import {
  type Command,
  type Decision,
  type Denial,
  decisiveReason,
  type ExecutionResult,
  type OutputStream,
  PLACED_KEYS,
  type RunOptions,
  type SpawnOptions,
  type TerminalSize,
} from '../../model/index.ts';
import {
  countsInWords,
  createModelStream,
  DEFAULT_MODEL_OUTPUT,
  denialsForPerson,
  goneInWords,
  isAllHeldUp,
  messageForModel,
  type OwnRunOptions,
  type Sandbox,
  type StartedCommand,
  shortWord,
  toldDenials,
  warningsBesideDenials,
  whyNotProposed,
} from '../../run/index.ts';
import { homeDirectory } from '../../workspace/index.ts';
import { caller, currentDirectory } from '../shared/caller.ts';
import { printError, printNote } from '../shared/print.ts';
import type { SignalForwarding } from '../shared/signals.ts';

/** The reader of the output is gone. */
const READER_GONE = new Error('the reader of the output is gone');

/** The command's own streams are ours, unless we have to see what passes. */
export function ownStreams({ plan }: Sandbox): OwnRunOptions {
  // Output comes when nothing tells any more whose it is.
  const { write, stdio: inherited } = caller();
  if (plan.treeLimits.idleTimeoutMs === undefined) return { stdio: 'inherit', inherited };
  return {
    stdin: 'inherit',
    inherited,
    onOutput: ({ stream, bytes }) => {
      if (!write(stream === 'stdout' ? 1 : 2, bytes)) throw READER_GONE;
    },
  };
}

/**
 * Output for a model that reads what this process writes. `cut`: of what is longer than a model gets, the middle is left out,
 * and the end comes when `finish` is called.
 */
export function streamsForModel({ cut }: { readonly cut: boolean }): {
  readonly options: OwnRunOptions;
  readonly finish: () => void;
} {
  const most = cut ? DEFAULT_MODEL_OUTPUT : undefined;
  const streams = { stdout: createModelStream(most), stderr: createModelStream(most) };
  const { write, stdio: inherited } = caller();
  const print = (stream: OutputStream, text: string) =>
    text === '' || write(stream === 'stdout' ? 1 : 2, Buffer.from(text));
  return {
    options: {
      stdin: 'inherit',
      inherited,
      onOutput: ({ stream, bytes }) => {
        if (!print(stream, streams[stream].write(bytes))) throw READER_GONE;
      },
    },
    finish: () => {
      print('stdout', streams.stdout.end());
      print('stderr', streams.stderr.end());
    },
  };
}

/** Runs a command to its end, with signals handed on. `onStart`: called at once. `undefined`: the reader of its output is gone. */
export async function runForwarding(
  sandbox: Sandbox,
  command: Command,
  options: RunOptions,
  signals: SignalForwarding,
  onStart: (started: StartedCommand) => void = () => {},
): Promise<ExecutionResult | undefined> {
  const started = sandbox.start(command, options);
  onStart(started);
  signals.to(started);
  return started.result.catch((error: unknown) => {
    if (error === READER_GONE) return undefined;
    throw error;
  });
}

/** How the end of a command is told. */
interface EndOptions {
  readonly json: boolean;
  /** Only why it did not run. */
  readonly quiet?: boolean;
  /** Instead of a word that names no program. */
  readonly meant?: string | undefined;
  /** The user is asked about its changes next. */
  readonly isAsked?: boolean;
  /** Where it ran, if not here: there is the policy that would let more through, and what waits. */
  readonly elsewhere?: string;
  /** A message has said that the command does not reach services at localhost. Then no option for the host's localhost is proposed. */
  readonly isUnreached?: boolean;
}

/** What a person should know of a command that has ended. */
export function printEnd(
  result: ExecutionResult,
  { json, quiet = false, meant, isAsked = false, elsewhere, isUnreached = false }: EndOptions,
): void {
  const say = (line: string) => printError(elsewhere === undefined ? line : `${elsewhere}: ${line}`);
  if (!quiet) for (const warning of warningsBesideDenials(result)) say(`warning: ${warning}`);
  if (json) return;
  if (!quiet)
    printNotes(result, isAsked || elsewhere !== undefined, {
      advises: elsewhere === undefined,
      say,
      isUnreached,
    });
  if (isUnasked(result) && elsewhere === undefined && isatty(caller().stdio[2]) && !quiet)
    printUnasked(result.decision);
  else if (isUnasked(result) && elsewhere !== undefined)
    say(
      `this command needs approval, and there is no one to ask: ${decisiveReason(result.decision)?.message ?? 'no reason was given'} (a worker with --ask queue asks by sandbox-run fleet approvals)`,
    );
  // That no program of that name is there is no refusal.
  else if (result.error !== undefined && !(quiet && result.error.code.startsWith('program.')))
    say([result.error.message, ...(meant === undefined ? [] : [meant])].join('; '));
  if (result.status === 'denied' && !quiet && elsewhere === undefined)
    printDenials(result.denials ?? [], { advises: true, say, cwd: result.cwd, isSaid: true, isUnreached });
  if (result.status === 'timed-out' && !quiet)
    say(`timed out after ${(result.durationMs / 1000).toFixed(1)} s (--timeout SECONDS changes it)`);
}

/** Prints what the sandbox refused a service, and what would allow it. `isWell`: the service was ready, so refusals that did no harm are left out. */
export function printRefusals(result: ExecutionResult, isWell: boolean): void {
  const isSaid = result.status === 'denied';
  const denials = isSaid ? (result.denials ?? []) : toldDenials(isWell ? { ...result, ok: true } : result);
  printDenials(denials, { advises: true, say: printError, cwd: result.cwd, isSaid });
}

interface NotesOptions {
  /** Whether to say how to allow more. */
  readonly advises: boolean;
  readonly say: (line: string) => void;
  /** See {@link EndOptions.isUnreached}. */
  readonly isUnreached?: boolean;
}

interface DenialOptions {
  /** The directory to which shown paths are relative. */
  readonly cwd: string;
  /** The beginning of the first line. */
  readonly begin?: string;
  readonly isSaid?: boolean;
}

/** What a result says besides how it ended. */
function printNotes(result: ExecutionResult, isAsked: boolean, options: NotesOptions): void {
  const { advises, say } = options;
  for (const path of result.hiddenPrograms ?? []) {
    const advice = advises && mayBeProposed(path) ? ` (--ro ${readableWord(path)})` : '';
    say(`${path} is on this machine, and the sandbox does not show it${advice}`);
  }
  const { cwd } = result;
  if (result.status !== 'denied') printDenials(toldDenials(result), { ...options, cwd });
  printChanges(result.changes, isAsked, say);
  printDenials(result.wouldDeny ?? [], { advises, say, cwd, begin: 'under the other policy ' });
}

/** Of a preview: what waits, and, unless that is asked, what can be done with it. Else what only undo brings back. */
function printChanges(
  changes: ExecutionResult['changes'],
  isAsked: boolean,
  say: (line: string) => void,
): void {
  if (changes?.gone !== undefined) say(`${goneInWords(changes.gone)}: sandbox-run undo`);
  if (changes?.state !== 'waiting') return;
  const { id, counts, notApplied } = changes;
  if (id === undefined) {
    say('the preview changed nothing in the workspace');
    return;
  }
  say(`${countsInWords(counts)} wait; nothing of it is in the workspace yet`);
  if (notApplied > 0) say(`${notApplied} of it cannot be applied as it is: sandbox-run changes show ${id}`);
  if (!isAsked) printWaiting(id, !isAllHeldUp(changes));
}

/** What can be done with changes that wait. */
export function printWaiting(id: string, canBeTaken = true): void {
  printError(`look: sandbox-run changes diff ${id}`);
  printError(`then: sandbox-run changes ${canBeTaken ? `apply ${id} (or discard)` : `discard ${id}`}`);
}

/**
 * What was denied, and in a second line what would allow it: on this machine, not on one that only ran the command.
 * `isSaid`: the second line alone.
 */
function printDenials(
  denials: readonly Denial[],
  { advises, say, isUnreached = false, cwd, begin = '', isSaid = false }: NotesOptions & DenialOptions,
): void {
  const remedyFor = (allow: NonNullable<Denial['allow']>) =>
    isUnreached && isOfLocalhost(allow) ? undefined : flagFor(allow, cwd);
  const told = denialsForPerson(denials, { cwd, remedyFor, begin, isNeeded: isSaid });
  if (told !== undefined && !isSaid) say(told.what);
  if (told?.remedy !== undefined && advises) say(told.remedy);
}

const isOfLocalhost = ({ key, value }: NonNullable<Denial['allow']>) =>
  key === 'network.allow' && String(value).startsWith('localhost:');

const mayBeProposed = (program: string) =>
  whyNotProposed(
    program,
    { home: homeDirectory(), workspace: currentDirectory(), secret: [], env: caller().env },
    'filesystem.read',
  ) === undefined;

function flagFor({ key, value }: NonNullable<Denial['allow']>, cwd: string): string | undefined {
  const flag = PLACED_KEYS.find((placed) => placed.key === key)?.row.flag;
  const [name] = flag?.name.split(' ') ?? [];
  return name === undefined ? undefined : `${name} ${shortWord(String(value), cwd)}`;
}

type Unasked = ExecutionResult & { readonly decision: Decision };

/** The policy asks about it, and there was nobody to ask. */
function isUnasked(result: ExecutionResult): result is Unasked {
  const { error, approval, decision } = result;
  if (error?.code !== 'command.needs_approval' || decision === undefined) return false;
  return approval === undefined || (!approval.approved && approval.reason === 'nobody');
}

/** Two short lines on a terminal, where no model reads how a command is let through. */
function printUnasked(decision: Decision): void {
  const always = isSettledByAutonomy(decision)
    ? '--autonomy autonomous'
    : '--ask queue, then approve it with --scope always';
  const why = decisiveReason(decision)?.message.replace(/\.$/, '') ?? 'no reason was given';
  printError(`asks first: ${why}${decision.reach === 'network' ? ' (network)' : ''}`);
  const isOnlyOnce = whyOnlyOnce({ session: undefined, decision }) !== undefined;
  printError(`run it: --approved${isOnlyOnce ? '' : ` · always: ${always}`}`);
}

/** A command of a session that ended its shell. */
export function printRestart(): void {
  printError(
    'the shell ended with this command; a new one goes on in the same directory, without its functions',
  );
}

/** Of what a shell ran: what was said to it, and what there is to say of that. */
interface Remarks {
  readonly said: string | readonly string[];
  readonly plan: LaunchPlan;
  /** Nothing but that it was stopped. */
  readonly quiet: boolean;
  /** The model was told what is allowed when its session began. */
  readonly knowsBoundaries?: boolean;
}

/** Says on standard error, which a model may read, what was stopped and why. A status that is not 0 is no news. */
export function printRemarks(
  result: ExecutionResult,
  { said, plan, quiet, knowsBoundaries = false }: Remarks,
): void {
  // The message names what the command left behind, but not how a person puts it back.
  if (!quiet) for (const warning of result.warnings) printError(`warning: ${warning}`);
  const stopped = messageForModel(result, plan, { command: said, knowsBoundaries });
  if (stopped !== undefined) printNote(`${stopped}\n`);
}

const STDIN = 0;
/** Of a terminal that does not know its own, such as a serial line. */
const USUAL_SIZE: TerminalSize = { cols: 80, rows: 24 };

/** How a command on a terminal ended; `by`: a signal to this process ended it. */
interface EndedOnTerminal {
  readonly result: ExecutionResult;
  readonly by: NodeJS.Signals | undefined;
}

/**
 * Runs a command on a terminal of its own and connects it with that of this process, which is raw meanwhile: Ctrl-C and
 * Ctrl-Z are bytes like others, and mean something to the command's terminal only. What is asked before the launch is
 * asked before that.
 */
export async function runOnTerminal(
  sandbox: Sandbox,
  command: Command,
  options: SpawnOptions,
  signals: SignalForwarding,
): Promise<EndedOnTerminal> {
  // Needed here only, and loaded at each start of a command otherwise.
  const { finished } = await import('node:stream/promises');
  const addon = loadAddon();
  const size = () => sizeOf(addon);
  let endedBy: NodeJS.Signals | undefined;
  const controller = new AbortController();
  const child = sandbox.spawn(command, { ...options, signal: controller.signal, pty: size() });
  const raw = () => addon.enterRawMode(STDIN);
  const resize = () => {
    const { cols, rows } = size();
    child.resize(cols, rows);
  };
  signals.to(child, {
    resize,
    suspend: () => addon.leaveRawMode(),
    resume: () => {
      raw();
      resize();
    },
    end: (signal) => {
      endedBy ??= signal;
      controller.abort();
    },
  });
  // However this process ends, the terminal is put back.
  const leave = () => addon.leaveRawMode();
  process.once('exit', leave);
  const hangUp = () => child.terminal.destroy();
  process.stdout.on('error', hangUp);
  const shown = finished(child.terminal, { writable: false }).catch(() => {});
  try {
    child.terminal.pipe(process.stdout, { end: false });
    if (await child.launched) {
      raw();
      process.stdin.pipe(child.terminal);
    }
    const result = await child.result;
    await shown;
    return { result, by: endedBy };
  } finally {
    process.stdin.unpipe(child.terminal);
    // An open terminal would keep this process.
    process.stdin.destroy();
    leave();
    process.off('exit', leave);
    process.stdout.off('error', hangUp);
  }
}

function sizeOf(addon: NativeAddon): TerminalSize {
  const [cols, rows] = addon.terminalSize(STDIN) ?? addon.terminalSize(1) ?? [];
  return cols === undefined || rows === undefined ? USUAL_SIZE : { cols, rows };
}
