// Runs the tests: `npm test`, `npm run test:full`, `npm run test:changed`. See USAGE.
import { spawnSync } from 'node:child_process';
import {
  appendFileSync,
  existsSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { makeUsersCopy } from './test-as-user.mjs';
import { MOST_FLAKY, outcomeOf } from './test-outcome.mjs';
import { AS_BOTH, AS_USER, filesOf, homeOf, isOneOf, PROJECTS, roomOf } from './test-projects.mjs';

const USAGE = `usage: npm test | npm run test:full [-- OPTIONS] | npm run test:changed [-- OPTIONS]

npm test      lint, format, types, C++ tests, and the vitest project 'quick'
test:full     all vitest projects; as root, what depends on who runs it a second time as an ordinary user
test:changed  the projects of the rooms that a change touches, and of the rooms that import those

  --project NAME  only this project (may be given several times): ${Object.keys(PROJECTS).join(' ')}
  --except NAME   not this project (may be given several times)
  --since COMMIT  what test:changed compares with (default: where the branch left main, or HEAD)
  --landing FILE  run a file that fails once more alone. Where it then passes, the run is green and the tests that had
                  failed are noted in FILE; more than two in FILE are a failure. For what decides about landing
  --help          this
`;

const root = fileURLToPath(new URL('..', import.meta.url));
const vitest = (directory) => join(directory, 'node_modules/vitest/vitest.mjs');
const isRoot = process.getuid() === 0;

const options = readOptions();
// The ordinary user of a second run writes there, too.
const scratch = mkdtempSync(join(tmpdir(), 'sandbox-run-test-run-'));
spawnSync('chmod', ['1777', scratch]);
process.on('exit', () => rmSync(scratch, { recursive: true, force: true }));
const lacking = join(scratch, 'lacking');
writeFileSync(lacking, '', { mode: 0o666 });
spawnSync('chmod', ['666', lacking]);

process.exitCode = main();

function main() {
  const begun = Date.now();
  if (!options.full && !options.changed) {
    if (!step('check', 'npm', ['run', '--silent', 'check'])) return 1;
    if (!build()) return 1;
    if (!step('C++ tests', process.execPath, ['scripts/test-native.mjs'])) return 1;
    return report(runAll(['quick']), begun);
  }
  const names = options.changed ? projectsOfChange() : Object.keys(PROJECTS);
  const asked = options.project.length > 0 ? options.project : names;
  const projects = asked.filter((name) => !options.except.includes(name));
  if (projects.length === 0) {
    console.log('nothing that a project tests has changed');
    return 0;
  }
  if (options.changed) console.log(`projects: ${projects.join(' ')}`);
  if (!build()) return 1;
  return report(runAll(projects), begun);
}

function step(name, program, args) {
  const begun = Date.now();
  const { status } = spawnSync(program, args, { cwd: root, stdio: 'inherit' });
  console.log(`${name}: ${status === 0 ? 'passed' : 'failed'}, ${seconds(begun)} s`);
  return status === 0;
}

/** What the last build is older than is built. Directories tell of files that are gone. */
function build() {
  const made = join(root, 'dist/THIRD-PARTY-NOTICES.txt');
  const newest = (path) => {
    const found = statSync(path);
    if (!found.isDirectory()) return found.mtimeMs;
    return Math.max(found.mtimeMs, ...readdirSync(path).map((name) => newest(join(path, name))));
  };
  const inputs = ['src', 'native', 'scripts', 'package-lock.json', 'CMakeLists.txt', 'tsconfig.types.json'];
  if (
    existsSync(made) &&
    Math.max(...inputs.map((name) => newest(join(root, name)))) < statSync(made).mtimeMs
  )
    return true;
  return step('build', 'npm', ['run', '--silent', 'build']);
}

/** Runs projects; as root also as an ordinary user. Returns the outcome of each file, and of a second try of those that failed. */
function runAll(projects) {
  // `quick` alone is what one runs before each push: as the user that one is.
  const isQuick = projects.length === 1 && projects[0] === 'quick';
  if (!isRoot || isQuick) return judged([{ user: isRoot ? 'root' : 'user', ...runVitest(projects, []) }]);
  const files = projects.flatMap((name) => filesOf(name, projects.length === 1));
  const asRoot = files.filter((file) => !isOneOf(file, AS_USER));
  const asUser = files.filter((file) => isOneOf(file, [...AS_BOTH, ...AS_USER]));
  const runs = asRoot.length === 0 ? [] : [{ user: 'root', ...runVitest(projects, asRoot) }];
  if (asUser.length === 0) return judged(runs);
  console.log(`as an ordinary user: ${asUser.length} files`);
  const copy = makeUsersCopy();
  runs.push({ user: 'nobody', ...runVitest(projects, asUser, copy) });
  const outcome = judged(runs, copy);
  copy.remove();
  return outcome;
}

/** Where landing is decided, files that failed are run once more alone; `copy`: where an ordinary user runs them. */
function judged(runs, copy) {
  const failed = runs.flatMap(({ user, files }) =>
    files.filter(({ failures }) => failures.length > 0).map((file) => ({ ...file, user })),
  );
  const flaky = [];
  // Many failures are not bad luck.
  if (options.landing !== undefined && failed.length > 0 && failed.length <= 2 * MOST_FLAKY) {
    for (const { project, file, user, failures } of failed) {
      console.log(`once more alone: ${file} (${user})`);
      const second = runVitest([project], [file], user === 'nobody' ? copy : undefined);
      if (second.status === 0 && second.files.length > 0) flaky.push({ file, user, failures });
    }
    const lines = flaky.flatMap(({ file, failures }) => failures.map((test) => `${file} ${test}\n`));
    appendFileSync(options.landing, lines.join(''));
  }
  return { runs, flaky };
}

/** One run of vitest; `copy`: where an ordinary user runs it. */
function runVitest(projects, files, copy) {
  const summary = join(scratch, `summary-${Date.now()}.json`);
  const place = copy?.directory ?? root;
  const words = [
    ...[vitest(place), 'run', ...projects.map((name) => `--project=${name}`)],
    ...['--reporter=default', `--reporter=${join(place, 'scripts/test-reporter.mjs')}`, ...files],
  ];
  const { status, signal } = spawnSync(process.execPath, words, {
    ...{ cwd: root, stdio: 'inherit', ...copy?.spawn },
    env: {
      ...process.env,
      ...copy?.spawn.env,
      SANDBOX_RUN_TEST_SUMMARY: summary,
      SANDBOX_RUN_TEST_LACKING: lacking,
    },
  });
  // Ended from outside: so is everything that would have come after it.
  if (signal !== null) process.exit(1);
  if (!existsSync(summary)) return { status: status ?? 1, files: [], unhandled: ['vitest wrote no summary'] };
  return { status: status ?? 1, ...JSON.parse(readFileSync(summary, 'utf8')) };
}

/** Prints the closing table and lines; returns the exit status. */
function report({ runs, flaky }, begun) {
  const linesOf = (file) => readFileSync(file, 'utf8').split('\n').filter(Boolean);
  const { landing } = options;
  const { rows, lines, isGreen } = outcomeOf({
    runs,
    flaky,
    noted: landing !== undefined && existsSync(landing) ? linesOf(landing) : [],
    lacking: linesOf(lacking).map((line) => {
      const [program, file] = line.split('\t');
      return [program, relative(root, file)];
    }),
  });
  console.table(rows);
  console.log(`${seconds(begun)} s in all`);
  for (const line of lines) console.log(line);
  return isGreen ? 0 : 1;
}

/** The projects of the rooms that a change touches, of the rooms that import those, and of the tests that it touches. */
function projectsOfChange() {
  const git = (...args) => spawnSync('git', args, { cwd: root, encoding: 'utf8' });
  const base = options.since ?? (git('merge-base', 'HEAD', 'main').stdout.trim() || 'HEAD');
  const listed = git('diff', '--name-only', base);
  if (listed.status !== 0) {
    console.error(`test: ${listed.stderr.trim()}`);
    process.exit(2);
  }
  const fresh = git('ls-files', '--others', '--exclude-standard').stdout;
  const changed = `${listed.stdout}${fresh}`.split('\n').filter(Boolean);
  const rooms = new Set();
  for (const path of changed) {
    const [top, room] = path.split('/');
    if (top === 'src' && path.split('/').length > 2) rooms.add(roomOf(path.slice('src/'.length)));
    if (top === 'native') rooms.add(`native/${room}`);
    if (/^(docs|examples|man)\/|^[A-Z]+\.md$/.test(path)) rooms.add('docs');
  }
  const touched = new Set(rooms);
  for (const [room, imported] of importsOfRooms())
    if ([...imported].some((other) => touched.has(other))) rooms.add(room);
  const touches = (of) =>
    rooms.has(of) || (of === 'native/*' && [...rooms].some((room) => room.startsWith('native/')));
  const chosen = Object.keys(PROJECTS).filter((name) => PROJECTS[name].rooms.some(touches));
  const shared = changed.some((path) =>
    /^(test\/(support|cases|golden)\/|package|vitest|scripts\/|CMake)/.test(path),
  );
  const homes = changed.map((path) => homeOf(path)).filter((name) => name !== undefined);
  const all = shared ? Object.keys(PROJECTS) : [...chosen, ...homes];
  return Object.keys(PROJECTS).filter((name) => all.includes(name));
}

/** By room of src: the rooms that its files import from; by the index of a house, all that the index names. */
function importsOfRooms() {
  const rooms = new Map();
  const importsOf = (path) =>
    [...readFileSync(join(root, 'src', path), 'utf8').matchAll(/'(\.\.?\/[^']+\.ts)'/g)].map(([, other]) =>
      join(path, '..', other),
    );
  for (const path of readdirSync(join(root, 'src'), { recursive: true, encoding: 'utf8' })) {
    if (!path.endsWith('.ts') || !path.includes('/')) continue;
    const room = roomOf(path);
    const imported = rooms.get(room) ?? new Set();
    rooms.set(room, imported);
    for (const other of importsOf(path))
      for (const one of other.endsWith('/index.ts') ? importsOf(other) : [other]) imported.add(roomOf(one));
  }
  return rooms;
}

function seconds(begun) {
  return Math.round((Date.now() - begun) / 1000);
}

function readOptions() {
  try {
    const { values } = parseArgs({
      options: {
        full: { type: 'boolean', default: false },
        changed: { type: 'boolean', default: false },
        project: { type: 'string', multiple: true, default: [] },
        except: { type: 'string', multiple: true, default: [] },
        since: { type: 'string' },
        landing: { type: 'string' },
        help: { type: 'boolean', default: false },
      },
    });
    if (values.help) {
      process.stdout.write(USAGE);
      process.exit(0);
    }
    const wrong = [...values.project, ...values.except].find((name) => !(name in PROJECTS));
    if (wrong !== undefined)
      throw new Error(`there is no project '${wrong}'; there are ${Object.keys(PROJECTS).join(', ')}`);
    return values;
  } catch (error) {
    console.error(`test: ${error.message}`);
    process.exit(2);
  }
}
