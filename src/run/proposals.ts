import { lstatSync, readdirSync, type Stats } from 'node:fs';
import { dirname, join, sep } from 'node:path';
import { absoluteOr, directoriesBetween, isBeneath } from '../base/absolute-path.ts';
import { orElse } from '../base/or-else.ts';
import {
  holdsSecret,
  isSecretPlace,
  LARGEST_SECRET_FILE,
  SECRET_PLACES,
  whatNameSays,
} from '../base/secret-files.ts';
import { visibleLine } from '../base/visible-text.ts';
import { PROGRAMS_IN_HOME } from '../base/words.ts';
import type { Policy } from '../model/index.ts';
import { OBEYED_IN_HOME } from '../policy/index.ts';
import { type Environment, readRegular, type Surroundings, stateDirectoryPath } from '../workspace/index.ts';
import { realPath } from './resolve/own-program.ts';

/** Where something is, for what may be proposed. */
export interface Places {
  readonly home: string;
  readonly workspace: string;
  /** Paths of `filesystem.secret`. */
  readonly secret: readonly string[];
  /** Of the caller: variables say where settings, state and data of the user are. */
  readonly env: Environment;
}

/** Where something is for the commands of a policy that is resolved. */
export const placesIn = ({
  home,
  workspace,
  policy,
  around,
}: Pick<Places, 'home' | 'workspace'> & {
  readonly policy: Policy;
  readonly around: Pick<Surroundings, 'env'>;
}): Places => ({ home, workspace, secret: policy.filesystem.secret, env: around.env });

/** How much of a directory is looked through before it counts as too large. */
export interface LookLimits {
  readonly entries: number;
  /** Files whose content is looked at. */
  readonly contents: number;
}
/** A second or two of looking; larger than the tool chains that people have. */
export const PATIENT: LookLimits = { entries: 500_000, contents: 40_000 };
/** Limits for a message about a failed command: some dozen milliseconds. */
export const BRIEF: LookLimits = { entries: 2_000, contents: 1_000 };

/** What is proposed for something that was denied, or why nothing is. */
export type Proposed = { readonly value: string } | { readonly why: string };

/** Proposes the narrowest path for a list of a policy under which something at `object` works, which `named` names. */
export function propose(
  { list, named, object }: { readonly list: string; readonly named: string; readonly object: string },
  places: Places,
  limits: LookLimits,
): Proposed {
  const wide = existing(named);
  const why = whyNotProposed(wide, places, list, limits);
  if (why === undefined) return { value: wide };
  // In a directory of everybody's, what was made there.
  const isOther = object !== wide && isThere(object);
  return isOther && whyNotProposed(object, places, list, limits) === undefined ? { value: object } : { why };
}

const infoOf = (path: string) => orElse(() => lstatSync(path, { throwIfNoEntry: false }), undefined);
const isThere = (path: string) => infoOf(path) !== undefined;

/**
 * A path as a policy should have it: without `.`, `..` and doubled slashes, and not by a link in the workspace, which a later
 * command could point elsewhere. `object` is the same place without links, as the kernel found it; it is also the answer where
 * the name leads elsewhere for this process than for the command (`/proc/self/cwd/..`).
 */
export function withoutDetours(named: string, object: string, workspace: string): string {
  const plain = named.split(sep).reduce((at, part) => {
    if (part === '' || part === '.') return at;
    if (part !== '..') return join(at, part);
    // Behind a link, `..` is the directory around what the link leads to.
    return dirname(infoOf(at)?.isSymbolicLink() === true ? realPath(at) : at);
  }, '/');
  if (isBeneath(plain, workspace) && !isBeneath(object, workspace)) return object;
  if (plain === named) return named;
  const leadsThere =
    realPath(plain) === realPath(object) || realPath(dirname(plain)) === realPath(dirname(object));
  return leadsThere ? plain : object;
}

/** Names that a program makes up are gone by now: the directory that is there stands for them. */
function existing(path: string): string {
  return [path, ...directoriesBetween(path, '/').toReversed(), '/'].find(isThere) ?? path;
}

/** Said of a path that holds keys or credentials, by its name or by what is in it. */
export const LOOKS_SECRET = 'it looks like a secret';

/** What lies in the directory of a project, and in no other. */
export const OF_A_PROJECT = [
  '.git',
  '.hg',
  '.svn',
  '.env',
  'package.json',
  'pyproject.toml',
  'Cargo.toml',
  'go.mod',
];

/** The directories of projects in which a path lies, innermost first. */
export const projectsAround = (path: string): readonly string[] =>
  directoriesBetween(path, '/')
    .filter((directory) => OF_A_PROJECT.some((name) => isThere(join(directory, name))))
    .toReversed();

/** Directories with everybody's things in them: none is proposed as a whole. */
const TOO_BROAD: readonly string[] = [
  ...['/', '/home', '/root', '/etc', '/usr', '/var', '/var/tmp', '/var/lib', '/opt', '/srv', '/mnt'],
  ...[
    '/media',
    '/tmp',
    '/run',
    '/sys',
    '/dev',
    '/lib',
    '/bin',
    '/sbin',
    '/boot',
    '/proc',
    '/var/log',
    '/run/user',
  ],
];
/** Directories of a home in which every program keeps its settings or its state. */
const SHARED_IN_HOME = [
  '.config',
  '.local',
  '.local/share',
  '.local/state',
  '.cache',
  '.var',
  '.var/app',
  'snap',
];

/** Programs and settings of the whole machine: what is written there runs outside, for everybody. */
const SYSTEM = ['/etc', '/usr', '/bin', '/sbin', '/lib', '/lib32', '/lib64', '/libx32', '/boot'];
/** Where installers put what lasts: programs and libraries of a user, and of the system for all its users. */
const INSTALLED_IN_HOME = [...PROGRAMS_IN_HOME, '.local/lib', '.npm-global', '.cargo'];
const INSTALLED = ['/usr', '/opt'];

/** What is said of a refused installation: it works in the workspace, where later commands find it. */
export const INSTALL_HERE =
  'install it into the workspace: a venv, npm install --prefix, cargo install --root, GOBIN';

/** Whether something is made where installers put it, and nothing in a sandbox can. */
export const isInstalledThere = (path: string, home: string): boolean =>
  [...INSTALLED, ...INSTALLED_IN_HOME.map((inner) => join(home, inner))].some((place) =>
    isBeneath(path, place),
  );

/** Where people install by hand. */
const LOCAL = '/usr/local';

/**
 * Why a path is not proposed for a list of the policy; `undefined`: it may be. Every proposal goes through this rule: it opens
 * no secret, no home, no state and no settings as a whole, and nothing that programs outside run or obey.
 */
export function whyNotProposed(
  named: string,
  places: Places,
  list: string,
  limits: LookLimits = PATIENT,
): string | undefined {
  const real = realPath(named);
  const said = (real === named ? [named] : [named, real]).map((path) => whyNotByPath(path, places, list));
  return said.find((why) => why !== undefined) ?? whatLiesThere(real, places, limits);
}

/** Like `whyNotProposed`, by the canonical path alone: its contents are not read. */
export function whyNotByPath(
  path: string,
  { home, workspace, secret, env }: Places,
  list: string,
): string | undefined {
  const isIn = (paths: readonly string[]) => paths.some((above) => isBeneath(path, above));
  const isAround = (paths: readonly string[]) => paths.some((inner) => isBeneath(inner, path));
  const inHome = (names: readonly string[]) => names.map((name) => `${home === '/' ? '' : home}/${name}`);
  if (list === 'filesystem.write' && isIn(SYSTEM) && !isBeneath(path, LOCAL))
    return 'the whole system runs or obeys what lies there';
  if (isIn(secret)) return 'filesystem.secret names it';
  if (isSecretByPath(path, home, env)) return LOOKS_SECRET;
  const shared = [...inHome(SHARED_IN_HOME), ...sharedByVariables(home, env)];
  if (TOO_BROAD.includes(path) || path === homeAround(path) || isAround([home, workspace, ...shared]))
    return `all of ${visibleLine(inTilde(path, home), 100)} would be open, and ${isBeneath(workspace, path) ? 'the workspace' : 'too much'} lies in it`;
  if (isAround(secret)) return 'filesystem.secret names something in it';
  if (isAround(inHome(SECRET_PLACES))) return 'secrets are kept in it';
  const obeyed = inHome(OBEYED_IN_HOME);
  if (list === 'filesystem.write' && (isIn(obeyed) || isAround(obeyed)))
    return isInstalledThere(path, home)
      ? `programs are run from there; ${INSTALL_HERE}`
      : 'programs of yours run or obey what lies there';
  const state = stateDirectoryPath(home, env.XDG_STATE_HOME);
  return isIn([state]) ? 'sandbox-run keeps what it trusts there' : undefined;
}

/** The path with `~` for the home directory. */
const inTilde = (path: string, home: string) =>
  isBeneath(path, home) ? `~${path.slice(home.length)}` : path;

/** Directories of settings, state and data that variables put elsewhere. */
const sharedByVariables = (home: string, env: Environment) =>
  ['XDG_CONFIG_HOME', 'XDG_STATE_HOME', 'XDG_DATA_HOME', 'XDG_CACHE_HOME', 'XDG_RUNTIME_DIR'].map((name) =>
    absoluteOr(env[name], home),
  );

function isSecretByPath(
  path: string,
  ownHome: string,
  { XDG_CONFIG_HOME, XDG_DATA_HOME }: Environment,
): boolean {
  if (whatNameSays(path) === 'secret') return true;
  const beneath = (root: string | undefined, before = '') =>
    root !== undefined && isBeneath(path, root) && isSecretPlace(`${before}${path.slice(root.length + 1)}`);
  return (
    beneath(ownHome) ||
    beneath(homeAround(path)) ||
    beneath(XDG_CONFIG_HOME || undefined, '.config/') ||
    beneath(XDG_DATA_HOME || undefined, '.local/share/')
  );
}

/** The home in which a path lies where homes usually are: that of another user, say. */
const homeAround = (path: string) => /^(?:\/root|\/home\/[^/]+)(?=\/|$)/.exec(path)?.[0];

/** What is found at a path, or in the directory there, that keeps it from being proposed. */
function whatLiesThere(path: string, { home, env }: Places, limits: LookLimits): string | undefined {
  const found = orElse(() => lstatSync(path, { throwIfNoEntry: false }), undefined);
  if (found?.isSocket() === true) return 'it is a socket, and what listens there is not held by a policy';
  if (found?.isFile() === true) return holdsSecretAt(path, found) ? LOOKS_SECRET : undefined;
  if (found?.isDirectory() !== true) return undefined;
  const pending = [path];
  let entries = 0;
  let contents = 0;
  for (let at = pending.pop(); at !== undefined; at = pending.pop()) {
    const directory = at;
    // Nothing in a directory that we cannot list can be reached by commands either.
    for (const entry of orElse(() => readdirSync(directory, { withFileTypes: true }), [])) {
      const inner = join(directory, entry.name);
      entries += 1;
      if (entries > limits.entries || contents > limits.contents) return TOO_LARGE;
      // What cannot be named as text cannot be looked at by this name.
      if (entry.name.includes('\ufffd')) return `a name in it is not UTF-8, ${visibleLine(entry.name, 100)}`;
      if (entry.isSocket()) return 'sockets lie in it, and what listens there is not held by a policy';
      if (isSecretByPath(inner, home, env)) return lies(path, inner);
      if (entry.isDirectory()) pending.push(inner);
      if (!entry.isFile()) continue;
      contents += 1;
      if (holdsSecretAt(inner)) return lies(path, inner);
    }
  }
  return undefined;
}

const TOO_LARGE = 'it is too large to look for secrets and sockets in; allow it by hand';
const lies = (root: string, inner: string) =>
  `a secret lies in it, ${visibleLine(inner.slice(root === '/' ? 1 : root.length + 1), 100)}`;

/** A file that cannot be read by us is none that a command of ours could read. */
export function holdsSecretAt(path: string, known?: Stats): boolean {
  if (whatNameSays(path) === 'secret') return true;
  if (known !== undefined && (known.size === 0 || known.size > LARGEST_SECRET_FILE)) return false;
  return orElse(() => {
    const content = readRegular(path, LARGEST_SECRET_FILE);
    return content !== undefined && content.length > 0 && holdsSecret(path, content);
  }, false);
}
