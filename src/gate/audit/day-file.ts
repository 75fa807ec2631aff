import { closeSync, constants, fdatasync, fstatSync, openSync, type Stats, statSync } from 'node:fs';
import { join } from 'node:path';
import { errnoOf } from '../../base/errno-of.ts';
import { errorMessage } from '../../base/error-message.ts';
import { SandboxError } from '../../base/errors/sandbox-error.ts';

const { O_APPEND, O_RDWR, O_CREAT, O_NOFOLLOW, O_CLOEXEC = 0 } = { O_CLOEXEC: 0, ...constants };

const WHY: Readonly<Record<string, string>> = {
  ENOSPC: 'the disk is full; make room',
  EDQUOT: 'the disk quota is used up; make room',
  EROFS: 'the file system is read-only; mount it writable or set XDG_STATE_HOME',
  EACCES: 'it may not be written; look at its owner and mode, or set XDG_STATE_HOME',
  EPERM: 'it may not be written; look at its owner and attributes, or set XDG_STATE_HOME',
  ENOENT: 'its directory is gone',
  ELOOP: 'it is a symbolic link; move that away',
  EIO: 'reading or writing it failed; look at the disk',
  EMFILE: 'this process has too many open files',
  ENFILE: 'this machine has too many open files',
};

/** What every failure to write becomes: one line that says what, where and what to do. */
export function auditFailure(path: string, error: unknown): SandboxError {
  if (error instanceof SandboxError) return error;
  const code = errnoOf(error) ?? '';
  const why = WHY[code] ?? errorMessage(error);
  return new SandboxError('audit.failed', `the audit trail ${path} cannot be written: ${why}`, {
    cause: error,
  });
}

/** One file of the trail, open for appending. */
export class DayFile {
  readonly name: string;
  readonly path: string;
  readonly fd: number;
  private readonly opened: Stats;
  /** One sync runs at a time; what was written before it began is in it, what was written since is in the next. */
  private running: Promise<void> | undefined;
  private next: Promise<void> | undefined;
  private retired = false;

  private constructor(name: string, path: string, fd: number, opened: Stats) {
    this.name = name;
    this.path = path;
    this.fd = fd;
    this.opened = opened;
  }

  /** Opens a day's file; makes it if `create`. `undefined`: it is not there. */
  static open(directory: string, name: string, create: boolean): DayFile | undefined {
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
    return new DayFile(name, path, fd, opened);
  }

  /** Its length now; `undefined`: the path leads to another file by now, or to none. */
  size(): number | undefined {
    const there = statSync(this.path, { throwIfNoEntry: false });
    return there?.ino === this.opened.ino && there.dev === this.opened.dev ? there.size : undefined;
  }

  /** Settles when everything that was written until now is on the disk. Callers that ask meanwhile share the next sync. */
  durable(): Promise<void> {
    if (this.running === undefined) {
      this.running = this.sync();
      return this.running;
    }
    const start = () => this.sync();
    this.next ??= this.running.then(start, start);
    return this.next;
  }

  /** Closes it as soon as no caller waits for it. */
  retire(): void {
    this.retired = true;
    if (this.running === undefined) closeSync(this.fd);
  }

  private sync(): Promise<void> {
    const synced = new Promise<void>((resolve, reject) => {
      fdatasync(this.fd, (error) => (error === null ? resolve() : reject(auditFailure(this.path, error))));
    });
    const settle = () => {
      this.running = this.next;
      this.next = undefined;
      if (this.running === undefined && this.retired) closeSync(this.fd);
    };
    synced.then(settle, settle);
    return synced;
  }
}
