import type { PathLookup } from '../../model/path-lookup.ts';
import type { PolicyFile } from '../../model/policy-keys.ts';
import type { LOSS_EFFECTS } from '../../model/words.ts';
import type { ImportSource } from './sources.ts';

/** A place in the source, from its root on: `['permissions', 'deny', 0]`. */
export type Place = readonly (string | number)[];

/**
 * What a loss does to what is allowed. `narrower`: less is allowed here than there; `wider`: something is allowed here
 * that was not there; `none`: it is not about what commands may do.
 */
export type LossEffect = (typeof LOSS_EFFECTS)[number];

/** Something of the source that is represented in the policy. */
export interface Translated {
  readonly place: Place;
  readonly value: unknown;
  /** What stands for it. */
  readonly to: string;
}

/** Something of the source that has no equivalent, or not the same one. */
export interface Loss {
  readonly place: Place;
  readonly value: unknown;
  readonly effect: LossEffect;
  /** One sentence. */
  readonly why: string;
  /** What to do about it. */
  readonly what: string;
}

/** What is known of the place for which a policy is made. */
export interface ImportPlace {
  /** Canonical. */
  readonly workspace: string;
  readonly home: string;
  /** Absolute path of the source. */
  readonly file: string;
  /** Whether a path is there: a policy with a path that is not there cannot be used. */
  readonly exists: (path: string) => boolean;
  /** Where paths lead: a denial and an allowance of one place may name it by different links. */
  readonly lookup: PathLookup;
}

/** A source as a policy. Every leaf of the source is in `translated` or in `losses`. */
export interface Imported {
  readonly policy: PolicyFile;
  readonly translated: readonly Translated[];
  readonly losses: readonly Loss[];
  /** What is different as a whole. */
  readonly remarks: readonly string[];
}

/** Turns settings of another sandbox into a policy. */
export interface PolicyImporter {
  /** As in `--from`. */
  readonly id: ImportSource;
  readonly summary: string;
  /**
   * @throws {SandboxError} `import.invalid` if the text is not what the product itself would read.
   */
  readonly translate: (text: string, place: ImportPlace) => Imported;
}
