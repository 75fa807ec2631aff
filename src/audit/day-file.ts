import { closeSync, constants, fdatasync, fstatSync, openSync, type Stats, statSync } from 'node:fs';
import { join } from 'node:path';
import { errnoOf } from '../util/errno-of.ts';
import { auditFailure } from './failure.ts';

const { O_APPEND, O_RDWR, O_CREAT, O_NOFOLLOW, O_CLOEXEC = 0 } = { O_CLOEXEC: 0, ...constants };

/** One file of the trail, open for appending. */
export interface DayFile {
  readonly name: string;
  readonly path: string;
  readonly fd: number;
  /** Its length now; `undefined`: the path leads to another file by now, or to none. */
  size(): number | undefined;
  /** Settles when everything that was written until now is on the disk. Callers that ask meanwhile share the next sync. */
  durable(): Promise<void>;
  /** Closes it as soon as no caller waits for it. */
  retire(): void;
}

/** Opens a day's file; makes it if `create`. `undefined`: it is not there. */
export function openDayFile(directory: string, name: string, create: boolean): DayFile | undefined {
  const path = join(directory, name);
  let fd: number;
  try {
    fd = openSync(path, O_RDWR | O_APPEND | O_NOFOLLOW | O_CLOEXEC | (create ? O_CREAT : 0), 0o600);
  } catch (error) {
    if (!create && errnoOf(error) === 'ENOENT') return undefined;
    throw error;
  }
  const opened = fstatSync(fd);
  if (!opened.isFile()) {
    closeSync(fd);
    throw auditFailure(path, new Error('it is not a regular file; move it away'));
  }
  return { name, path, fd, size: () => sizeIfSame(fd, path, opened), ...createSync(fd, path) };
}

function sizeIfSame(fd: number, path: string, opened: Stats): number | undefined {
  const there = statSync(path, { throwIfNoEntry: false });
  return there?.ino === opened.ino && there.dev === opened.dev ? fstatSync(fd).size : undefined;
}

/** One sync runs at a time; what was written before it began is in it, what was written since is in the next. */
function createSync(fd: number, path: string): Pick<DayFile, 'durable' | 'retire'> {
  let running: Promise<void> | undefined;
  let next: Promise<void> | undefined;
  let retired = false;
  const sync = () =>
    new Promise<void>((resolve, reject) => {
      fdatasync(fd, (error) => (error === null ? resolve() : reject(auditFailure(path, error))));
    });
  const settle = () => {
    running = next;
    next = undefined;
    if (running === undefined && retired) closeSync(fd);
  };
  function start(): Promise<void> {
    const started = sync();
    started.then(settle, settle);
    return started;
  }
  return {
    durable: () => {
      if (running === undefined) {
        running = start();
        return running;
      }
      next ??= running.then(start, start);
      return next;
    },
    retire: () => {
      retired = true;
      if (running === undefined) closeSync(fd);
    },
  };
}
