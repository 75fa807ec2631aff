// Builds Dockerfile.test and runs the whole suite in containers. See --help.
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { chooseBase } from './docker/base.mjs';
import { useDaemon } from './docker/daemon.mjs';
import { runMatrix } from './docker/matrix.mjs';
import { modesNamed, privilegedFlags } from './docker/modes.mjs';
import { controlsTable, figuresTable } from './docker/table.mjs';

const HELP = `usage: scripts/docker-test [options]

Builds Dockerfile.test and runs the whole suite in three containers:
  default          Docker as it comes, an ordinary user
  no-capabilities  --cap-drop ALL --security-opt no-new-privileges, an ordinary user
  privileged       --privileged or its equivalent, root and then nobody; the kernel matrix runs there
Prints which controls held in each, and how many tests there were.

  --only MODE,...    these modes; 'matrix': the kernel matrix
  --tests PATH       these tests only, without the kernel matrix (may be given several times)
  --base IMAGE       start from this image; 'debootstrap': from a Debian made here; 'auto' (default): node:22-bookworm,
                     or debootstrap where no registry is in reach
  --mirror URL,SUITE for debootstrap; by default the archive that apt of this host uses
  --matrix           fail if the kernel matrix cannot run;  --no-matrix: leave it out
  --keep             keep the images for the next run
  --json FILE        write everything that was found
  --help

Examples:
  scripts/docker-test
  scripts/docker-test --base node:24-trixie --only default,no-capabilities
  scripts/docker-test --keep --only default --tests test/enforcement
  SANDBOX_RUN_KERNELS=5.10,6.12 scripts/docker-test --only matrix
  scripts/docker-test --matrix --json results.json

A Docker daemon that runs is used; where none does, root gets one of its own for the time of the run. Landlock has to be
there as the kernel has it (found out in an unconfined container, or SANDBOX_RUN_EXPECT_ABI), namespaces in
'privileged' and nowhere else: a test that needs one of them fails, and is not skipped, where it is missing.

Exit status: 0 if everything passed, 1 if not, 2 for wrong options, 130 if interrupted.
`;
const IMAGE = 'sandbox-run-test';
const RESULTS = '/tmp/sandbox-run-results.json';
const MOST_PROCESSES = 4096;
const PASSED_ON = ['http_proxy', 'https_proxy', 'no_proxy', 'HTTP_PROXY', 'HTTPS_PROXY', 'NO_PROXY'];

const options = readOptions();
const root = fileURLToPath(new URL('..', import.meta.url));
const interrupted = new AbortController();
for (const name of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.on(name, () => interrupted.abort());

try {
  process.exitCode = (await main()) ? 0 : 1;
} catch (error) {
  console.error(`docker-test: ${interrupted.signal.aborted ? 'interrupted' : (error.message ?? error)}`);
  process.exitCode = interrupted.signal.aborted ? 130 : 1;
}

async function main() {
  const daemon = await useDaemon({ keep: options.keep, signal: interrupted.signal });
  const undo = [() => daemon.stop()];
  try {
    return await testWith(daemon, undo);
  } finally {
    for (const step of undo.reverse()) await step();
  }
}

async function testWith({ docker, own }, undo) {
  const base = await chooseBase(docker, options.base, options.mirror, interrupted.signal);
  const remove = (image) => () => docker(['rmi', '--force', image], { fails: true, signal: undefined });
  if (base.made && !options.keep) undo.push(remove(base.image));
  console.log(`docker-test: building from ${base.how}`);
  if (!options.keep) undo.push(remove(IMAGE));
  await docker(
    [
      ...['build', '--network', 'host', '--file', 'Dockerfile.test', '--tag', IMAGE],
      ...['--build-arg', `BASE_IMAGE=${base.image}`],
      ...PASSED_ON.filter((name) => process.env[name]).flatMap((name) => ['--build-arg', name]),
      root,
    ],
    { cwd: root },
  );
  const expectedAbi =
    process.env.SANDBOX_RUN_EXPECT_ABI ?? (options.modes.length > 0 ? await abiOfKernel(docker) : 0);
  const results = [];
  for (const mode of options.modes) {
    const flags = await mode.flags(docker, IMAGE);
    console.log(`\n=== ${mode.name}: ${mode.what}\n    docker run ${flags.join(' ')}`);
    const network = own ? ['--network', 'none'] : [];
    const declared = [
      `SANDBOX_RUN_EXPECT_ABI=${expectedAbi}`,
      `SANDBOX_RUN_EXPECT_NAMESPACES=${mode.namespaces ? 1 : 0}`,
      `SANDBOX_RUN_EXPECT_BACKENDS=${backendsOf(mode, Number(expectedAbi)).join(',')}`,
    ].flatMap((setting) => ['--env', setting]);
    const found = await suiteIn(docker, [...network, ...declared, ...flags]);
    results.push({ mode: mode.name, flags, ...found });
  }
  const matrix = await runMatrix(docker, { image: IMAGE, root, ...options });
  return report({ base: base.how, expectedAbi: Number(expectedAbi), results, matrix });
}

/** What has to be usable in a mode. Whether Firejail can be used depends on the user, too. */
function backendsOf({ namespaces }, abi) {
  return [
    ...(abi > 0 ? ['landlock'] : []),
    ...(namespaces ? ['namespaces', 'firejail?'] : []),
    'application',
  ];
}

/** Runs the suite in a container and brings back what it found. */
async function suiteIn(docker, flags) {
  const command = ['node', 'scripts/docker/inside.mjs', '--results', RESULTS, ...options.tests];
  // --init: somebody has to reap what the tests orphan. The limit: a bomb that gets away must not take the machine.
  const created = await docker([
    'create',
    '--init',
    '--pids-limit',
    `${MOST_PROCESSES}`,
    '--env',
    'CI=1',
    ...flags,
    IMAGE,
    ...command,
  ]);
  const container = created.stdout.trim();
  const place = mkdtempSync(join(tmpdir(), 'sandbox-run-results-'));
  try {
    const { status } = await docker(['start', '--attach', container], { show: true, fails: true });
    await docker(['cp', `${container}:${RESULTS}`, join(place, 'results.json')]);
    return { status, ...JSON.parse(readFileSync(join(place, 'results.json'), 'utf8')) };
  } finally {
    rmSync(place, { recursive: true, force: true });
    await docker(['rm', '--force', '--volumes', container], { fails: true, signal: undefined });
  }
}

/** What the kernel offers if Docker takes nothing away. */
async function abiOfKernel(docker) {
  const unconfined = await privilegedFlags(docker, IMAGE);
  const asked = await docker([
    ...['run', '--rm', '--network', 'none', '--user', 'root', ...unconfined],
    ...[IMAGE, 'node', 'dist/cli.cjs', 'doctor', '--json'],
  ]);
  const { abi } = JSON.parse(asked.stdout).landlock;
  console.log(`docker-test: the kernel has Landlock ABI ${abi} (asked with ${unconfined.join(' ')})`);
  return abi;
}

function report(found) {
  const { results, matrix } = found;
  if (results.length > 0) {
    console.log(`\nWhich controls held\n\n${controlsTable(results)}`);
    console.log(`\nTests\n\n${figuresTable(results)}`);
  }
  console.log(`\nKernel matrix: ${matrix.said}`);
  for (const { mode, suites } of results) {
    for (const { name, failures } of suites) {
      for (const failure of failures) console.log(`FAIL ${mode}, ${name}: ${failure}`);
    }
  }
  if (options.json !== undefined) writeFileSync(options.json, `${JSON.stringify(found, null, 2)}\n`);
  const escaped = results.filter(({ doctor, attack }) => !doctor.ok || attack?.ok === false);
  for (const { mode, doctor } of escaped)
    console.log(`FAIL ${mode}: doctor: ${doctor.problem ?? 'an attack got through'}`);
  return results.every(({ status }) => status === 0) && escaped.length === 0 && matrix.ok;
}

function readOptions() {
  try {
    const { values } = parseArgs({
      options: {
        only: { type: 'string' },
        tests: { type: 'string', multiple: true, default: [] },
        base: { type: 'string', default: 'auto' },
        mirror: { type: 'string' },
        matrix: { type: 'boolean' },
        keep: { type: 'boolean', default: false },
        json: { type: 'string' },
        help: { type: 'boolean' },
      },
      allowNegative: true,
    });
    if (values.help) {
      console.log(HELP);
      process.exit(0);
    }
    const named = values.only?.split(',');
    const matrix = named?.includes('matrix') ? true : values.matrix;
    return { ...values, matrix, modes: modesNamed(named?.filter((name) => name !== 'matrix')) };
  } catch (error) {
    console.error(`docker-test: ${error.message}; see --help`);
    process.exit(2);
  }
}
