import { isObject } from '../../base/is-object.ts';
import type { LOSS_EFFECTS } from '../../base/words.ts';
import type { PathLookup } from '../../confine/plan/path-lookup.ts';
import { POLICY_KEYS, type PolicyFile, type RuleInFile } from '../../model/index.ts';
import type { Environment } from '../../workspace/index.ts';

/** What `policy import --from` takes. */
export const IMPORT_SOURCES = ['srt', 'claude-code', 'codex'] as const;

/** What is known of the place for which a policy is made. */
export interface ImportPlace {
  /** Canonical. */
  readonly workspace: string;
  readonly home: string;
  /** The caller's variables. */
  readonly env: Environment;
  /** Absolute path of the source. */
  readonly file: string;
  /** Whether a path is there: a policy with a path that is not there cannot be used. */
  readonly exists: (path: string) => boolean;
  /** Where paths lead: a denial and an allowance of one place may name it by different links. */
  readonly lookup: PathLookup;
}

/** A place in the source, from its root on: `['permissions', 'deny', 0]`. */
export type Place = readonly (string | number)[];

/** A part of the source. */
export interface Part {
  readonly place: Place;
  readonly value: unknown;
}

/** What becomes of a part of the source: something stands for it, or it has no equivalent, or not the same one. */
export type Outcome = { readonly to: string } | Lost;

interface Lost {
  /**
   * What it does to what is allowed. `narrower`: less is allowed here than there; `wider`: something is allowed here that
   * was not there; `none`: it is not about what commands may do.
   */
  readonly effect: (typeof LOSS_EFFECTS)[number];
  readonly why: string;
  /** What to do about it. */
  readonly what: string;
}

export const as = (to: string): Outcome => ({ to });
const NOTHING_TO_DO = 'nothing is to be done';
/** Less is allowed here; `use`: what allows more. */
export const narrower = (why: string, use?: string): Outcome => {
  const what = use === undefined ? NOTHING_TO_DO : `use ${use} if that is too narrow`;
  return { effect: 'narrower', why, what };
};
/** Something is allowed here that was not there; `use`: what forbids it. */
export const wider = (why: string, use: string): Outcome => {
  return { effect: 'wider', why, what: `use ${use} if that is too wide` };
};
/** A setting that does not concern what commands may do. */
export const unrelated = (why: string): Outcome => ({ effect: 'none', why, what: NOTHING_TO_DO });

const NOTHING = as('nothing, as it is empty');
const MAY_FORBID = wider(
  'it is not known here, or not of the form that it has to have, and may forbid something',
  'a key that forbids it here',
);
const NOT_OF_COMMANDS = unrelated('it is not about what commands may do');

/** Reads a part of the source; `undefined`: it has not the form for that. 'noted': that is seen to elsewhere. */
export type Reader = (part: Part, draft: Draft) => Outcome | 'noted' | undefined;

/** Settings of a source, and what becomes of each. In a name `.*` stands for every key, and `[]` for every item. */
export type Rows = Readonly<Record<string, Outcome | Reader>>;

/** A path of the source, where it stands, how it is meant, and where it leads. */
export interface NamedPath extends Part {
  readonly text: string;
  /** Never a pattern, whatever is in it. */
  readonly literal?: boolean;
  /** A denial that nothing opens again inside; of something allowed: it opens nothing inside of what is denied. */
  readonly firm?: boolean;
  /** A denial of what would be asked about there: files cannot be asked about here. */
  readonly asked?: boolean;
  /** A name that is meant in every directory, as in .gitignore. */
  readonly anyDepth?: boolean;
  /** Canonical as far as it exists: the path, or of a pattern what stands before it. */
  readonly root: string;
  /** The same by the links that it is named by. */
  readonly named: string;
  /** What stands behind `root` in a pattern; empty: it is `root` and what is beneath it. */
  readonly pattern: string;
  /** A link in the workspace is on the way to it, which a command can put another in place of. */
  readonly isByLink: boolean;
}

/** A host of the source, and where it stands. */
export interface NamedHost extends Part {
  readonly use: 'allow' | 'deny';
  readonly text: string;
  /** What else is to be said of it, if it is listed. */
  readonly outcome?: Outcome | undefined;
}

type Section<Name extends keyof PolicyFile> = NonNullable<PolicyFile[Name]>;
type Lists<Name extends string> = Record<Name, string[]>;

/** A policy that is being made, and the account of how the source was translated. */
export class Draft {
  readonly policy = {
    profile: 'workspace-write' as 'workspace-write' | 'read-only',
    security: {} as Section<'security'>,
    approval: {} as Section<'approval'>,
    filesystem: { read: [], write: [], protect: [], hide: [] } as Section<'filesystem'> &
      Lists<'read' | 'write' | 'protect' | 'hide'>,
    network: { mode: 'off' } as Section<'network'>,
    environment: { pass: [] as string[], set: {} as Record<string, string> },
    commands: { rules: [] as RuleInFile[] },
  };
  /** They are weighed against each other once all are known: by `translateAccess`. */
  readonly paths = {
    ...{ allowRead: [] as NamedPath[], allowWrite: [] as NamedPath[] },
    ...{ denyRead: [] as NamedPath[], denyWrite: [] as NamedPath[] },
  };
  /** Names that the product itself keeps read-only in every directory that may be written. */
  kept: readonly string[] = [];
  /** They are looked at together: by `translateHosts`. */
  readonly hosts: NamedHost[] = [];
  /** Why no hosts are taken over, whatever is said of them; `undefined`: they are. */
  noHosts: string | undefined;
  /** What is different as a whole. */
  readonly remarks: string[] = [];
  readonly translated: (Part & { readonly to: string })[] = [];
  readonly losses: (Part & Lost)[] = [];

  readonly where: ImportPlace;

  constructor(where: ImportPlace) {
    this.where = where;
  }

  /** Notes what becomes of a part of the source. */
  note({ place, value }: Part, outcome: Outcome): void {
    if ('to' in outcome) this.translated.push({ place, value, ...outcome });
    else this.losses.push({ place, value, ...outcome });
  }

  /** Takes down what the source says of a host. */
  host(part: Part, use: NamedHost['use'], text: string, outcome?: Outcome): 'noted' {
    this.hosts.push({ ...part, use, text, outcome });
    return 'noted';
  }

  /**
   * Reads a source row by row, and notes every leaf of it; the first row has it that understands it. What none does may
   * forbid something, unless `isUnrelated`.
   */
  read(source: Table, rows: Rows, isUnrelated: (place: Place) => boolean = () => false): void {
    const told = new Set<string>();
    const isTold = (place: Place) => place.some((_, at) => told.has(JSON.stringify(place.slice(0, at + 1))));
    for (const [name, row] of Object.entries(rows))
      for (const part of partsAt({ place: [], value: source }, name.split(/\.|(?=\[\])/))) {
        if (isTold(part.place)) continue;
        const isEmpty = name.endsWith('[]') && typeof part.place.at(-1) === 'string';
        const outcome = isEmpty ? NOTHING : typeof row === 'function' ? row(part, this) : row;
        if (outcome !== undefined) told.add(JSON.stringify(part.place));
        if (typeof outcome === 'object') this.note(part, outcome);
      }
    for (const leaf of leavesOf(source).filter(({ place }) => !isTold(place))) {
      const unknown = isUnrelated(leaf.place) ? NOT_OF_COMMANDS : MAY_FORBID;
      this.note(leaf, isTable(leaf.value) ? NOTHING : unknown);
    }
  }

  /** Of the variables that every command is given, gives these empty. */
  hide(isHidden: (name: string) => boolean): void {
    for (const name of POLICY_KEYS.environment.pass.default)
      if (isHidden(name)) this.policy.environment.set[name] = name === 'PATH' ? BASIC_PATH : '';
  }
}

const BASIC_PATH = '/usr/local/bin:/usr/bin:/bin';

/** The parts that a name of {@link Rows} stands for; of a list without items, the list. */
function partsAt(part: Part, [key, ...rest]: readonly string[]): readonly Part[] {
  const members = membersOf(part.value);
  if (key === undefined || (key === '[]' && Array.isArray(part.value) && members.length === 0)) return [part];
  return members
    .filter(([name]) => (typeof name === 'number' ? key === '[]' : key === '*' || key === name))
    .flatMap(([name, value]) => partsAt({ place: [...part.place, name], value }, rest));
}

/** Every part that has nothing beneath it, empty tables and lists among them. */
export function leavesOf(value: unknown, place: Place = []): readonly Part[] {
  const members = membersOf(value);
  if (members.length === 0) return [{ place, value }];
  return members.flatMap(([name, member]) => leavesOf(member, [...place, name]));
}

const membersOf = (value: unknown): readonly (readonly [string | number, unknown])[] =>
  Array.isArray(value) ? [...value.entries()] : Object.entries(tableOf(value));

export type Table = Readonly<Record<string, unknown>>;

export const isTable = (value: unknown): value is Table => isObject(value) && !(value instanceof Date);

/** The table, or an empty one in place of anything else. */
export const tableOf = (value: unknown): Table => (isTable(value) ? value : {});
