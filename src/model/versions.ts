/** Port: what the version control of a workspace would bring back. Nothing more than a help against mistakes. */
export interface Versions {
  /** The first file at or beneath a canonical path, or matching it, that would be lost with it. */
  lostWith(path: string): string | undefined;
  /** The first file that is tracked, at or beneath a canonical path, and differs from what was committed or staged. */
  changedAt(path: string): string | undefined;
}
