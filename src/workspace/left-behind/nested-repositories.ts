import { dirname, join } from 'node:path';
import { innermostAround } from '../../base/absolute-path.ts';
import { identityOf } from '../host/identity.ts';

/**
 * Git's own directories in a workspace that are content of it: a package with a `.git`, a clone, a worktree. Commands may remove
 * and move them, so it is known which one is where.
 */
export class NestedRepositories {
  private readonly directories: readonly string[];
  private readonly obeyed: readonly string[];
  private readonly byIdentity = new Map<string, string>();

  /** The repositories before the first command. `tops`: their working trees. `obeyed`: paths in them, and named by them, that programs obey. */
  constructor(directories: readonly string[], tops: readonly string[], obeyed: readonly string[]) {
    this.directories = directories;
    this.obeyed = obeyed;
    for (const path of [...tops, ...directories]) {
      const identity = identityOf(path);
      if (identity !== undefined) this.byIdentity.set(identity, path);
    }
  }

  /** Whether a program obeys the path, or what is around it, because of one of them. */
  covers(path: string): boolean {
    return innermostAround(path, this.obeyed) !== undefined;
  }

  /** Whether a path that no longer exists vanished together with its repository, or with its directory. */
  isGoneAsAWhole(path: string): boolean {
    const directory = innermostAround(path, this.directories);
    return identityOf(directory === undefined ? dirname(path) : join(directory, 'HEAD')) === undefined;
  }

  /** Where what is in a repository now was, if that was moved as a whole; `undefined`: it was not. */
  wasAt(path: string): string | undefined {
    for (let at = dirname(path), rest = path.slice(at.length); at !== '/'; at = dirname(at)) {
      const before = this.byIdentity.get(identityOf(at) ?? '');
      if (before !== undefined) return before === at ? undefined : `${before}${rest}`;
      rest = path.slice(dirname(at).length);
    }
    return undefined;
  }
}
