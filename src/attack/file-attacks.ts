import { copyFileSync, existsSync, lstatSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type Attack, type Place, type Staged, showsSecret } from './attack.ts';

const MARK = 'written-by-an-attack';

/** A new file with the secret in it. */
function victimIn(directory: string, { name, secret }: Place): string {
  const path = join(directory, name());
  writeFileSync(path, `${secret}\n`, { mode: 0o600 });
  return path;
}

const hasMark = (path: string): boolean => existsSync(path) && readFileSync(path, 'utf8').includes(MARK);
const isEmpty = (path: string): boolean => statSync(path).size === 0;
const isExecutable = (path: string): boolean => (statSync(path).mode & 0o111) !== 0;
const isOld = (path: string): boolean => statSync(path).mtimeMs < 10_000;

/** An attack on a new file outside, or in a directory that may be read. */
function on(
  where: 'outside' | 'readable',
  attack: Omit<Attack, 'stage'>,
  move: (path: string, place: Place) => Staged['move'],
  worked: (path: string) => boolean,
): Attack {
  const stage = (place: Place): Staged => {
    const path = victimIn(place[where], place);
    return { move: move(path, place), worked: () => worked(path) };
  };
  return { ...attack, stage };
}

/** Makes something directly in `/`, which may belong to who runs us, and removes it again at once. */
function inRoot(attack: Omit<Attack, 'stage'>, move: string, way: string): Attack {
  const stage = (place: Place): Staged | string =>
    place.isGranted('/') ? 'the policy grants /' : { move: [move, `${way}/${place.name()}`] };
  return { ...attack, stage };
}

const filesystem = (id: string, does: string) => ({ id, does, control: 'filesystem' }) as const;
const rename = (id: string, does: string) => ({ id, does, control: 'rename', claimedInPart: true }) as const;
const truncate = (id: string, does: string) => ({ id, does, control: 'truncate' }) as const;
const metadata = (id: string, does: string) => ({ id, does, control: 'metadata' }) as const;

/** Reading, writing and executing what the policy does not grant; seeing that it is there. */
export const FILE_ATTACKS: readonly Attack[] = [
  {
    ...filesystem('read-outside', 'reads a file outside the workspace'),
    stage: (place) => ({ move: ['read', victimIn(place.outside, place)], worked: showsSecret(place) }),
  },
  {
    ...filesystem('read-through-root-of-process', 'reads it by way of /proc/PID/root of a process outside'),
    stage: (place) => ({
      move: ['read', `/proc/${place.victim.pid}/root${victimIn(place.outside, place)}`],
      worked: showsSecret(place),
    }),
  },
  {
    ...filesystem('read-through-own-root', 'reads it by way of /proc/self/root'),
    stage: (place) => ({
      move: ['read', `/proc/self/root${victimIn(place.outside, place)}`],
      worked: showsSecret(place),
    }),
  },
  on('outside', filesystem('write-outside', 'writes to it'), (path) => ['write', path, MARK], hasMark),
  on(
    'readable',
    filesystem('write-read-only', 'writes to a file that may only be read'),
    (path) => ['write', path, MARK],
    hasMark,
  ),
  on(
    'outside',
    filesystem('write-through-symlink', 'writes through a symbolic link in the workspace'),
    (path, place) => ['symlink-and-write', path, join(place.workspace, place.name()), MARK],
    hasMark,
  ),
  on(
    'outside',
    filesystem('create-outside', 'makes a file outside'),
    (path) => ['create', `${path}.new`, MARK],
    (path) => existsSync(`${path}.new`),
  ),
  on(
    'readable',
    filesystem('create-read-only', 'makes a file where it may only read'),
    (path) => ['create', `${path}.new`, MARK],
    (path) => existsSync(`${path}.new`),
  ),
  on(
    'outside',
    filesystem('make-directory-outside', 'makes a directory outside'),
    (path) => ['make-directory', `${path}.d`],
    (path) => existsSync(`${path}.d`),
  ),
  on(
    'outside',
    filesystem('remove-outside', 'removes a file outside'),
    (path) => ['remove', path],
    (path) => !existsSync(path),
  ),
  on(
    'readable',
    filesystem('remove-read-only', 'removes a file that may only be read'),
    (path) => ['remove', path],
    (path) => !existsSync(path),
  ),
  inRoot(filesystem('create-in-root', 'makes a file directly in /'), 'create-briefly', ''),
  inRoot(
    filesystem('make-directory-in-root', 'makes a directory directly in /'),
    'make-directory-briefly',
    '',
  ),
  inRoot(filesystem('create-above-root', 'makes a file in / by way of /..'), 'create-briefly', '/..'),
  inRoot(
    filesystem('create-through-own-root', 'makes a file in / by way of /proc/self/root/..'),
    'create-briefly',
    '/proc/self/root/..',
  ),
  {
    ...filesystem('execute-outside', 'runs a program that lies outside'),
    stage: (place) => {
      const path = join(place.outside, place.name());
      copyFileSync(place.program, path);
      return { move: ['execute', path] };
    },
  },
  {
    id: 'see-outside',
    control: 'filesystem-view',
    does: 'asks whether a file outside exists',
    stage: (place) => ({ move: ['see', victimIn(place.outside, place)] }),
  },
  {
    id: 'list-outside',
    control: 'filesystem-view',
    does: 'lists a directory outside',
    stage: (place) => {
      const path = victimIn(place.outside, place);
      return { move: ['list', place.outside, path.slice(place.outside.length + 1)] };
    },
  },
  on(
    'outside',
    rename('rename-from-outside', 'moves a file from outside into the workspace'),
    (path, place) => ['rename', path, join(place.workspace, place.name())],
    (path) => !existsSync(path),
  ),
  {
    ...rename('rename-to-outside', 'moves a file from the workspace to outside'),
    stage: (place) => {
      const to = join(place.outside, place.name());
      return { move: ['rename', victimIn(place.workspace, place), to], worked: () => existsSync(to) };
    },
  },
  on(
    'readable',
    rename('link-and-write', 'makes a hard link of a file that may only be read, and writes to that'),
    (path, place) => ['link-and-write', path, join(place.workspace, place.name()), MARK],
    hasMark,
  ),
  {
    ...rename('exchange-with-outside', 'exchanges a file of the workspace with one outside'),
    stage: (place) => {
      const [mine, theirs] = [victimIn(place.workspace, place), victimIn(place.outside, place)];
      const { ino } = lstatSync(theirs);
      return {
        move: ['exchange', mine, theirs],
        worked: () => !existsSync(theirs) || lstatSync(theirs).ino !== ino,
      };
    },
  },
  on(
    'outside',
    truncate('truncate-outside', 'empties a file outside'),
    (path) => ['truncate', path],
    isEmpty,
  ),
  on(
    'readable',
    truncate('truncate-read-only', 'empties a file that may only be read'),
    (path) => ['truncate', path],
    isEmpty,
  ),
  on(
    'readable',
    truncate('open-truncate-read-only', 'empties it by opening it'),
    (path) => ['read-truncate', path],
    isEmpty,
  ),
  on(
    'outside',
    metadata('change-mode-outside', 'makes a file outside executable'),
    (path) => ['change-mode', path],
    isExecutable,
  ),
  on(
    'readable',
    metadata('change-mode-read-only', 'makes a file executable that may only be read'),
    (path) => ['change-mode', path],
    isExecutable,
  ),
  on(
    'readable',
    metadata('change-mode-by-magic-link', 'the same by way of /proc/self/fd'),
    (path) => ['change-mode-by-magic-link', path],
    isExecutable,
  ),
  on(
    'readable',
    metadata('change-times-read-only', 'changes the times of a file that may only be read'),
    (path) => ['change-times', path],
    isOld,
  ),
  {
    ...metadata('set-attribute-read-only', 'gives it an extended attribute'),
    stage: (place) => ({ move: ['set-attribute', victimIn(place.readable, place)] }),
  },
];
