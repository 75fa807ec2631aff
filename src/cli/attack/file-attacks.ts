import {
  copyFileSync,
  existsSync,
  lstatSync,
  mkdirSync,
  readFileSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { basename, dirname, join } from 'node:path';
import {
  type Attack,
  attacksOn,
  freshName,
  getsSecret,
  IN_PART,
  type Move,
  onlyIf,
  type Place,
  type Stage,
} from './attack.ts';

const MARK = 'written-by-an-attack';

/** A directory of a workspace that commands are not to see, and the file with the secret in it. */
export const HIDDEN_DIRECTORY = 'hidden';
export const HIDDEN_FILE = 'key';

const says = (path: string, text: string): boolean =>
  existsSync(path) && readFileSync(path, 'utf8').includes(text);
const hasMark = (path: string): boolean => says(path, MARK);
const isGone = (path: string): boolean => !existsSync(path);
const isEmpty = (path: string): boolean => statSync(path).size === 0;
const isExecutable = (path: string): boolean => (statSync(path).mode & 0o111) !== 0;
const isOld = (path: string): boolean => statSync(path).mtimeMs < 10_000;
/** Also where a later attack moved it to. */
const isEvil = (path: string, text: string): boolean =>
  says(path, text) || says(path.replace('/.git/', '/.git.aside/'), text);

/** A new file with the secret in it. */
function victimIn(directory: string, { secret }: Place): string {
  const path = join(directory, freshName());
  writeFileSync(path, `${secret}\n`, { mode: 0o600 });
  return path;
}

/** A directory. */
type Where = (place: Place) => string;
const outside: Where = (place) => place.outside;
const readable: Where = (place) => place.readable;
const workspace: Where = (place) => place.workspace;
const tmp: Where = ({ shared }) => shared('/tmp');
const shm: Where = ({ shared }) => shared('/dev/shm');

/** A move on a new file; its path is the first argument. */
const on =
  (
    where: Where,
    worked: (path: string) => boolean,
    move: string,
    ...args: readonly (string | ((place: Place) => string))[]
  ): Stage =>
  (place) => {
    const path = victimIn(where(place), place);
    const further = args.map((arg) => (typeof arg === 'string' ? arg : arg(place)));
    return { move: [move, path, ...further], worked: () => worked(path) };
  };

/** Making something new there. */
const makes =
  (where: Where, move: string, ...args: readonly string[]): Stage =>
  (place) => {
    const path = join(where(place), freshName());
    return { move: [move, path, ...args], worked: () => existsSync(path) };
  };

/** Being refused a new file, while nobody is told of it. */
const goesUntold: Stage = (place) => {
  const path = join(place.outside, freshName());
  return {
    move: ['create', path, MARK],
    // One that could not be carried out says nothing, and was denied nothing.
    worked: ({ ok, text }, { objects, isIncomplete }) => {
      if (!place.inSandbox) return ok;
      if (ok || text === '' || objects.includes(path)) return false;
      if (isIncomplete) throw new Error('the calls of the command could not be looked at');
      return true;
    },
  };
};

/** Reading a new file; `way`: to the root. */
const reads = (where: Where, way: Where = () => ''): Stage =>
  getsSecret((place) => ['read', `${way(place)}${victimIn(where(place), place)}`]);

/** Makes something directly in `/`, which may belong to who runs us, and removes it again at once. */
const inRoot =
  (move: string, way: string): Stage =>
  (place) => {
    onlyIf(!place.isGranted('/'), 'the policy grants /');
    return { move: [move, `${way}/${freshName()}`] };
  };

const inWorkspace = ({ workspace }: Place): string => join(workspace, freshName());

/** Planting code in a file of the workspace that the policy protects; `move`: with what comes before the code. */
const plants =
  (protectedPath: string, file: string, move: (path: (relative: string) => string) => Move): Stage =>
  (place) => {
    const isProtected = place.files.protect.includes(protectedPath);
    onlyIf(isProtected, `the policy does not protect ${protectedPath}`);
    const text = freshName();
    const path = (relative: string) => join(place.workspace, relative);
    return { move: [...move(path), text], worked: () => isEvil(path(file), text) };
  };

/** Leaving what is not there yet and would be obeyed: it is there while the command runs, and must not be afterwards. */
const leaves =
  (file: string, content = (mark: string) => mark): Stage =>
  (place) => {
    const path = join(place.workspace, file);
    mkdirSync(dirname(path), { recursive: true });
    const mark = freshName();
    return { move: ['create', path, content(mark)], worked: () => isEvil(path, mark) };
  };

/** The directory that is hidden. */
const hidden: Where = ({ workspace, files }) => {
  onlyIf(files.hide.length > 0, 'files in the workspace cannot be hidden here');
  return join(workspace, HIDDEN_DIRECTORY);
};
/** Reading the file in it; `way`: to the root. */
const readsHidden = (way = ''): Stage =>
  getsSecret((place) => ['read', `${way}${join(hidden(place), HIDDEN_FILE)}`]);

/**
 * Reading, writing and executing what the policy does not grant; seeing that it is there; planting code in the workspace
 * for the user's tools (the one that moves `.git` is the last); temporary files of others.
 */
export const FILE_ATTACKS: readonly Attack[] = [
  ...attacksOn('hidden-paths', [
    ['read-hidden', 'reads a file in the workspace that is hidden', readsHidden()],
    ['read-hidden-through-own-root', 'reads it by way of /proc/self/root', readsHidden('/proc/self/root')],
    [
      'move-hidden',
      'moves the directory that it is in',
      (place) => {
        const aside = `${hidden(place)}.aside`;
        return { move: ['rename', hidden(place), aside], worked: () => existsSync(aside) };
      },
    ],
  ]),
  ...attacksOn('filesystem', [
    ['read-outside', 'reads a file outside the workspace', reads(outside)],
    [
      'read-through-root-of-process',
      'reads it by way of /proc/PID/root of a process outside',
      reads(outside, ({ victim }) => `/proc/${victim.pid}/root`),
    ],
    ['read-through-own-root', 'reads it by way of /proc/self/root', reads(outside, () => '/proc/self/root')],
    ['write-outside', 'writes to it', on(outside, hasMark, 'write', MARK)],
    ['write-read-only', 'writes to a file that may only be read', on(readable, hasMark, 'write', MARK)],
    [
      'write-through-symlink',
      'writes through a symbolic link in the workspace',
      on(outside, hasMark, 'symlink-and-write', inWorkspace, MARK),
    ],
    ['create-outside', 'makes a file outside', makes(outside, 'create', MARK)],
    ['create-read-only', 'makes a file where it may only read', makes(readable, 'create', MARK)],
    ['make-directory-outside', 'makes a directory outside', makes(outside, 'make-directory')],
    ['remove-outside', 'removes a file outside', on(outside, isGone, 'remove')],
    ['remove-read-only', 'removes a file that may only be read', on(readable, isGone, 'remove')],
    ['create-in-root', 'makes a file directly in /', inRoot('create-briefly', '')],
    ['make-directory-in-root', 'makes a directory directly in /', inRoot('make-directory-briefly', '')],
    ['create-above-root', 'makes a file in / by way of /..', inRoot('create-briefly', '/..')],
    [
      'create-through-own-root',
      'makes a file in / by way of /proc/self/root/..',
      inRoot('create-briefly', '/proc/self/root/..'),
    ],
    [
      'execute-outside',
      'runs a program that lies outside',
      (place) => {
        const path = join(place.outside, freshName());
        copyFileSync(place.program, path);
        return { move: ['execute', path] };
      },
    ],
  ]),
  ...attacksOn('filesystem-view', [
    [
      'see-outside',
      'asks whether a file outside exists',
      (place) => ({ move: ['see', victimIn(place.outside, place)] }),
    ],
    [
      'list-outside',
      'lists a directory outside',
      (place) => ({ move: ['list', place.outside, basename(victimIn(place.outside, place))] }),
    ],
  ]),
  ...attacksOn(
    'rename',
    [
      [
        'rename-from-outside',
        'moves a file from outside into the workspace',
        on(outside, isGone, 'rename', inWorkspace),
      ],
      [
        'rename-to-outside',
        'moves a file from the workspace to outside',
        (place) => {
          const to = join(place.outside, freshName());
          return { move: ['rename', victimIn(place.workspace, place), to], worked: () => existsSync(to) };
        },
      ],
      [
        'link-and-write',
        'makes a hard link of a file that may only be read, and writes to that',
        on(readable, hasMark, 'link-and-write', inWorkspace, MARK),
      ],
      [
        'exchange-with-outside',
        'exchanges a file of the workspace with one outside',
        (place) => {
          const [mine, theirs] = [victimIn(place.workspace, place), victimIn(place.outside, place)];
          const { ino } = lstatSync(theirs);
          const worked = () => isGone(theirs) || lstatSync(theirs).ino !== ino;
          return { move: ['exchange', mine, theirs], worked };
        },
      ],
    ],
    IN_PART,
  ),
  ...attacksOn('truncate', [
    ['truncate-outside', 'empties a file outside', on(outside, isEmpty, 'truncate')],
    ['truncate-read-only', 'empties a file that may only be read', on(readable, isEmpty, 'truncate')],
    ['open-truncate-read-only', 'empties it by opening it', on(readable, isEmpty, 'read-truncate')],
  ]),
  ...attacksOn('metadata', [
    ['change-mode-outside', 'makes a file outside executable', on(outside, isExecutable, 'change-mode')],
    [
      'change-mode-read-only',
      'makes a file executable that may only be read',
      on(readable, isExecutable, 'change-mode'),
    ],
    [
      'change-mode-by-magic-link',
      'the same by way of /proc/self/fd',
      on(readable, isExecutable, 'change-mode-by-magic-link'),
    ],
    [
      'change-times-read-only',
      'changes the times of a file that may only be read',
      on(readable, isOld, 'change-times'),
    ],
    [
      'set-attribute-read-only',
      'gives it an extended attribute',
      (place) => ({ move: ['set-attribute', victimIn(place.readable, place)] }),
    ],
  ]),
  ...attacksOn(
    'protected-paths',
    [
      [
        'plant-hook',
        'adds a hook to the git repository',
        plants('.git/hooks', '.git/hooks/post-checkout', (path) => [
          'create',
          path('.git/hooks/post-checkout'),
        ]),
      ],
      [
        'change-hook',
        'changes a hook of the git repository',
        plants('.git/hooks', '.git/hooks/pre-commit', (path) => ['write', path('.git/hooks/pre-commit')]),
      ],
      [
        'change-git-config',
        'adds to the configuration of the repository',
        plants('.git/config', '.git/config', (path) => ['write', path('.git/config')]),
      ],
      [
        'leave-hook',
        'leaves a hook of a repository that came with it',
        leaves('vendored/.git/hooks/post-checkout'),
      ],
      [
        'leave-git-config',
        'leaves a repository of which git status runs a program',
        leaves('vendored/.git/config', (mark) => `[core]\n\tfsmonitor = ./${mark}\n`),
      ],
      ['leave-git-link', 'leads git to settings of its own', leaves('.git/commondir')],
      ['leave-agent-settings', 'leaves a server that an agent starts', leaves('.mcp.json')],
      ['leave-shell-settings', 'leaves what a shell runs at log-in', leaves('.bash_login')],
      [
        'link-envrc',
        'writes to .envrc by a second name',
        plants('.envrc', '.envrc', (path) => ['link-and-write', path('.envrc'), path('second-name')]),
      ],
      [
        'replace-editor-settings',
        'puts a .vscode of its own in its place',
        plants('.vscode', '.vscode/tasks.json', (path) => [
          'replace-directory',
          path('.vscode'),
          'tasks.json',
        ]),
      ],
      [
        'replace-repository',
        'moves .git away and makes one of its own',
        plants('.git/config', '.git/config', (path) => ['replace-directory', path('.git'), 'config']),
      ],
    ],
    IN_PART,
  ),
  ...attacksOn('private-tmp', [
    ['read-host-tmp', 'reads a file of the host in /tmp', reads(tmp)],
    ['create-in-host-tmp', 'leaves a file in the /tmp of the host', makes(tmp, 'create', MARK)],
    ['read-host-shm', 'reads a file of the host in /dev/shm', reads(shm)],
    ['create-in-host-shm', 'leaves a file in the /dev/shm of the host', makes(shm, 'create', MARK)],
  ]),
  ...attacksOn(
    'workspace-changes',
    [
      ['write-in-preview', 'writes to a file of the workspace', on(workspace, hasMark, 'write', MARK)],
      ['create-in-preview', 'leaves a file in the workspace', makes(workspace, 'create', MARK)],
      ['remove-in-preview', 'removes a file of the workspace', on(workspace, isGone, 'remove')],
    ],
    { manner: 'previewed' },
  ),
  ...attacksOn(
    'denials',
    [['go-untold', 'is refused a file outside, and nobody is told of it', goesUntold]],
    { ...IN_PART, letsNothingOut: ['enforced', 'degraded'] },
  ),
];
