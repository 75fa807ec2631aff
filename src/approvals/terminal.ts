import { closeSync, constants, openSync, readFileSync, readSync, writeSync } from 'node:fs';
import { ReadStream, WriteStream } from 'node:tty';
import { errnoOf } from '../util/errno-of.ts';

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
export function openTerminal(path: string): Terminal | undefined {
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
export function isInBackground(): boolean {
  return terminalStatus()?.foreground === false;
}

/** The terminal's own file, which is one for all that use it, other than `/dev/tty`; `undefined`: it has none that we know. */
export function terminalFile(): string | undefined {
  const device = terminalStatus()?.device;
  if (device === undefined) return undefined;
  const major = (device >> 8) & 0xfff;
  const minor = (device & 0xff) | ((device >> 12) & 0xfff00);
  if (major < PTS_MAJORS.first || major > PTS_MAJORS.last) return undefined;
  return `/dev/pts/${(major - PTS_MAJORS.first) * 256 + minor}`;
}
