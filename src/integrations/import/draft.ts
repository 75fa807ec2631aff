import type { RuleInFile } from '../../model/command-rule.ts';
import type { Autonomy } from '../../model/decision.ts';
import { POLICY_KEYS } from '../../model/policy-keys.ts';
import type { PathLookup } from '../../model/surroundings.ts';
import type { APPROVERS, LOSS_EFFECTS } from '../../model/words.ts';
import { isObject } from '../../util/is-object.ts';

/** What `policy import --from` takes. */
export const IMPORT_SOURCES = ['srt', 'claude-code', 'codex'] as const;

/** A place in the source, from its root on: `['permissions', 'deny', 0]`. */
export type Place = readonly (string | number)[];

/** A part of the source. */
export interface Part {
  readonly place: Place;
  readonly value: unknown;
}

/** It is represented in the policy. */
interface Represented {
  /** What stands for it. */
  readonly to: string;
}

/** It has no equivalent, or not the same one. */
interface Lost {
  /**
   * What it does to what is allowed. `narrower`: less is allowed here than there; `wider`: something is allowed here that
   * was not there; `none`: it is not about what commands may do.
   */
  readonly effect: (typeof LOSS_EFFECTS)[number];
  /** One sentence. */
  readonly why: string;
  /** What to do about it. */
  readonly what: string;
}

export type Loss = Part & Lost;

/** A source as a policy. Every leaf of the source is in `translated` or in `losses`. */
export interface Imported {
  /** As it would stand in a file. */
  readonly policy: Table;
  readonly translated: readonly (Part & Represented)[];
  readonly losses: readonly Loss[];
  /** What is different as a whole. */
  readonly remarks: readonly string[];
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

export type Table = Readonly<Record<string, unknown>>;

export function isTable(value: unknown): value is Table {
  return isObject(value) && !(value instanceof Date);
}

/** The table, or an empty one in place of anything else. */
export const tableOf = (value: unknown): Table => (isTable(value) ? value : {});

/** `permissions.deny[0]`; a key that is no plain name stands in quotes. */
export function placeText(place: Place): string {
  const shown = place.map((key) => {
    if (typeof key === 'number') return `[${key}]`;
    return /^[\w-]+$|^line \d+$/.test(key) ? `.${key}` : `[${JSON.stringify(key)}]`;
  });
  return shown.join('').replace(/^\./, '');
}

/** Every part that has nothing beneath it, empty tables and lists among them. */
export function leavesOf(value: unknown, place: Place = []): readonly Part[] {
  const members = Array.isArray(value) ? [...value.entries()] : Object.entries(tableOf(value));
  if (members.length === 0) return [{ place, value }];
  return members.flatMap(([key, member]) => leavesOf(member, [...place, key]));
}

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

/** Hosts that commands may reach there, or somebody is asked about, and that are not taken over. */
export const NO_HOSTS = narrower(
  'it names no host that could be listed here',
  'set network.mode = "listed", and list the hosts that commands need in network.allow',
);

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

/** What the source says of a host. */
export type HostUse = 'allow' | 'deny';

/** A host of the source, and where it stands. */
interface NamedHost extends Part {
  readonly use: HostUse;
  readonly text: string;
  readonly port?: number;
  readonly outcome?: Outcome;
}

interface Network {
  mode: 'off' | 'open' | 'listed';
  allow?: string[];
  deny?: string[];
  unix_sockets?: 'allowed';
}

type Files = Record<'read' | 'write' | 'protect' | 'hide', string[]> & { tmp?: 'private' };

/** Who answers what the policy asks. */
type ApproverName = (typeof APPROVERS)[number];

/** A policy that is being made, and the account of how the source was translated. */
export class Draft {
  /** By its keys. */
  readonly policy = {
    profile: 'workspace-write' as 'workspace-write' | 'read-only',
    security: {} as { readonly autonomy?: Autonomy },
    approval: {} as { readonly ask?: ApproverName },
    filesystem: { read: [], write: [], protect: [], hide: [] } as Files,
    network: { mode: 'off' } as Network,
    environment: { pass: [] as string[], set: {} as Record<string, string> },
    commands: { rules: [] as RuleInFile[] },
  };
  /** They are weighed against each other once all are known: by `translateAccess`. */
  readonly paths: Readonly<Record<PathUse, NamedPath[]>>;
  /** They are looked at together: by `translateHosts`. */
  readonly hosts: NamedHost[] = [];
  /** Why no hosts are taken over, whatever is said of them; `undefined`: they are. */
  noHosts: string | undefined;
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
