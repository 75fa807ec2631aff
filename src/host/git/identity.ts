import { readFileSync } from 'node:fs';
import { isAbsolute, join } from 'node:path';
import { EMPTY_GIT_CONFIG, editGitConfig, parseGitConfig, valuesByKey } from './config-file.ts';

/** Settings that make `git commit` work and tell nothing secret. Everything else of the user's file stays outside. */
const HARMLESS_KEYS =
  /^(user\.(name|email)|init\.defaultbranch|core\.autocrlf|safe\.directory|pull\.rebase)$/;

/**
 * A `.gitconfig` for the private home with the harmless settings of the user's own; undefined if there are none.
 * Files that they include are not read: which ones apply may depend on the repository.
 */
export function gitIdentity(home: string, xdgConfigHome: string | undefined): string | undefined {
  // As for git, an empty variable is none. A relative one would name a file of whatever directory we are in.
  const config =
    xdgConfigHome !== undefined && isAbsolute(xdgConfigHome) ? xdgConfigHome : join(home, '.config');
  const files = [join(config, 'git/config'), join(home, '.gitconfig')];
  const settings = files
    .flatMap((file) => parseGitConfig(readIfAny(file))?.settings ?? [])
    .filter(({ key, value }) => value !== undefined && HARMLESS_KEYS.test(key));
  if (settings.length === 0) return undefined;
  const edits = [...valuesByKey(settings)].map(([key, values]) => ({ key, values }));
  return editGitConfig(EMPTY_GIT_CONFIG, edits).toString('utf8');
}

function readIfAny(path: string): Buffer {
  try {
    return readFileSync(path);
  } catch {
    return Buffer.alloc(0);
  }
}
