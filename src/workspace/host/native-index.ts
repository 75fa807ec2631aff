// Types of the addon for the index of a workspace, which finds what commands leave behind, and for private copies.

declare module '../../confine/native/contract.ts' {
  interface NativeAddon {
    /**
     * Looks at nothing yet. `saved`: bytes of `saveIndex`. They say nothing of what changed since, and are passed over if they are
     * damaged, of another specification, addon or boot, or of a clock that was set back.
     */
    createIndex(spec: NativeIndexSpec, saved?: Buffer): NativeIndex;
    /** Further absolute paths to look at with each look, there or not; before the first command. */
    watchPaths(index: NativeIndex, paths: readonly string[]): void;
    /**
     * The first walk, on a thread; again, of an index that no command has: what is there now, for which directories that did
     * not change are not read. If something could not be read then, only a new index says what a first walk would. A command whose confinement has an index that was not read reads it first, and does not
     * start if that fails.
     */
    readIndex(
      index: NativeIndex,
      done: (indexed: NativeIndexed | undefined, failure: NativeFailure | undefined) => void,
    ): void;
    /** What is known now, for a later process; empty where not everything could be looked at. On a thread. */
    saveIndex(index: NativeIndex, done: (saved: Buffer) => void): void;
    /** Gives back what it watches with, which the user has few of. Nothing is to run with it any more. */
    closeIndex(index: NativeIndex): void;
  }
  interface NativeEffects {
    readonly leftBehind?: NativeLeftBehind;
    readonly copies?: readonly NativeChangedCopy[];
    /** What changed since it was told last. */
    readonly changedDirectories?: readonly NativeChangedDirectory[];
    /** In `toldDirectories`, such as `slot:home/NAME`; the first few. */
    readonly made?: readonly string[];
    /** The last 1,000, each path once. */
    readonly makings?: readonly NativeMaking[];
  }
  interface NativeGuests {
    /** What a command leaves behind is looked for with it. Several confinements may share one. */
    readonly index?: NativeIndex | undefined;
  }
}

/** What the index looks for in a workspace. A name is that of a directory entry, not a path. */
export interface NativeIndexSpec {
  /** A canonical directory. */
  readonly root: string;
  /** An entry with such a name is noted in every directory that is looked at. */
  readonly names: readonly string[];
  /** An entry whose name ends with one of these is noted in every directory that is looked at. */
  readonly suffixes: readonly string[];
  /** Names of directories of which everything beneath is noted. */
  readonly wholes?: readonly string[];
  /** Symbolic links are noted whatever their names are, except those of packages. */
  readonly links?: boolean;
  /** Besides, in directories of git: those that are named `.git`, lie beneath one, or contain `HEAD`. */
  readonly gitNames: readonly string[];
  /** Directories that the first walk reads at most. */
  readonly maxDirectories: number;
  /** Further canonical directories, none in another one, and of how many directories of them all the first walk is. */
  readonly beside?: { readonly roots: readonly string[]; readonly maxDirectories: number } | undefined;
}

/** Something noted. `path` is absolute. */
export interface NativeIndexEntry {
  readonly path: string;
  readonly kind: 'file' | 'directory' | 'link' | 'other';
}

/** What the first walk found. */
export interface NativeIndexed {
  readonly entries: readonly NativeIndexEntry[];
  /** How many directories were looked at. */
  readonly directories: number;
  /** How many directories were listed, not only looked at, since the index was made or saved. */
  readonly read: number;
  /** There were more than `maxDirectories`: nothing is known of the others, now and later. */
  readonly spent: boolean;
  /** Like `spent`, for the directories beside the workspace. */
  readonly spentBeside: boolean;
  readonly unreadable: readonly string[];
}

/** An entry of the index that came, went or became another one. */
export interface NativeChangedEntry extends NativeIndexEntry {
  readonly change: 'appeared' | 'changed' | 'vanished';
  /**
   * Before the command (or the turn) began, while another one ran (or what an earlier turn left in the background): it
   * may be theirs, or the user's own.
   */
  readonly earlier?: true;
}

/** What commands left behind since the last look; a change is told once, at the first look. */
export interface NativeLeftBehind {
  readonly entries: readonly NativeChangedEntry[];
  /** There is more than one look enters (200,000 new directories) or tells (10,000 entries): the rest comes next time. */
  readonly spent: boolean;
  /** Directories that could not be read, for the first time in this look. */
  readonly unreadable: readonly string[];
}

/** Opaque: what is known of a workspace, owned by the addon. */
export interface NativeIndex {
  readonly nativeIndex: never;
}

/** An entry with one of the names of the index, as it was made. */
export interface NativeMaking {
  /** Absolute, as the command sees it. */
  readonly path: string;
  /** The name of the process, as it set it itself. */
  readonly program: string;
}

/** A private copy that is not what it was. */
export interface NativeChangedCopy {
  /** The source as the confinement's specification has it. */
  readonly source: string;
  /** The content when the command began, or when it was last reported. */
  readonly before: Buffer;
  /** `undefined`: it is gone, too large, no regular file, or could not be read. */
  readonly after: Buffer | undefined;
}

/** Something in the writable half of a layer; `path` is relative to that. */
export interface NativeCopiedEntry {
  readonly path: string;
  readonly kind: 'file' | 'link' | 'directory' | 'gone';
  /** Permissions. */
  readonly mode: number;
  /** The content of a file, or the target of a symbolic link. */
  readonly content: Buffer;
}

/** What a command changed of a directory over which its slot has a layer. */
export interface NativeChangedDirectory {
  readonly source: string;
  /** Whether what earlier commands left (`lower`) lay between. */
  readonly isOverKept: boolean;
  /** When the content of the source was read, in milliseconds since 1970. */
  readonly lookedMs: number;
  /** False: some of it is too large, too much or of another kind, and not among the entries. */
  readonly isComplete: boolean;
  readonly entries: readonly NativeCopiedEntry[];
}
