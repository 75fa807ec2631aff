import type { PathLookup } from '../confine/plan/path-lookup.ts';

/** Port: asks the host also what patterns match. */
export interface PathSearch extends PathLookup {
  /**
   * What is there under an absolute path with patterns of the shell in it (`*`, `?`, `[…]`): all that it may match; hidden files
   * only where a dot is in the pattern. `undefined`: it cannot be told, or it is too much.
   */
  expand(pattern: string): readonly string[] | undefined;
}

/** What a program obeys in a workspace without being told to: git its repository, rg files with names of what is ignored. */
export type ObeyedFiles = 'repository' | 'ignore-files';

/** What was found of it; a text: why it cannot be obeyed, completing "PROGRAM …". */
export type ObeyedState =
  | string
  | {
      /** Where git keeps the repository, and the directory of its files; `undefined`: none was looked for. */
      readonly repository?: { readonly directory: string; readonly worktree: string };
    };

/** Port: looks at what a program would obey that is started in a directory, and that nothing holds. */
export type LookAtObeyed = (files: ObeyedFiles, directory: string) => ObeyedState;

/** Port: what the version control around files would bring back. Nothing more than a help against mistakes. */
export interface Versions {
  /** Whether a file is tracked, and as it was committed or staged. */
  keeps(path: string): boolean;
  /** Whether git ignores a path that it does not track, by what stands in the repository. */
  ignores(path: string): boolean;
  /**
   * The first file at or beneath a canonical path, or matching it, that would be lost with it. `counts`: only those for
   * which it is true, and nothing beneath directories for which it is not.
   */
  lostWith(path: string, counts?: (path: string, isDirectory: boolean) => boolean): string | undefined;
  /** All such files. Of very many, those that were found so far and one that stands for the rest. */
  allLostWith(path: string, counts?: (path: string, isDirectory: boolean) => boolean): readonly string[];
  /**
   * The first file that differs from what was committed or staged, of those that the repository tracks in which a canonical
   * directory is: at or beneath a canonical path, or anywhere. `unstaged`: only what differs from what was staged.
   */
  changedFrom(directory: string, path?: string, unstaged?: boolean): string | undefined;
  /** The first file, or the repository, in which something is staged that was not committed. */
  stagedIn(directory: string): string | undefined;
  /**
   * Where git came to a stop in the middle of a merge or of what applies commits: the first file that somebody staged since, or
   * in which they work on a conflict. `tracked`: or in which they changed anything. `stopped`: whether there is such a stop.
   */
  changedSinceStop(
    directory: string,
    tracked: boolean,
  ): { readonly stopped: boolean; readonly file?: string | undefined };
}

/** Port: remembers which files of a workspace commands made, over processes. */
export interface MadeFiles {
  /** The state of each file when the command that made it had ended, by path. */
  known(): ReadonlyMap<string, string>;
  /** Remembers states of files. If that fails, they are forgotten, and removing the file is asked about. */
  add(states: ReadonlyMap<string, string>): void;
}

/** What matters, for a decision, of a shell that has run other commands before. */
export interface ShellFacts {
  /** Names that stand for something of the shell's own now: its functions and aliases. */
  readonly names: readonly string[];
  /** Why words may mean something else than they say; each completes "in this session …". */
  readonly doubts: readonly string[];
  /** Variables that name a place, as decisions resolve them, and hold another one. */
  readonly places: readonly string[];
  /** Why a relative `cd` may lead elsewhere; completes the same. */
  readonly directoryDoubt: string | undefined;
}
