import type { Autonomy } from '../../model/decision.ts';
import { type ApproverName, POLICY_KEYS, type RuleInFile } from '../../model/policy-keys.ts';
import type { Imported, ImportPlace, Loss, Lost, Part, Place, Represented, Table } from './importer.ts';
import { isTable, leavesOf } from './importer.ts';

/** How a part of the source is translated. */
export type Outcome = Represented | Lost;

/** It is represented. */
export const as = (to: string): Outcome => ({ to });
const lost =
  (effect: Lost['effect']) =>
  (why: string, what = 'nothing is to be done'): Outcome => ({ effect, why, what });
/** Less is allowed here than there. */
export const narrower = lost('narrower');
/** Something is allowed here that was not there. */
export const wider = lost('wider');
/** It is not about what commands may do. */
export const unrelated = lost('none');

export const MAY_FORBID = wider(
  'it is not known here, or not of the form that it has to have, and may forbid something',
  'look it up, and say it in the policy if it forbids something',
);

/** Reads a part of the source. What becomes of it; `undefined`: it is not known. */
export type Reader = (part: Part, draft: Draft) => Outcome | 'noted' | undefined;

/** What the source says of a path. */
export type PathUse = 'allowRead' | 'allowWrite' | 'denyRead' | 'denyWrite';

/** How the source means a path. */
export interface PathMeaning {
  /** Never a pattern, whatever is in it. */
  readonly literal?: boolean;
  /** A denial that nothing opens again inside; of something allowed: it opens nothing inside of what is denied. */
  readonly firm?: boolean;
  /** A denial of what would be asked about there: files cannot be asked about here. */
  readonly asked?: boolean;
  /** A name that is meant in every directory, as in .gitignore. */
  readonly anyDepth?: boolean;
  /** Names in a directory that may be written which the product itself keeps read-only. */
  readonly kept?: readonly string[];
}

/** A path of the source, where it stands, and where it leads. */
export interface NamedPath extends Part, PathMeaning {
  readonly text: string;
  /** Canonical as far as it exists: the path, or of a pattern what stands before it. */
  readonly root: string;
  /** The same by the links that it is named by. */
  readonly named: string;
  /** What stands behind `root` in a pattern; empty: it is `root` and what is beneath it. */
  readonly pattern: string;
  /** A link in the workspace is on the way to it, which a command can put another in place of. */
  readonly isByLink: boolean;
}

type Files = Record<'read' | 'write' | 'protect' | 'hide', string[]> & { tmp?: 'private' };

/** A policy that is being made, and the account of how the source was translated. */
export class Draft {
  /** By its keys. */
  readonly policy = {
    profile: 'workspace-write' as 'workspace-write' | 'read-only',
    security: {} as { readonly autonomy?: Autonomy },
    approval: {} as { readonly ask?: ApproverName },
    filesystem: { read: [], write: [], protect: [], hide: [] } as Files,
    network: { mode: 'off' } as { mode: 'off' | 'open'; unix_sockets?: 'allowed' },
    environment: { pass: [] as string[], set: {} as Record<string, string> },
    commands: { rules: [] as RuleInFile[] },
  };
  /** They are weighed against each other once all are known: by `translateAccess`. */
  readonly paths: Readonly<Record<PathUse, NamedPath[]>>;
  readonly remarks: string[] = [];
  readonly where: ImportPlace;
  readonly #unknown: (place: Place) => Outcome;
  readonly #translated: (Part & Represented)[] = [];
  readonly #losses: Loss[] = [];

  /** `unknown`: what becomes of what no reader knows. */
  constructor(where: ImportPlace, unknown: (place: Place) => Outcome = () => MAY_FORBID) {
    this.paths = { allowRead: [], allowWrite: [], denyRead: [], denyWrite: [] };
    this.where = where;
    this.#unknown = unknown;
  }

  /** Notes how a part of the source is translated. */
  note({ place, value }: Part, outcome: Outcome): void {
    if ('to' in outcome) this.#translated.push({ place, value, ...outcome });
    else this.#losses.push({ place, value, ...outcome });
  }

  /** Reads a part of the source, and notes what becomes of it. */
  read(part: Part, reader: Reader | Outcome | undefined): void {
    const outcome = typeof reader === 'function' ? reader(part, this) : reader;
    if (outcome === undefined)
      for (const leaf of leavesOf(part.value, part.place))
        this.note(leaf, isTable(leaf.value) ? as('nothing, as it is empty') : this.#unknown(leaf.place));
    else if (outcome !== 'noted') this.note(part, outcome);
  }

  /** Of the variables that every command is given, gives these empty. */
  hide(isHidden: (name: string) => boolean): void {
    for (const name of POLICY_KEYS.environment.pass.default)
      if (isHidden(name)) this.policy.environment.set[name] = name === 'PATH' ? BASIC_PATH : '';
  }

  imported(): Imported {
    const policy = filled({ ...this.policy });
    return { policy, translated: this.#translated, losses: this.#losses, remarks: this.remarks };
  }
}

const BASIC_PATH = '/usr/local/bin:/usr/bin:/bin';

/** Without empty lists and tables, and of each list every item once. */
function filled(table: Table): Table {
  const members = Object.entries(table).map(([key, value]): [string, unknown] => {
    if (Array.isArray(value)) return [key, [...new Set(value)]];
    return [key, isTable(value) ? filled(value) : value];
  });
  return Object.fromEntries(
    members.filter(([, value]) => typeof value === 'string' || Object.keys(Object(value)).length > 0),
  );
}
