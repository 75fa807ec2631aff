import { closeSync, constants, openSync, readFileSync, readSync, writeSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { ReadStream, WriteStream } from 'node:tty';
import { deferred } from '../../base/deferred.ts';
import { errnoOf } from '../../base/errno-of.ts';
import { orElse } from '../../base/or-else.ts';

/** Majors of pseudo-terminals (Documentation/admin-guide/devices.txt), 256 minors each. */
const PTS_MAJORS = { first: 136, last: 143 };

/** The controlling terminal of this process, in use: keys come one by one, and nothing is echoed. */
export interface Terminal {
  readonly columns: number;
  write(text: string): void;
  /**
   * Throws away what was typed and not yet read, and takes the keys again: a process of the same job that ends sets the
   * terminal back to how it found it (Node does), also while another one asks.
   */
  drain(): void;
  /** Called with what is typed; with `undefined` when the terminal goes away. */
  onInput(listener: (text: string | undefined) => void): void;
  /** Leaves the terminal as it was. */
  close(): void;
}

/**
 * Takes the terminal; `undefined` if there is none, or if another job has it: reading would stop us, and what is typed
 * is for somebody else.
 */
function openTerminal(path: string): Terminal | undefined {
  if (!isInForeground()) return undefined;
  let input: ReadStream | undefined;
  let output: number | undefined;
  try {
    output = openSync(path, constants.O_WRONLY | constants.O_NOCTTY);
    input = new ReadStream(openSync(path, constants.O_RDWR | constants.O_NOCTTY));
    return terminalOf(path, input, output);
  } catch {
    input?.destroy();
    if (output !== undefined) closeSync(output);
    return undefined;
  }
}

function terminalOf(path: string, input: ReadStream, output: number): Terminal {
  const columns = columnsOf(path);
  // Not from the background: changing a terminal from there would stop us, and the shell has set it itself.
  const restore = () => {
    if (isInForeground()) input.setRawMode(false);
  };
  input.setRawMode(true);
  // Also where the process ends without closing.
  process.once('exit', restore);
  let closed = false;
  return {
    columns,
    write(text) {
      // An own descriptor, blocking: all of it is written.
      for (let rest = Buffer.from(text); rest.length > 0; ) rest = rest.subarray(writeSync(output, rest));
    },
    drain: () => {
      if (isInForeground()) takeKeysAgain(path);
      drain(path);
    },
    onInput(listener) {
      input.setEncoding('utf8');
      input.on('data', (text: string) => listener(text));
      input.on('end', () => listener(undefined));
      input.on('error', () => listener(undefined));
    },
    close() {
      if (closed) return;
      closed = true;
      process.removeListener('exit', restore);
      restore();
      input.destroy();
      closeSync(output);
    },
  };
}

/**
 * By a stream of its own: the one that is read takes itself for raw, and telling it otherwise first would let the kernel
 * echo and edit what is typed in between.
 */
function takeKeysAgain(path: string): void {
  const stream = new ReadStream(openSync(path, constants.O_RDWR | constants.O_NOCTTY));
  try {
    stream.setRawMode(true);
  } finally {
    stream.destroy();
  }
}

function columnsOf(path: string): number {
  const stream = new WriteStream(openSync(path, constants.O_RDWR | constants.O_NOCTTY));
  const { columns } = stream;
  stream.destroy();
  return columns > 0 ? columns : 80;
}

function drain(path: string): void {
  const fd = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK | constants.O_NOCTTY);
  try {
    const buffer = Buffer.alloc(4096);
    while (readSync(fd, buffer) > 0);
  } catch (error) {
    // Nothing is left.
    if (errnoOf(error) !== 'EAGAIN') throw error;
  } finally {
    closeSync(fd);
  }
}

/** Device of the controlling terminal by its own name, and whether our process group may read from it. */
function terminalStatus(): { readonly device: number; readonly foreground: boolean } | undefined {
  try {
    const stat = readFileSync('/proc/self/stat', 'latin1');
    // Behind the name, which may contain anything: state ppid pgrp session tty_nr tpgid.
    const [, , group, , device, foreground] = stat
      .slice(stat.lastIndexOf(')') + 2)
      .split(' ')
      .map(Number);
    if (group === undefined || device === undefined || foreground === undefined || device === 0)
      return undefined;
    return { device, foreground: group === foreground };
  } catch {
    return undefined;
  }
}

function isInForeground(): boolean {
  return terminalStatus()?.foreground === true;
}

/** Whether there is a controlling terminal that another job has. */
function isInBackground(): boolean {
  return terminalStatus()?.foreground === false;
}

/** The terminal's own file, which is one for all that use it, other than `/dev/tty`; `undefined`: it has none that we know. */
function terminalFile(): string | undefined {
  const device = terminalStatus()?.device;
  if (device === undefined) return undefined;
  const major = (device >> 8) & 0xfff;
  const minor = (device & 0xff) | ((device >> 12) & 0xfff00);
  if (major < PTS_MAJORS.first || major > PTS_MAJORS.last) return undefined;
  return `/dev/pts/${(major - PTS_MAJORS.first) * 256 + minor}`;
}

const TTY = '/dev/tty';
const LOCK_POLL_MS = 100;

/** How long a question waits for the terminal, and what ends it. */
interface TerminalOptions {
  /** Locks an open file for us alone; false: somebody else has it. Without it two processes may ask at the same time. */
  readonly tryLock: ((fd: number) => boolean) | undefined;
  /** By `performance.now()`. */
  readonly end: number;
  readonly signal?: AbortSignal | undefined;
}

/** The outcome of using the terminal. */
type Talked<T> =
  | { readonly used: true; readonly result: T }
  /** `late`: it was not free in time, or nobody waits any more; `background`: another job has it; `none`: there is none. */
  | { readonly used: false; readonly why: 'late' | 'background' | 'none' };

/** Uses the controlling terminal of this process, alone among those who ask on it. `use` closes it. */
export async function withTerminal<T>(
  use: (terminal: Terminal) => Promise<T>,
  options: TerminalOptions,
): Promise<Talked<T>> {
  const lock = await lockTerminal(options);
  if (lock === undefined) return { used: false, why: 'late' };
  try {
    const terminal = openTerminal(TTY);
    if (terminal === undefined) return { used: false, why: isInBackground() ? 'background' : 'none' };
    return { used: true, result: await use(terminal) };
  } finally {
    lock.release();
  }
}

interface Lock {
  release(): void;
}

/** Waits for the terminal; `undefined`: in vain. The lock is one of those who ask, nobody else has to heed it. */
async function lockTerminal({ tryLock, end, signal }: TerminalOptions): Promise<Lock | undefined> {
  const path = tryLock === undefined ? undefined : terminalFile();
  const fd = path === undefined ? undefined : openOrNot(path);
  const release = () => {
    if (fd !== undefined) closeSync(fd);
  };
  for (;;) {
    if (signal?.aborted === true || performance.now() >= end) break;
    if (fd === undefined || tryLock?.(fd) === true) return { release };
    await sleep(LOCK_POLL_MS, undefined, signal === undefined ? {} : { signal }).catch(() => {});
  }
  release();
  return undefined;
}

function openOrNot(path: string): number | undefined {
  return orElse(
    () => openSync(path, constants.O_RDONLY | constants.O_NOCTTY | constants.O_NONBLOCK),
    undefined,
  );
}

/** What was typed before somebody can have read the question is no answer to it. */
const DEAF_MS = 300;

/** What follows a line of a person: the answer, or a further question. */
export type Turn<T> = { readonly answer: T } | { readonly say?: string; readonly prompt: string };

/** Why there is no line of a person: Ctrl-C or Ctrl-D, no time left, nobody waits, or the terminal fails. */
export type Unheard = 'ended' | 'expired' | 'canceled' | 'failed';

/** What is said on a terminal until there is an answer. */
interface Talk<T> {
  /** Everything that stands before the first prompt. */
  readonly opening: string;
  readonly prompt: string;
  /** What a line means. */
  readonly heard: (line: string) => Turn<T>;
  /** The answer if no person typed a line. */
  readonly unheard: (why: Unheard, detail: string | undefined) => T;
  /** The last line, in a word or two; `undefined`: there is none. */
  readonly closing: (answer: T) => string | undefined;
  /** The longest line that can be typed, in characters. */
  readonly longest?: number;
}

/** When the talk ends (by `performance.now()`), and what cancels it. */
export interface TalkOptions {
  readonly end: number;
  readonly signal: AbortSignal | undefined;
  /** Called when Ctrl-C was typed. */
  readonly onInterrupt: (() => void) | undefined;
}

/** Asks on a terminal until there is an answer, and gives it back. */
export function talkOn<T>(
  terminal: Terminal,
  { opening, prompt, heard, unheard, closing, longest = LONGEST }: Talk<T>,
  { end, signal, onInterrupt }: TalkOptions,
): Promise<T> {
  const { promise, resolve: settle } = deferred<T>();
  const give = (why: Unheard, detail?: string) => settle(unheard(why, detail));
  const timer = setTimeout(() => give('expired'), Math.max(end - performance.now(), 0));
  const cancel = () => give('canceled');
  signal?.addEventListener('abort', cancel, { once: true });
  if (signal?.aborted === true) cancel();

  /** Ends the talk if the terminal fails: a question that is not shown cannot be answered. */
  function orFail(use: () => void): void {
    try {
      use();
    } catch (error) {
      give('failed', `the terminal cannot be used: ${error}`);
    }
  }
  const say = (text: string) => orFail(() => terminal.write(text));

  let deaf = true;
  let hearing: NodeJS.Timeout | undefined;
  /** Keys count from now on, a moment later. */
  function question(text: string): void {
    deaf = true;
    say(text);
    hearing = setTimeout(() => {
      // What waits in the terminal was typed until now, however long we were busy.
      orFail(terminal.drain);
      deaf = false;
    }, DEAF_MS);
  }

  const type = lineEditor(longest, {
    echo: say,
    onLine: (line) => {
      const turn = heard(line);
      if ('answer' in turn) return settle(turn.answer);
      if (turn.say !== undefined) say(turn.say);
      question(turn.prompt);
    },
    onEnd: () => {
      say('\n');
      give('ended');
    },
    onInterrupt: () => {
      say('\n');
      give('ended');
      onInterrupt?.();
    },
  });
  terminal.onInput((text) => {
    if (text === undefined) give('failed', 'the terminal went away');
    else type(text, () => deaf);
  });
  say(opening);
  question(prompt);

  return promise
    .finally(() => {
      clearTimeout(timer);
      clearTimeout(hearing);
      signal?.removeEventListener('abort', cancel);
    })
    .then((answer) => {
      const last = closing(answer);
      if (last !== undefined) say(`\n--- ${last} ---\n`);
      return answer;
    })
    .finally(() => terminal.close());
}

/** Events of the line editor. */
interface LineEditorEvents {
  readonly echo: (text: string) => void;
  /** A line that contains an escape is reported as that one character. */
  readonly onLine: (line: string) => void;
  /** Ctrl-D or Ctrl-\. */
  readonly onEnd: () => void;
  /** Ctrl-C. */
  readonly onInterrupt: () => void;
}

const LONGEST = 20;

/**
 * Takes what is typed on a terminal that neither echoes nor edits: a line. `isDeaf` is asked for each key: a
 * line may begin a time in which nothing is heard. Ctrl-C and its kin always are.
 */
function lineEditor(longest: number, { echo, onLine, onEnd, onInterrupt }: LineEditorEvents) {
  let line = '';
  /**
   * An escape came: an arrow key, a paste, or what the terminal itself answers to whoever writes the right thing to it.
   * None of it is an answer of a person, up to the end of the line.
   */
  let strange = false;
  function key(character: string): void {
    if (character === '\r' || character === '\n') {
      const whole = strange ? '\x1b' : line;
      line = '';
      strange = false;
      echo('\n');
      onLine(whole);
    } else if (character === '\x1b' || strange) {
      strange = true;
    } else if (character === '\x7f' || character === '\b') {
      if (line === '') return;
      line = line.slice(0, -1);
      echo('\b \b');
    } else if (character === '\x15') {
      echo('\b \b'.repeat(line.length));
      line = '';
    } else if (/^[ -~]$/.test(character) && line.length < longest) {
      line += character;
      echo(character);
    }
  }
  return (text: string, isDeaf: () => boolean) => {
    for (const character of text) {
      if (character === '\x03') onInterrupt();
      else if (character === '\x04' || character === '\x1c') onEnd();
      else if (!isDeaf()) key(character);
    }
  };
}
