// The entry point `sandbox-run/confine`: the core of src/confine, with a look at what callers without types give. A field that
// is not known, or not what it has to be, would otherwise mean less containment than they wanted, or break the addon.
import { SandboxError } from './base/errors/sandbox-error.ts';
import { BACKEND_IDS, CONTROL_IDS, DEMANDS } from './base/words.ts';
import {
  type CommandToStart,
  type Confinement,
  type ConfineOptions,
  type Confiner,
  confine as confineUnchecked,
  type Demands,
  type Grant,
  isUnenforceable,
  type Preparation,
  type Unenforceable,
} from './confine/index.ts';

export type * from './confine/index.ts';
export { isUnenforceable, probeHost } from './confine/index.ts';

/**
 * The confiner of this host.
 * @throws {SandboxError} `usage.invalid` by `prepare`, `plan`, `another` and `start`: a field is unknown, missing or malformed.
 * `sandbox.closed` by `start` after `close`.
 */
export function confine(options: ConfineOptions = {}): Confiner {
  const confiner = confineUnchecked(options);
  return {
    prepare: async (grant, demands, how) => {
      look('grant', GRANT, grant);
      look('demands', DEMAND, demands ?? {});
      return checked(await confiner.prepare(grant, demands, how));
    },
    plan: async (grant, demands) => {
      look('grant', GRANT, grant);
      look('demands', DEMAND, demands ?? {});
      return confiner.plan(grant, demands);
    },
  };
}

/** A confinement whose further input is looked at, too. */
function checked(made: Confinement | Unenforceable): Confinement | Unenforceable {
  if (isUnenforceable(made)) return made;
  const [start, another, close] = [made.start.bind(made), made.another.bind(made), made.close.bind(made)];
  let isClosed = false;
  return Object.assign(made, {
    close: () => {
      isClosed = true;
      close();
    },
    start: (command: CommandToStart) => {
      if (isClosed) throw new SandboxError('sandbox.closed', 'the confinement is closed');
      look('command', COMMAND, command);
      return start(command);
    },
    another: async (grant: Grant, how?: Preparation) => {
      look('grant', GRANT, grant);
      return checked(await another(grant, how));
    },
  });
}

/** Checks a value: what it must be, if it is not that; `undefined`: it is valid. */
type Look = (value: unknown) => string | undefined;
type Table<Of> = Readonly<Record<keyof Of, Look>>;

const be =
  (what: string, isSo: (value: unknown) => boolean): Look =>
  (value) =>
    isSo(value) ? undefined : what;
const oneOf = (...words: readonly unknown[]) =>
  be(`one of ${words.join(', ')}`, (value) => words.includes(value));
const isText = (value: unknown) => typeof value === 'string' && !value.includes('\0');
const isPath = (value: unknown) => isText(value) && (value as string).startsWith('/');
const isList = (isSo: (value: unknown) => boolean) => (value: unknown) =>
  Array.isArray(value) && value.every(isSo);
const path = be('an absolute path', isPath);
const paths = be('an array of absolute paths', isList(isPath));
const list = be('an array', Array.isArray);
const texts = be('an array of strings without NUL', isList(isText));
const flag = be('true or false', (value) => typeof value === 'boolean');
const count = be('a number, 0 or more', (value) => typeof value === 'number' && value >= 0);
const isRecord = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === 'object' && value !== null && !Array.isArray(value) && !ArrayBuffer.isView(value);
const record = be('an object', isRecord);
/** A field that is not checked: a text that is shown, or a function, whose author makes the rest of the grant too. */
const anything = () => undefined;

/** Looks at each field that is there. */
function look(what: string, table: Readonly<Record<string, Look>>, given: unknown): void {
  if (!isRecord(given)) throw invalid(`${what} must be an object`);
  for (const [name, value] of Object.entries(given)) {
    const lookAt = Object.hasOwn(table, name) ? table[name] : undefined;
    if (lookAt === undefined)
      throw invalid(`${what} has no field ${name}; there are ${Object.keys(table).join(', ')}`);
    const expected = value === undefined ? undefined : lookAt(value);
    if (expected !== undefined) throw invalid(`${what}.${name} must be ${expected}`);
  }
  for (const name of ['workspace', 'program'])
    if (name in table && given[name] === undefined)
      throw invalid(`${what}.${name} is missing: an absolute path`);
}

const invalid = (problem: string) => new SandboxError('usage.invalid', problem);

/** A table for what is in a field. */
const inside =
  (what: string, table: Readonly<Record<string, Look>>): Look =>
  (value) => {
    look(what, table, value);
    return undefined;
  };

const GRANT: Table<Grant> = {
  workspace: path,
  workspaceAsNamed: path,
  workspaceAccess: oneOf('read', 'write'),
  write: paths,
  read: paths,
  data: paths,
  devices: paths,
  paths: list,
  beside: paths,
  readOnlyInside: paths,
  obeyed: paths,
  shortfall: anything,
  ofOtherWorktrees: paths,
  hidden: record,
  masked: paths,
  own: list,
  network: inside('grant.network', {
    mode: oneOf('off', 'listed', 'open'),
    unixSockets: oneOf('contained', 'allowed'),
    allow: texts,
    unlisted: oneOf('deny', 'ask'),
    verify: oneOf('none', 'sni'),
  } satisfies Table<Required<NonNullable<Grant['network']>>>),
  networkRules: record,
  home: oneOf('private', 'host'),
  hostHome: path,
  databaseHome: path,
  tmp: oneOf('auto', 'private', 'host'),
  temporaryParent: path,
  parentBesideTmp: anything,
  pathLookup: anything,
  privateParents: anything,
  memoryParent: path,
  seedFiles: list,
  seedsOfPlace: list,
  cache: record,
  noCache: anything,
  copied: paths,
  hooks: record,
  sharedByGroup: flag,
  layer: record,
  leavesOpen: flag,
  onlyReads: flag,
  limits: inside('grant.limits', {
    memory: count,
    processes: count,
    cpuSeconds: count,
    tmpBytes: count,
    idleTimeoutMs: count,
    umask: count,
    userProcesses: count,
    openFiles: count,
    fileSize: count,
    addressSpace: count,
  } satisfies Table<Required<NonNullable<Grant['limits']>>>),
  explain: oneOf('auto', 'always', 'never'),
  looksAtReads: flag,
  tellsUses: flag,
};

const DEMAND: Table<Demands> = {
  controls: inside('demands.controls', Object.fromEntries(CONTROL_IDS.map((id) => [id, oneOf(...DEMANDS)]))),
  backend: oneOf('auto', ...BACKEND_IDS),
  minimum: oneOf(...BACKEND_IDS),
  accepted: oneOf(...BACKEND_IDS),
  always: be(
    'an array of controls',
    isList((value) => CONTROL_IDS.some((id) => id === value)),
  ),
};

const COMMAND: Table<CommandToStart> = {
  program: path,
  argv: texts,
  env: (value) =>
    value instanceof Uint8Array || (isRecord(value) && Object.entries(value).flat().every(isText))
      ? undefined
      : 'an object of strings without NUL, or bytes',
  cwd: path,
  stdio: be('three numbers', (value) => isList(Number.isInteger)(value) && (value as unknown[]).length === 3),
  input: be('bytes', (value) => value instanceof Uint8Array),
  streamOutput: flag,
  outputLimit: count,
  timeoutMs: count,
  killGraceMs: count,
  extras: record,
};
