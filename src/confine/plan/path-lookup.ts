import type { SymbolicLink } from './launch-plan.ts';

/** Where a path leads. */
export interface ResolvedPath {
  readonly kind: 'directory' | 'other' | 'missing';
  /** Without links; for a missing path as far as it exists, plus the rest. */
  readonly canonical: string;
  /** The links followed, in order; their own paths are canonical except for the last part. */
  readonly links: readonly SymbolicLink[];
  /** Only for `missing`: what cannot be looked at, and so may be there; `undefined`: it is known not to be. */
  readonly unknown?:
    | {
        readonly path: string;
        readonly errno: string;
        /** The directory is shut by another user: no command can open it either. */
        readonly byAnother?: true;
      }
    | undefined;
}

/** Port: asks the host where paths lead. */
export interface PathLookup {
  resolve(path: string): ResolvedPath;
}
