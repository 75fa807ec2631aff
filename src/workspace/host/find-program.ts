import { accessSync, constants, statSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { orElse } from '../../base/or-else.ts';

/** What a search for a program found. */
export type FoundProgram =
  | { readonly kind: 'found'; readonly path: string }
  | { readonly kind: 'not-found' }
  /** The first match that exists but may not be executed, and why. `isHidden`: it may, but not in the sandbox. */
  | {
      readonly kind: 'not-executable';
      readonly path: string;
      readonly reason: string;
      readonly isHidden: boolean;
    };

const HIDDEN = 'it is outside of what the sandbox may execute; allow its directory with the option readable';

/**
 * Finds a program as execvp does: a name with a slash is a path from `cwd`, any other is looked up in `searchPath`.
 * `isVisible` says whether the sandbox will be able to execute a path; a match that it cannot is passed over.
 */
export function findProgram(
  name: string,
  searchPath: string,
  cwd: string,
  isVisible: (path: string) => boolean,
): FoundProgram {
  const candidates = name.includes('/')
    ? [resolve(cwd, name)]
    : searchPath.split(':').map((directory) => join(resolve(cwd, directory), name));
  let refused: FoundProgram = { kind: 'not-found' };
  for (const path of name === '' ? [] : candidates) {
    const reason = reasonAgainst(path, isVisible);
    if (reason === undefined) return { kind: 'found', path };
    if (reason !== 'missing' && refused.kind === 'not-found')
      refused = { kind: 'not-executable', path, reason, isHidden: reason === HIDDEN };
  }
  return refused;
}

/** True if a program that was found before is still there and executable. */
export function isStillExecutable(path: string): boolean {
  return orElse(() => {
    accessSync(path, constants.X_OK);
    return true;
  }, false);
}

function reasonAgainst(path: string, isVisible: (path: string) => boolean): string | undefined {
  // ENOTDIR, ELOOP or EACCES on the way: as good as missing, as for execvp.
  const info = orElse(() => statSync(path, { throwIfNoEntry: false }), undefined);
  if (info === undefined) return 'missing';
  if (!info.isFile()) return 'it is not a file';
  if (!isStillExecutable(path)) return 'it has no execute permission';
  return isVisible(path) ? undefined : HIDDEN;
}
