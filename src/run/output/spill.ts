import { randomBytes } from 'node:crypto';
import { closeSync, constants, openSync, readdirSync, rmSync, statSync, unlinkSync } from 'node:fs';
import { join } from 'node:path';
import { errnoOf } from '../../base/errno-of.ts';
import { SandboxError } from '../../base/errors/sandbox-error.ts';
import { errnoName } from '../../confine/kernel/errno.ts';
import type { NativeAddon, NativeLaunchExtras, NativeOutcome } from '../../confine/native/contract.ts';
import type { SpilledOutput } from '../../model/index.ts';
import { ensureStateDirectory } from '../../workspace/index.ts';

const DAY = 24 * 3600 * 1000;
const OLDEST = 7 * DAY;
const LARGEST = 1024 ** 3;
const NAME = /^\d{8}T\d{6}-[0-9a-f]{12}\.(?:out|err)$/;

/** Files that a command's output is written to besides. */
export interface Spill {
  readonly extras: Pick<NativeLaunchExtras, 'spill' | 'spillLimit'>;
  /** The addon has the files. */
  release(): void;
  /** The command was not launched: nothing will be in the files, and they go. */
  discard(): void;
  /** For the result. */
  result(outcome: NativeOutcome): SpilledOutput;
}

/**
 * Makes the files in `output/` of a state directory, and room for them.
 * @throws {SandboxError} `state.unusable`, `state.untrusted`.
 */
export function openSpill(
  addon: Pick<NativeAddon, 'tryLock'>,
  stateDirectory: string,
  limit: number,
  combined: boolean,
): Spill {
  const directory = ensureStateDirectory(join(ensureStateDirectory(stateDirectory), 'output'));
  const time = new Date().toISOString().replace(/[-:]|\..*$/g, '');
  const base = join(directory, `${time}-${randomBytes(6).toString('hex')}`);
  const files: { readonly path: string; readonly fd: number }[] = [];
  const release = () => {
    for (const { fd } of files.splice(0)) closeSync(fd);
  };
  const discard = () => {
    for (const { path } of files) rmSync(path, { force: true });
    release();
  };
  try {
    makeRoom(addon, directory);
    for (const end of combined ? ['out'] : ['out', 'err']) {
      const path = `${base}.${end}`;
      const flags = constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL | constants.O_NOFOLLOW;
      const fd = openSync(path, flags, 0o600);
      files.push({ path, fd });
      // Held by the addon's copy of the descriptor until the command has ended, so that no process takes it for an old one.
      addon.tryLock(fd);
    }
  } catch (error) {
    discard();
    const code = errnoOf(error) ?? String(error);
    throw new SandboxError(
      'state.unusable',
      `no file for the output can be made in ${directory} (${code}); make room there, or run without spill`,
      { cause: error },
    );
  }
  const [out, err] = files;
  return {
    extras: { spill: [out?.fd ?? -1, err?.fd ?? -1], spillLimit: Math.min(limit, Number.MAX_SAFE_INTEGER) },
    release,
    discard,
    result: (outcome) => ({
      stdout: `${base}.out`,
      stderr: combined ? undefined : `${base}.err`,
      incomplete: incompleteness(outcome, limit),
    }),
  };
}

/** Why files have less than was written; `undefined`: they have all. */
export function incompleteness({ spilled: files }: NativeOutcome, limit: number): string | undefined {
  const parts = (['stdout', 'stderr'] as const).flatMap((stream, index) => {
    const spilled = files?.[index];
    if (spilled === undefined || spilled.isWhole) return [];
    const why =
      spilled.errno === 0
        ? `the limit of ${limit} bytes was reached`
        : `writing failed (${errnoName(spilled.errno)})`;
    return [`${stream} ends after ${spilled.written} bytes: ${why}`];
  });
  return parts.length === 0 ? undefined : parts.join('; ');
}

/** Removes old files, and the oldest while there is too much of them. Those of running commands stay. */
function makeRoom(addon: Pick<NativeAddon, 'tryLock'>, directory: string): void {
  const files = readdirSync(directory)
    .filter((name) => NAME.test(name))
    .flatMap((name) => {
      const path = join(directory, name);
      const info = statSync(path, { throwIfNoEntry: false });
      return info?.isFile() ? [{ path, size: info.size, time: info.mtimeMs }] : [];
    })
    .sort((one, other) => one.time - other.time);
  let total = files.reduce((sum, { size }) => sum + size, 0);
  const old = Date.now() - OLDEST;
  for (const { path, size, time } of files) {
    if (total <= LARGEST && time >= old) break;
    if (removeUnlessInUse(addon, path)) total -= size;
  }
}

function removeUnlessInUse(addon: Pick<NativeAddon, 'tryLock'>, path: string): boolean {
  try {
    const fd = openSync(path, constants.O_RDONLY | constants.O_NOFOLLOW);
    try {
      if (!addon.tryLock(fd)) return false;
      unlinkSync(path);
      return true;
    } finally {
      closeSync(fd);
    }
  } catch {
    // Another process was faster.
    return false;
  }
}
