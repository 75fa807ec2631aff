import { isatty } from 'node:tty';
import { visibleJson, visibleText } from '../../base/visible-text.ts';
import type { RunOptions, SandboxOptions, TreeLimits } from '../../model/index.ts';
import { caller } from './caller.ts';

/** Writes to standard output, all of it, before anything else happens. False: the reader is gone. */
export function printOut(text: string): boolean {
  return writeAll(1, text);
}

/** A value as JSON that people can read, too. */
export function jsonText(value: unknown): string {
  return `${JSON.stringify(value, null, 2)}\n`;
}

/** A value as JSON on a line of its own, in which nothing is left that a terminal would obey. */
export function jsonLine(value: unknown): string {
  return `${visibleJson(JSON.stringify(value))}\n`;
}

/** Output of a command, unchanged. False: the reader is gone. */
export function printBytes(fd: 1 | 2, bytes: Uint8Array): boolean {
  return writeAll(fd, bytes);
}

/**
 * One line on standard error, from the launcher and not from the command. Names in it may be those of an agent: what a
 * terminal would obey is shown as an escape. What was made visible before stays as it is. A second line, if a command
 * mends it.
 */
export function printError(message: string, remedy?: string): void {
  for (const text of [message, ...(remedy === undefined ? [] : [`to mend it: ${remedy}`])]) {
    const line = inFlags(text.replace(/\s*\n\s*/g, ' '));
    writeAll(2, `${paintFor(2)('strong', 'sandbox-run:')} ${visibleText(line, { keep: '\\' })}\n`);
  }
}

/** Lines on standard error, visible as those of `printError`. */
export function printNote(text: string): void {
  writeAll(2, visibleText(text, { keep: '\n\\' }));
}

function writeAll(fd: 1 | 2, text: string | Uint8Array): boolean {
  return caller().write(fd, typeof text === 'string' ? Buffer.from(text) : text);
}

/** Before this time a person does not wonder what takes so long. */
const QUIET_MS = 1_000;
const NARROWEST = 20;
const USUAL_COLUMNS = 80;

/** A line for those who wait. */
interface Progress {
  /** What is being done now: text of our own, in ASCII. */
  show(text: string): void;
  /** Takes the line away. Has to be called at the end, before anything else is printed. */
  clear(): void;
}

/**
 * A line on standard error that is written over. It appears after one second, also while nothing is reported, and only on a
 * terminal: nothing is written anywhere else.
 */
export function startProgress(): Progress {
  if (!isLively(2)) return { show: () => {}, clear: () => {} };
  const from = performance.now();
  let text = '';
  let isShown = false;
  const write = () => {
    const columns = Math.max(process.stderr.columns ?? USUAL_COLUMNS, NARROWEST);
    // A line that is wrapped could not be written over.
    const line = `sandbox-run: ${text}`.slice(0, columns - 1);
    isShown = true;
    printBytes(2, Buffer.from(`\r\u001b[K${line}`));
  };
  const timer = setTimeout(write, QUIET_MS);
  timer.unref();
  return {
    show: (now) => {
      text = now;
      if (performance.now() - from >= QUIET_MS) write();
    },
    clear: () => {
      clearTimeout(timer);
      if (isShown) printBytes(2, Buffer.from('\r\u001b[K'));
      isShown = false;
    },
  };
}

/** What the command line calls the options that messages name. */
const FLAGS: Readonly<Record<string, string>> = {
  approved: '--approved',
  ask: '--ask',
  autonomy: '--autonomy',
  workspace: '--workspace DIR',
  backend: '--backend',
  readable: '--ro',
  writable: '--rw',
  idleTimeout: '--idle-timeout',
  'limits.memory': '--memory',
  'limits.processes': '--max-processes',
  'limits.cpuSeconds': '--cpu-time',
  'limits.tmpBytes': '--max-tmp',
} satisfies Partial<Record<keyof SandboxOptions | keyof RunOptions | `limits.${keyof TreeLimits}`, string>>;

/** A message of the library, which names its own options, in the words of the command line. */
export function inFlags(message: string): string {
  const options = /\bthe option ([A-Za-z]+(?:\.[a-z]+)?)(?:: "([a-z]+)")?/g;
  return message.replace(options, (named, option: string, value: string | undefined) =>
    Object.hasOwn(FLAGS, option) ? [FLAGS[option], value].filter(Boolean).join(' ') : named,
  );
}

/** How text is meant. */
export type Mood = 'good' | 'part' | 'bad' | 'worst' | 'strong' | 'faint' | 'plain';

/** Gives text the look of a mood, or leaves it as it is. What others wrote has to be made visible before. */
export type Paint = (mood: Mood, text: string) => string;

const CODES: Readonly<Record<Mood, string | undefined>> = {
  good: '32',
  part: '33',
  bad: '31',
  worst: '31;1',
  strong: '1',
  faint: '2',
  plain: undefined,
};

/** How a verdict is meant, also one out of a file. */
export function moodOf(verdict: unknown): Mood {
  switch (verdict) {
    case 'allow':
      return 'good';
    case 'ask':
      return 'part';
    case 'deny':
      return 'bad';
    default:
      return 'plain';
  }
}

/** Leaves all text as it is. */
export const unpainted: Paint = (_, text) => text;

/** Paints whatever it is. */
export const painted: Paint = (mood, text) => {
  const code = CODES[mood];
  return code === undefined || text === '' ? text : `\u001b[${code}m${text}\u001b[0m`;
};

/**
 * Whether escape sequences may go to standard output (1) or standard error (2): only if that very stream is a terminal that
 * knows them. There is no way to have them elsewhere: what is written to a file or a pipe may be read by a model.
 */
function isLively(fd: 1 | 2): boolean {
  const { stdio, env } = caller();
  return isatty(stdio[fd]) && env.TERM !== 'dumb';
}

/** Colours for a stream: none unless it is {@link isLively}, and none with NO_COLOR, unless that is empty. */
export function paintFor(fd: 1 | 2): Paint {
  return isLively(fd) && (caller().env.NO_COLOR ?? '') === '' ? painted : unpainted;
}

/** Breaks text at spaces; a word that is longer than a line stays whole. */
export function wrap(text: string, width: number): readonly string[] {
  const lines: string[] = [];
  let line = '';
  for (const word of text.split(/\s+/)) {
    if (line !== '' && line.length + 1 + word.length > width) {
      lines.push(line);
      line = word;
    } else {
      line = line === '' ? word : `${line} ${word}`;
    }
  }
  return [...lines, line];
}
