import { createHash, randomUUID } from 'node:crypto';
import { readFileSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { orElse } from '../../base/or-else.ts';

/** The name of the file, and the prefix of the name of one that is being written. */
export const FAILED_LINES = 'failed';
/** How many of the last failed lines are remembered: a line that is being fixed is run again soon. */
const MOST = 64;

/**
 * Which lines failed in a workspace, by their hashes: when one comes again, all that it is denied is looked at, reads as well.
 * Kept with the workspace's cache, where no command reaches it, so that the next process knows it, too. It is nothing that a
 * command needs: where it cannot be kept, this process knows it alone.
 */
export class FailedLines {
  readonly #directory: string | undefined;
  #known: readonly string[] | undefined;

  /** `undefined`: there is no such directory. */
  constructor(directory: string | undefined) {
    this.#directory = directory;
  }

  has(line: string): boolean {
    this.#known ??= this.#read();
    return this.#known.includes(line);
  }

  /** Notes how a line ended. */
  note(line: string, failed: boolean): void {
    if (this.has(line) === failed) return;
    // Others note theirs meanwhile.
    const others = (this.#directory === undefined ? (this.#known ?? []) : this.#read()).filter(
      (one) => one !== line,
    );
    this.#known = (failed ? [...others, line] : others).slice(-MOST);
    this.#write(this.#known);
  }

  #read(): readonly string[] {
    const directory = this.#directory;
    if (directory === undefined) return [];
    return orElse(() => readFileSync(join(directory, FAILED_LINES), 'latin1'), '')
      .split('\n')
      .filter((line) => line !== '');
  }

  #write(lines: readonly string[]): void {
    const directory = this.#directory;
    if (directory === undefined) return;
    const made = join(directory, `${FAILED_LINES}.${randomUUID()}`);
    orElse(() => {
      writeFileSync(made, lines.join('\n'), { flag: 'wx', mode: 0o600 });
      renameSync(made, join(directory, FAILED_LINES));
    }, undefined);
  }
}

/** A line by what runs and where. */
export const lineOf = (argv: readonly string[], cwd: string): string =>
  createHash('sha256')
    .update([cwd, ...argv].join('\0'))
    .digest('hex')
    .slice(0, 32);
