import type { HookAdapter, HookOptions } from '../hooks/hook-adapter.ts';

/** All that is known of an agent: how its hooks are answered, and how they get into its settings. */
export interface Agent {
  readonly hooks: HookAdapter;
  readonly installer: Installer;
}

/** Whose sessions something is installed for. */
export type InstallScope = 'user' | 'project';

/** Where the files of an agent are looked for. */
export interface InstallPlaces {
  /** Home of the user. */
  readonly home: string;
  /** The directory that `install` was started in. */
  readonly project: string;
  /** Variables that may say that an agent's own directory is elsewhere. */
  readonly env: Readonly<Record<string, string | undefined>>;
}

/** One file of an agent's settings, and what becomes of it. */
export interface FileChange {
  readonly path: string;
  /**
   * The text that is to be there for the one that is; `undefined`: there is no file, or there is to be none.
   * @throws {SandboxError} `usage.invalid` for a text that cannot be changed without losing something.
   */
  readonly change: (text: string | undefined) => string | undefined;
  /** Why nothing is decided about in spite of what is installed, in a sentence: another setting in the file switches it off. */
  readonly switchedOff?: (text: string) => string | undefined;
}

/** One way to put this program into an agent's settings. */
export interface InstallWay {
  /** What is installed, in the messages of `install`. */
  readonly what: string;
  /** The files for what is wanted; `undefined`: it is to be taken out. */
  readonly filesOf: (
    scope: InstallScope,
    places: InstallPlaces,
    options: HookOptions | undefined,
  ) => readonly FileChange[];
  /** What the user has to do or to know after it, in one line. */
  readonly next?: string;
}

/** How this program gets into the settings of one agent. At most one of the ways is installed at a time. */
interface Installer {
  readonly hooks: InstallWay;
  /** In place of the agent's own shell tool; `undefined`: `install` has no such way for it. */
  readonly mcp?: InstallWay;
}
