import { lstatSync, rmSync } from 'node:fs';
import { errnoOf } from '../../base/errno-of.ts';
import { SandboxError } from '../../base/errors/sandbox-error.ts';
import { orElse } from '../../base/or-else.ts';
import { atPlaceOf, readRegular, replaceAt, type WritePlace } from '../../workspace/index.ts';

/** Another process that changes the file at the same time gets this many chances to finish. */
const MOST_ATTEMPTS = 20;
/** Larger ones are no settings that people have. */
const MOST_BYTES = 16 * 1024 ** 2;

/** A file of settings as it is now. */
interface Found {
  readonly text: string | undefined;
  readonly mode: number;
}

/**
 * Changes a file of settings: all of it or nothing, with the mode it has, at the place that a link of the user's to it leads
 * to; links that a command could have made are not followed. `within`: a project, in which commands can make any link.
 * Returns the texts before and after, `undefined` where there is no file; nothing is written if they are the same or `dryRun`
 * is set.
 * @throws {SandboxError} `usage.invalid` for a file that is not there to be changed, `file.unusable` for a link.
 */
export function changeSettingsFile(
  path: string,
  change: (text: string | undefined) => string | undefined,
  { within, dryRun }: { readonly within: string | undefined; readonly dryRun: boolean },
): { readonly before: string | undefined; readonly after: string | undefined; readonly path: string } {
  const commandsWrite = within === undefined ? [] : [within];
  const newMode = within === undefined ? 0o600 : 0o644;
  const once = (directoryMode: number | undefined) =>
    atPlaceOf(path, { commandsWrite, ...(directoryMode === undefined ? {} : { directoryMode }) }, (place) => {
      const found = find(place, newMode);
      const after = change(found.text);
      const isDone = dryRun || after === found.text || replace(place, found, after);
      return isDone ? { before: found.text, after, path: place.path } : 'changed meanwhile';
    });
  for (let attempt = 0; attempt < MOST_ATTEMPTS; attempt += 1) {
    const done = once(undefined) ?? withoutDirectory(path, change, dryRun) ?? once(0o755);
    if (done !== undefined && done !== 'changed meanwhile') return done;
  }
  throw unusable(path, 'another program keeps changing it; try again');
}

/** Without a directory there is no file: the result where that is not to change, or is only to be shown. */
function withoutDirectory(
  path: string,
  change: (text: string | undefined) => string | undefined,
  dryRun: boolean,
) {
  const after = change(undefined);
  return dryRun || after === undefined ? { before: undefined, after, path } : undefined;
}

function find({ at, path }: WritePlace, newMode: number): Found {
  const info = lstatSync(at, { throwIfNoEntry: false });
  if (info === undefined) return { text: undefined, mode: newMode };
  if (!info.isFile()) throw unusable(path, 'it is no file');
  if (info.uid !== process.geteuid?.())
    throw unusable(path, `it belongs to user ${info.uid}; change it as that user`);
  const text = orElse(() => textAt(at), undefined);
  if (text === undefined) throw unusable(path, 'it cannot be read as UTF-8');
  return { text, mode: info.mode & 0o7777 };
}

function textAt(at: string): string | undefined {
  const content = readRegular(at, MOST_BYTES);
  return content && new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(content);
}

/** False: it has changed meanwhile. */
function replace(place: WritePlace, { text, mode }: Found, after: string | undefined): boolean {
  const { at, path } = place;
  const isStill = () => find(place, mode).text === text;
  try {
    if (after !== undefined) return replaceAt(place, after, { mode, isStill });
    if (!isStill()) return false;
    rmSync(at, { force: true });
    return true;
  } catch (error) {
    if (error instanceof SandboxError) throw error;
    const what = after === undefined ? 'removed' : 'written';
    throw unusable(path, `it cannot be ${what} (${errnoOf(error) ?? String(error)})`);
  }
}

const unusable = (path: string, why: string) =>
  new SandboxError('usage.invalid', `${path} is left as it is: ${why}`);
