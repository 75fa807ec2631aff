import type { Place } from './importer.ts';
import type { SourcePath } from './paths.ts';

/** What the source says of paths. */
export interface AccessWords {
  readonly allowRead: readonly Word[];
  readonly allowWrite: readonly Word[];
  readonly denyRead: readonly Word[];
  readonly denyWrite: readonly Word[];
}

/** One of them, where it stands. */
export interface Word {
  readonly place: Place;
  readonly value: unknown;
  readonly text: string;
  /** Never a pattern, whatever is in it. */
  readonly literal?: boolean;
  /** What relative paths are relative to. */
  readonly base: string;
  /** A denial that nothing opens again inside; of something allowed: it opens nothing inside of what is denied. */
  readonly firm?: boolean;
  /** A denial of what would be asked about there: files cannot be asked about here. */
  readonly asked?: boolean;
  /** Names in a directory that may be written which the product itself keeps read-only. */
  readonly kept?: readonly string[];
}

/** How the source means it. */
export interface AccessRules {
  /** True: what is allowed to be read inside of what is not, may be (srt). False: a denial always wins (Claude Code). */
  readonly innerAllowWins: boolean;
}

/** One of them, and what it leads to. */
export interface Denial extends Word, SourcePath {}
