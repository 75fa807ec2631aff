import { lstatSync, realpathSync, type Stats } from 'node:fs';
import { dirname } from 'node:path';

/** Where Firejail is looked for: never where a PATH leads. */
const PLACES = ['/usr/bin/firejail', '/usr/local/bin/firejail'];

const SET_UID = 0o4000;
const WRITABLE_BY_OTHERS = 0o022;

/** Port: what is said of a path without following a last link. */
type Look = (path: string) => Pick<Stats, 'uid' | 'mode' | 'isFile'> | undefined;

/** The Firejail of this host, if only root can have changed it. */
export function findFirejail(
  look: Look = lookNow,
  resolve: (path: string) => string | undefined = resolveNow,
): { readonly path: string } | { readonly reason: string } {
  const found = PLACES.flatMap((place) => resolve(place) ?? [])[0];
  if (found === undefined) {
    return {
      reason: `Firejail is not installed (neither ${PLACES.join(' nor ')}); install the package firejail`,
    };
  }
  const program = look(found);
  if (program === undefined || !program.isFile() || program.uid !== 0)
    return { reason: `${found} is not a program of root's, so it is not trusted; install Firejail anew` };
  if ((program.mode & SET_UID) === 0) {
    return {
      reason: `${found} has no set-uid bit, without which it can do nothing; as root: chmod u+s ${found}`,
    };
  }
  for (let path = found; ; path = dirname(path)) {
    const one = look(path);
    if (one === undefined || one.uid !== 0 || (one.mode & WRITABLE_BY_OTHERS) !== 0) {
      return {
        reason: `others than root can change ${path}, so Firejail is not trusted; as root: chmod go-w ${path}`,
      };
    }
    if (path === '/') return { path: found };
  }
}

function lookNow(path: string): Stats | undefined {
  return lstatSync(path, { throwIfNoEntry: false });
}

function resolveNow(path: string): string | undefined {
  try {
    return realpathSync(path);
  } catch {
    return undefined;
  }
}
