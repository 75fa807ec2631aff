// Tries the README's first commands on fresh machines: cf. USAGE.
import { spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { aptSources, sourcesFor } from './debian-root.mjs';
import { removeTree } from './docker/remove-tree.mjs';
import { makeMachine, USERS } from './fresh/machine.mjs';
import { readSteps } from './fresh/readme.mjs';
import { TEST, tryAs } from './fresh/trial.mjs';
import { run, StepError } from './step.mjs';

const USAGE = `usage: scripts/fresh-machine [--suites LIST] [--mirror URL,SUITE] [--tests] [--keep]

Makes a minimal Debian by debootstrap, installs what the README names, and in a fresh clone of what is committed here
runs the README's two commands, as an ordinary user and as root. They are read from the README. The addon has to be built
once, without a warning, the second command to run in a sandbox, and the clone to stay clean.

  --suites LIST   Debian's releases, with commas between them (default: trixie,bookworm)
  --mirror URL,SUITE  an archive and a release of it; by default the archive that apt of this host uses
  --tests         run npm test there, too
  --steps         print what the README says, as JSON, and do nothing
  --keep          keep the roots, and say where
  --help          this

examples:
  scripts/fresh-machine
  scripts/fresh-machine --suites trixie --keep

Needs root, debootstrap, git, Debian's archive and the npm registry of this host. Where a release has a Node that is too
old, the Node of this host is copied.

exit status: 0 everything worked; 1 not so; 2 wrong usage; 3 no root could be made: a program or a right is missing, or
the archive or the registry is not reached; 130 interrupted
`;

/** No root can be made here, which is nothing that the README could mend. */
class NoMachine extends Error {}

const say = (text) => console.error(`fresh-machine: ${text}`);
const options = readOptions();
const checkout = fileURLToPath(new URL('..', import.meta.url));
const interrupted = new AbortController();
for (const name of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.on(name, () => interrupted.abort());
const { signal } = interrupted;

try {
  process.exitCode = await main();
} catch (error) {
  say(signal.aborted ? 'interrupted' : error.message);
  process.exitCode = signal.aborted ? 130 : error instanceof NoMachine ? 3 : 1;
}

async function main() {
  const steps = readSteps(readFileSync(join(checkout, 'README.md'), 'utf8'));
  if (options.steps) {
    console.log(JSON.stringify(steps, undefined, 2));
    return 0;
  }
  checkHost();
  const place = mkdtempSync(join(tmpdir(), 'sandbox-run-fresh-'));
  try {
    const clone = await makeClone(place);
    const rows = [];
    for (const suite of options.suites.split(','))
      rows.push(...(await trySuite(suite, { place, clone, steps })));
    console.table(Object.fromEntries(rows.map(({ name, ...row }) => [name, row])));
    return rows.every(({ result }) => result === 'works') ? 0 : 1;
  } finally {
    if (options.keep) say(`everything is kept in ${place}`);
    else removeTree(place);
  }
}

async function trySuite(suite, { place, clone, steps }) {
  const root = join(place, suite);
  mkdirSync(root);
  say(`${suite}: making it`);
  const machine = await machineOr3(async () => {
    const made = await makeMachine(root, sourcesFor(suite, await aptSources(options.mirror)), steps, signal);
    await made.inside('npm view commander version');
    return made;
  });
  const rows = [];
  for (const user of USERS) {
    say(`${suite}, ${user.name}, Node ${machine.node}: ${steps.commands.join(' && ')}`);
    const { problems, said, closing, seconds } = await tryAs(user, {
      root,
      ...machine,
      clone,
      commands: steps.commands,
      tests: options.tests,
    });
    if (closing !== undefined) console.log(closing);
    for (const problem of problems) console.log(`${suite}, ${user.name}: ${problem}`);
    if (problems.length > 0) console.log(said);
    rows.push({
      name: `${suite}, ${user.name}`,
      node: machine.node,
      ...Object.fromEntries(
        [...steps.commands, ...(options.tests ? [TEST] : [])].map((command, at) => [
          command,
          `${seconds[at].toFixed(1)} s`,
        ]),
      ),
      result: problems.length === 0 ? 'works' : `${problems.length} problems`,
    });
  }
  if (!options.keep) removeTree(root);
  return rows;
}

/** Of what is committed, whoever owns the checkout. */
async function makeClone(place) {
  const settings = join(place, 'gitconfig');
  writeFileSync(settings, '[safe]\n\tdirectory = *\n');
  const git = (...args) => run('git', args, { env: { GIT_CONFIG_GLOBAL: settings }, signal });
  const changed = (await git('-C', checkout, 'status', '--porcelain')).stdout.trim();
  if (changed !== '') say(`what is not committed is not tried: ${changed.split('\n').length} files`);
  const clone = join(place, 'clone');
  await git('clone', '--quiet', '--no-hardlinks', checkout, clone);
  return clone;
}

function checkHost() {
  if (process.getuid() !== 0) throw new NoMachine('debootstrap needs root');
  for (const name of ['debootstrap', 'git', 'unshare', 'setpriv', 'pivot_root', 'apt-get', 'npm']) {
    if (spawnSync('sh', ['-c', 'command -v "$1"', '-', name]).status !== 0)
      throw new NoMachine(`${name} is missing; on Debian: apt-get install debootstrap git util-linux npm`);
  }
}

async function machineOr3(make) {
  try {
    return await make();
  } catch (error) {
    throw error instanceof StepError ? new NoMachine(error.message) : error;
  }
}

function readOptions() {
  try {
    const { values } = parseArgs({
      options: {
        suites: { type: 'string' },
        mirror: { type: 'string' },
        tests: { type: 'boolean', default: false },
        steps: { type: 'boolean', default: false },
        keep: { type: 'boolean', default: false },
        help: { type: 'boolean', default: false },
      },
    });
    if (values.help) {
      process.stdout.write(USAGE);
      process.exit(0);
    }
    const suites = values.suites ?? 'trixie,bookworm';
    const wrong = suites.split(',').find((suite) => !/^[a-z][a-z0-9-]*$/.test(suite));
    if (wrong !== undefined) throw new Error(`--suites: ${wrong || 'nothing'} is no release`);
    return { ...values, suites };
  } catch (error) {
    say(`${error.message}\n\n${USAGE}`);
    process.exit(2);
  }
}
