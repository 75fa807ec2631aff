// THE table of the test projects: which files each has, which rooms of src/ and native/ it tests, and who runs it.
import { readdirSync } from 'node:fs';
import { join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('..', import.meta.url));

/**
 * `tests`: beginnings of paths. Each file has one home: the project with the longest beginning that fits.
 * `rooms`: folders of src/, or of native/ where that is said; `docs`: what users read and copy, that is docs/, examples/, man/ and the
 * Markdown files of the root. `npm run test:changed` chooses by them.
 */
export const PROJECTS = {
  quick: {
    tests: ['test/unit/', 'test/layering.test.ts'],
    rooms: [
      'util',
      'errors',
      'model',
      'kernel',
      'plan',
      'host',
      'state',
      'audit',
      'run',
      'serve',
      'integrations',
      'docs',
    ],
  },
  confine: {
    tests: ['test/enforcement/', 'test/conformance/', 'test/application/', 'test/backends/'],
    rooms: ['native', 'kernel', 'plan', 'backends', 'attack', 'host', 'native/*'],
  },
  workspace: { tests: ['test/left-behind/', 'test/real-work/'], rooms: ['left-behind', 'host', 'policy'] },
  changes: { tests: ['test/changes/'], rooms: ['changes', 'native/process'] },
  doors: {
    tests: ['test/cli/', 'test/library/', 'test/integration/', 'test/clients/', 'test/packaging/'],
    rooms: ['run', 'serve', 'integrations', 'cli', 'approvals', 'audit', 'state', 'native/client', 'docs'],
  },
  judge: {
    tests: ['approvals', 'checks', 'decide', 'hooks', 'policy', 'programs', 'review', 'shell'].map(
      (room) => `test/unit/${room}/`,
    ),
    rooms: ['approvals', 'checks', 'decide', 'hooks', 'policy', 'programs', 'review', 'shell'],
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
    tests: ['test/fleet/', 'test/unit/fleet/', 'test/unit/nats/', 'test/unit/state/fleet', 'test/cli/fleet'],
    rooms: ['fleet', 'nats', 'docs'],
  },
  hosts: { tests: ['test/hosts/'], rooms: ['host', 'native', 'native/*'] },
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
  'test/fleet/security',
];

/** What an ordinary user alone runs, as user and rights make no difference to it. */
export const AS_USER = [
  ...inFolder(
    'changes',
    'between',
    'cli',
    'damaged',
    'diff',
    'doors',
    'git-repository',
    'in-containers',
    'in-use',
  ),
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
