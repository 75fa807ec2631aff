import { randomBytes } from 'node:crypto';
import {
  closeSync,
  fchmodSync,
  fsyncSync,
  lstatSync,
  mkdirSync,
  openSync,
  readFileSync,
  realpathSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { SandboxError } from '../../errors/sandbox-error.ts';
import { isBeneath } from '../../util/absolute-path.ts';
import { errnoOf } from '../../util/errno-of.ts';
import { orElse } from '../../util/or-else.ts';

/** Another process that changes the file at the same time gets this many chances to finish. */
const MOST_ATTEMPTS = 20;

/** A file of settings, where it really is. */
interface Found {
  readonly path: string;
  readonly text: string | undefined;
  readonly mode: number;
}

/**
 * Changes a file of settings: all of it or nothing, with the mode it has, at the place that a link to it leads to.
 * `within`: where that place has to be, because a process that can write there could have made the link; `undefined`: anywhere.
 * Returns the texts before and after, `undefined` where there is no file; nothing is written if they are the same or `dryRun`
 * is set.
 * @throws {SandboxError} `usage.invalid` for a file that is not there to be changed.
 */
export function changeSettingsFile(
  path: string,
  change: (text: string | undefined) => string | undefined,
  { within, dryRun }: { readonly within: string | undefined; readonly dryRun: boolean },
): { readonly before: string | undefined; readonly after: string | undefined; readonly path: string } {
  for (let attempt = 0; attempt < MOST_ATTEMPTS; attempt += 1) {
    const found = find(path, within);
    const after = change(found.text);
    const result = { before: found.text, after, path: found.path };
    if (dryRun || after === found.text) return result;
    if (replace(found, after, () => find(path, within))) return result;
  }
  throw unusable(path, 'another program keeps changing it; try again');
}

function find(path: string, within: string | undefined): Found {
  const directory = dirname(path);
  const real = realPathOf(path) ?? join(realPathOf(directory) ?? directory, basename(path));
  if (within !== undefined && !isBeneath(real, realpathSync(within)))
    throw unusable(path, `a link leads it out of the project, to ${real}; look at that link`);
  const info = lstatSync(real, { throwIfNoEntry: false });
  if (info === undefined) return { path: real, text: undefined, mode: within === undefined ? 0o600 : 0o644 };
  if (!info.isFile())
    throw unusable(path, info.isSymbolicLink() ? 'it is a link to nothing' : 'it is no file');
  const own = process.geteuid?.();
  if (info.uid !== own) throw unusable(path, `${real} belongs to user ${info.uid}; change it as that user`);
  try {
    const text = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(readFileSync(real));
    return { path: real, text, mode: info.mode & 0o7777 };
  } catch {
    throw unusable(path, 'it cannot be read as UTF-8');
  }
}

function realPathOf(path: string): string | undefined {
  return orElse(() => realpathSync(path), undefined);
}

/** False: it has changed meanwhile. */
function replace({ path, text, mode }: Found, after: string | undefined, look: () => Found): boolean {
  if (after === undefined) return remove(path, text, look);
  const temporary = join(dirname(path), `.${basename(path)}.${randomBytes(6).toString('hex')}`);
  try {
    mkdirSync(dirname(path), { recursive: true, mode: 0o755 });
    // Exclusive: a file or link that lies there already must not be written through.
    const file = openSync(temporary, 'wx', 0o600);
    try {
      writeFileSync(file, after);
      fchmodSync(file, mode);
      fsyncSync(file);
    } finally {
      closeSync(file);
    }
    const now = look();
    if (now.path !== path || now.text !== text) return false;
    renameSync(temporary, path);
    return true;
  } catch (error) {
    if (error instanceof SandboxError) throw error;
    const code = errnoOf(error) ?? String(error);
    throw unusable(path, `it cannot be written (${code})`);
  } finally {
    rmSync(temporary, { force: true });
  }
}

/** False: it has changed meanwhile. */
function remove(path: string, text: string | undefined, look: () => Found): boolean {
  const now = look();
  if (now.path !== path || now.text !== text) return false;
  try {
    rmSync(path, { force: true });
    return true;
  } catch (error) {
    throw unusable(path, `it cannot be removed (${errnoOf(error) ?? String(error)})`);
  }
}

const unusable = (path: string, why: string) =>
  new SandboxError('usage.invalid', `${path} is left as it is: ${why}`);
