import type { Word } from './access-words.ts';
import type { ImportPlace, Place } from './importer.ts';

/** Where the settings stand in the source, and how their paths are meant. */
export interface SettingsPlace {
  readonly where: ImportPlace;
  /** Of the settings in the source. */
  readonly at: Place;
  /** What relative paths are relative to. */
  readonly base: string;
  /** Further paths, from elsewhere in the source. */
  readonly more: {
    readonly allowRead: readonly Word[];
    readonly allowWrite: readonly Word[];
    readonly denyRead: readonly Word[];
    readonly denyWrite: readonly Word[];
  };
  /** What is writable without being named. */
  readonly workspaceIsWritable: boolean;
  readonly innerAllowWins: boolean;
  /** The runtime is in use, and with it what it never lets be written. */
  readonly isInUse: boolean;
}
