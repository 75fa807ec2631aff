// THE table of the test projects: which files each has, which rooms of src/ and native/ it tests, and who runs it.
import { readdirSync } from 'node:fs';
import { join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('..', import.meta.url));

/** Houses of src/ whose folders are rooms of their own, and folders that are where the rest of their house is one room. */
const HOUSES_OF_ROOMS = ['confine', 'gate', 'judge', 'workspace'];
const ROOMS_IN_HOUSES = ['cli/attack', 'run/change-sets', 'run/other-backends'];

/** The room that a file of src/ belongs to, by its path beneath src/; '' for a file of no house. */
export function roomOf(file) {
  const folders = file.split('/').slice(0, -1);
  const two = folders.slice(0, 2).join('/');
  return HOUSES_OF_ROOMS.includes(folders[0]) || ROOMS_IN_HOUSES.includes(two) ? two : (folders[0] ?? '');
}

/**
 * `tests`: beginnings of paths. Each file has one home: the project with the longest beginning that fits.
 * `rooms`: folders of src/, or of native/ where that is said; `docs`: what users read and copy, that is docs/, examples/, man/ and the
 * Markdown files of the root. `npm run test:changed` chooses by them.
 */
export const PROJECTS = {
  quick: {
    tests: ['test/unit/', 'test/layering.test.ts'],
    rooms: [
      'base',
      'model',
      'confine/kernel',
      'confine/plan',
      'workspace/host',
      'gate/state',
      'gate/audit',
      'run',
      'serve',
      'agents',
      'docs',
    ],
  },
  confine: {
    tests: ['test/enforcement/', 'test/conformance/', 'test/application/', 'test/backends/'],
    rooms: [
      'confine/native',
      'confine/kernel',
      'confine/plan',
      'confine/backends',
      'run/other-backends',
      'cli/attack',
      'workspace/host',
      'native/*',
    ],
  },
  workspace: {
    tests: ['test/left-behind/', 'test/real-work/'],
    rooms: ['workspace/left-behind', 'workspace/host', 'policy'],
  },
  changes: { tests: ['test/changes/'], rooms: ['run/change-sets', 'native/core'] },
  doors: {
    tests: ['test/cli/', 'test/library/', 'test/integration/', 'test/clients/', 'test/packaging/'],
    rooms: [
      'run',
      'serve',
      'agents',
      'cli',
      'gate/approvals',
      'gate/audit',
      'gate/state',
      'native/client',
      'docs',
    ],
  },
  judge: {
    tests: [
      'judge/',
      'policy/',
      ...['approvals', 'decide', 'hooks', 'review'].map((room) => `gate/${room}/`),
    ].map((folder) => `test/unit/${folder}`),
    rooms: [
      'gate/approvals',
      'judge/checks',
      'gate/decide',
      'gate/hooks',
      'policy',
      'judge/programs',
      'gate/review',
      'judge/shell',
    ],
  },
  network: {
    tests: [
      ...['ask-for-hosts', 'carried-connections', 'listed-', 'names-over-tcp', 'tls'].map(
        (name) => `test/real-work/${name}`,
      ),
      ...['reach-', 'send-unlisted-', 'list-without-'].map((name) => `test/enforcement/${name}`),
      'test/integration/network-recipes',
    ],
    rooms: ['policy', 'native/notify'],
  },
  fleet: {
    tests: [
      'test/fleet/',
      'test/unit/fleet/',
      'test/unit/gate/nats/',
      'test/unit/gate/state/fleet',
      'test/cli/fleet',
    ],
    rooms: ['fleet', 'gate/nats', 'docs'],
  },
  hosts: { tests: ['test/hosts/'], rooms: ['workspace/host', 'confine/native', 'native/*'] },
};

/**
 * What `npm test` runs besides the units, which are at home in `quick` and `judge`: the attacks that the claim of this project is
 * made of, on the strongest tier, and smoke tests of every door. What of it needs a program that the README does not name says
 * so with `lacks` (test/support/programs.ts).
 */
export const QUICK = [
  ...[
    'alias-paths',
    'change-mounts',
    'claim-too-much',
    'escape-the-tree',
    'gain-privileges',
    'inspect-processes',
    'leave-set-id-files',
    'outlive-the-launcher',
    'plant-code-for-later',
    'reach-network',
    'reach-unix-sockets',
    'read-environment',
    'read-outside',
    'signal-outside',
    'use-inherited-descriptors',
    'use-kernel-interfaces',
    'write-outside',
  ].map((name) => `test/enforcement/${name}.test.ts`),
  'test/changes/in-use.test.ts',
  'test/changes/settings.test.ts',
  'test/changes/told.test.ts',
  'test/left-behind/cli.test.ts',
  'test/left-behind/file-kinds.test.ts',
  'test/left-behind/git-settings.test.ts',
  'test/cli/smoke.test.ts',
  'test/integration/smoke.test.ts',
  'test/fleet/smoke.test.ts',
];

const inFolder = (folder, ...names) => names.map((name) => `test/${folder}/${name}`);

/**
 * Who runs what, where root starts the tests. Most users are ordinary. What is in neither list shows the same for both, or
 * changes to an ordinary user by itself: root runs it.
 */
export const AS_BOTH = [
  'test/enforcement/',
  'test/conformance/',
  'test/application/',
  ...inFolder('changes', 'attacks', 'full-disk', 'previews', 'races'),
  ...inFolder(
    'left-behind',
    'file-kinds',
    'git-detours',
    'git-repositories',
    'granted-beside',
    'nested-repositories',
    'repository-around',
  ),
  ...inFolder('hosts', 'container-profiles', 'nested', 'process-settings', 'refused-calls'),
  ...inFolder(
    'library',
    'captured-output',
    'denials',
    'iterated-output',
    'jobs',
    'lifetime',
    'output',
    'run',
  ),
  ...inFolder('library', 'session', 'spilled-output', 'terminal'),
  'test/cli/services',
  'test/fleet/security',
  ...inFolder('unit/gate/state', 'database.'),
];

/** What an ordinary user alone runs, as user and rights make no difference to it. */
export const AS_USER = [
  ...inFolder(
    'changes',
    'between',
    'cli',
    'crashes',
    'damaged',
    'diff',
    'doors',
    'git-repository',
    'in-containers',
    'in-use',
  ),
  ...inFolder('cli', 'audit.'),
  ...inFolder('changes', 'only-reads', 'page', 'queue', 'real-programs', 'settings', 'terminal', 'told'),
  ...inFolder(
    'left-behind',
    'agents-and-editors',
    'between-processes',
    'cli',
    'git-settings',
    'honest-work',
    'hook-installers',
  ),
  ...inFolder('left-behind', 'shells-and-tools', 'while-others-look'),
  'test/hosts/odd-paths',
];

/** All test files, as paths from the root of the checkout. */
export const testFiles = () =>
  readdirSync(join(root, 'test'), { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.test.ts'))
    .map((name) => join('test', name))
    .sort();

export const isOneOf = (file, beginnings) => beginnings.some((beginning) => file.startsWith(beginning));

/** The project that a file belongs to; undefined for a file of no project. */
export function homeOf(file) {
  const path = file.startsWith('/') ? relative(root, file) : file;
  let best = { name: undefined, length: 0 };
  for (const [name, { tests }] of Object.entries(PROJECTS)) {
    for (const beginning of tests)
      if (path.startsWith(beginning) && beginning.length > best.length)
        best = { name, length: beginning.length };
  }
  return best.name;
}

const isQuick = (file) => ['quick', 'judge'].includes(homeOf(file)) || isOneOf(file, QUICK);

/** The files of a project. `quick` asked for by name has all that `npm test` runs, wherever it is at home. */
export const filesOf = (name, isAskedFor) =>
  testFiles().filter((file) => (name === 'quick' && isAskedFor ? isQuick(file) : homeOf(file) === name));
