import { accessSync, constants, lstatSync, readdirSync } from 'node:fs';
import { directoriesBetween, isBeneath } from '../../base/absolute-path.ts';
import { orElse } from '../../base/or-else.ts';
import { pathOf, textOfPath } from '../../base/path-text.ts';
import { loadAddon } from '../../confine/native/load.ts';
import type { PathRule } from '../../confine/plan/grant.ts';
import { SYSTEM_LOOKED_AT, SYSTEM_SECRETS } from '../../policy/index.ts';
import { mountPointsWithin, type NativeTree, readRegular } from '../../workspace/index.ts';

/** Settings of the machine's programs. */
const SETTINGS = '/etc';
/** What is larger is not looked at for each command, and so is not shown as a whole: 5 ms on a thread of its own. */
const MOST_LOOKED_AT = 5_000;

const { S_IFDIR, S_IFLNK, S_IFMT, S_IFREG, S_IROTH, S_IXOTH } = constants;

/** The mode of an object by its name beneath the tree. What is left out lies in something shut, or is a link or for everybody. */
type Modes = ReadonlyMap<string, number>;

/**
 * What every user of the machine may read of its programs' settings: without what only some may read, what is known to hold
 * secrets, and what else is mounted there. As root the same, and not what root may read.
 */
export async function systemTree(workspace: string): Promise<readonly PathRule[]> {
  // Where somebody works, other work lies beside it.
  if (isBeneath(workspace, SETTINGS)) return [];
  // The kernel keeps from others what is not for them. Of root, it keeps nothing.
  const modes = process.geteuid?.() === 0 ? await modesOfShut(SETTINGS) : modesAtTop(SETTINGS);
  if (modes === undefined) return [];
  const except = exceptions(SETTINGS, modes);
  if (except === undefined) return [];
  const plain = [...modes].flatMap(([name, mode]) => {
    const path = `${SETTINGS}/${name}`;
    return name.includes('/') || (mode & S_IFMT) === S_IFLNK || except.includes(path) ? [] : [path];
  });
  return [
    {
      ...{ path: SETTINGS, access: 'data', required: false, except, covers: new Set(plain) },
      parts: partsWithout(SETTINGS, except),
      reason: 'settings of programs, as far as everybody may read them',
    },
  ];
}

/** Further down in the tree, with what is in the table. */
const NAMED = [...SYSTEM_SECRETS.keys(), ...SYSTEM_LOOKED_AT];

/** Modes of the entries of a directory, and of paths in it that are known to hold secrets; `undefined`: it does not exist. */
function modesAtTop(root: string): Modes | undefined {
  const entries = orElse(() => readdirSync(root, { withFileTypes: true, encoding: 'buffer' }), undefined);
  const modeOf = (name: string) =>
    orElse(() => lstatSync(pathOf(`${root}/${name}`), { throwIfNoEntry: false })?.mode, undefined);
  const names = entries?.map((entry): readonly [string, number | undefined] => {
    const name = textOfPath(entry.name);
    // A known secret is never shown, so its mode does not matter.
    if (SYSTEM_SECRETS.has(name) && !entry.isSymbolicLink()) return [name, 0];
    return [name, entry.isSymbolicLink() ? S_IFLNK : modeOf(name)];
  });
  const deeper = NAMED.filter((name) => name.includes('/')).map((name) => [name, modeOf(name)] as const);
  return (
    names &&
    new Map([...names, ...deeper].flatMap(([name, mode]) => (mode === undefined ? [] : [[name, mode]])))
  );
}

/** Numbers of an entry of a tree; the first is the mode of the object. */
const FIELDS = 9;

/** Modes of the entries of a directory, and of paths at any depth that are shut or known to hold secrets; `undefined`: it does not exist, or is too large. */
async function modesOfShut(root: string): Promise<Modes | undefined> {
  const tree = await new Promise<NativeTree | undefined>((resolve) =>
    loadAddon().findShut(root, NAMED, MOST_LOOKED_AT, resolve),
  );
  const names = tree && textOfPath(tree.names).split('\0').slice(0, -1);
  return names && new Map(names.map((name, at) => [name, tree?.numbers[at * FIELDS] ?? 0]));
}

/** What is not shown of a tree, absolute, none in another; `undefined`: what is mounted there cannot be known (no /proc). */
function exceptions(root: string, modes: Modes): readonly string[] | undefined {
  // At any depth: a secret of a container, say.
  const mounts = orElse(() => mountPointsWithin(root), undefined);
  if (mounts === undefined) return undefined;
  const mounted = new Set(mounts.map((at) => textOfPath(Buffer.from(at, 'latin1')).slice(root.length + 1)));
  const found: string[] = [];
  const out = new Set<string>();
  const isInOut = (name: string) =>
    out.size > 0 && directoriesBetween(`/${name}`, '/').some((above) => out.has(above.slice(1)));
  for (const name of new Set([...modes.keys(), ...mounted])) {
    const mode = modes.get(name) ?? 0;
    const isLink = (mode & S_IFMT) === S_IFLNK;
    // A symbolic link needs no check here: its target is checked.
    if (!mounted.has(name) && (isLink || (isForAll(mode) && !mayHoldSecrets(root, name)))) continue;
    if (isInOut(name)) continue;
    out.add(name);
    if (canBeOpened(`${root}/${name}`)) found.push(`${root}/${name}`);
  }
  return found;
}

/** Whether everybody may read a file, or list and enter a directory. */
function isForAll(mode: number): boolean {
  const kind = mode & S_IFMT;
  if (kind === S_IFDIR) return (mode & (S_IROTH | S_IXOTH)) === (S_IROTH | S_IXOTH);
  return kind === S_IFREG && (mode & S_IROTH) !== 0;
}

/** Names of secrets in /etc that the table does not list. Tested at each start, so one expression instead of those for all secrets. */
const CALLED_SECRET = /^\.env|secret|credential|passw|\.key$/i;

function mayHoldSecrets(root: string, name: string): boolean {
  if (SYSTEM_SECRETS.has(name)) return true;
  if (SYSTEM_LOOKED_AT.has(name)) return !holdsNone(`${root}/${name}`);
  return !name.includes('/') && CALLED_SECRET.test(name);
}

/** The largest of these files that is looked at. */
const LARGEST = 64 * 1024;
const COMMENTS = /<!--[\s\S]*?-->|^\s*[#;].*$/gm;
const SAYS_SECRET = /pass|pwd|secret|token|auth|key|credential|private|:\/\/[^/\s]*@/i;

/** Whether nothing in a file of settings, outside of its comments, is about a secret. */
function holdsNone(path: string): boolean {
  const content = orElse(() => readRegular(path, LARGEST), undefined);
  return content !== undefined && !SAYS_SECRET.test(content.toString().replace(COMMENTS, ''));
}

/** The kernel keeps the rest from commands: they have no more rights than we have. */
function canBeOpened(path: string): boolean {
  const may = (mode: number) =>
    orElse(() => {
      accessSync(pathOf(path), mode);
      return true;
    }, false);
  return may(constants.R_OK) || may(constants.W_OK) || may(constants.X_OK);
}

/** The largest parts of a tree that hold none of the exceptions. A link is followed where it leads, and grants nothing. */
function partsWithout(root: string, except: readonly string[]): readonly string[] {
  const entries = orElse(() => readdirSync(pathOf(root), { withFileTypes: true, encoding: 'buffer' }), []);
  return entries.flatMap((entry) => {
    const path = `${root}/${textOfPath(entry.name)}`;
    if (entry.isSymbolicLink() || except.includes(path)) return [];
    return except.some((inner) => isBeneath(inner, path)) ? partsWithout(path, except) : [path];
  });
}
