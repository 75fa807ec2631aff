// Runs the enforcement and the conformance suite on Debian's kernels, in virtual machines without KVM: cf. USAGE.
import { spawnSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { packagedArm64Root } from './vm/arm64-root.mjs';
import { addTests } from './vm/bundle-tests.mjs';
import { expectedAbi, kernelOf, SERIES } from './vm/debian-kernels.mjs';
import { boot, newPlace } from './vm/machine.mjs';
import { matrixRoot } from './vm/matrix-root.mjs';
import { Console } from './vm/outcomes.mjs';
import { packRoot } from './vm/root.mjs';
import { problemsOf, tableOf, USERS } from './vm/verdict.mjs';

const ARM64 = 'arm64';
const NAMES = [...Object.keys(SERIES).sort((a, b) => a.localeCompare(b, 'en', { numeric: true })), ARM64];
const USAGE = `usage: scripts/kernel-matrix [--kernels LIST] [--only LIST] [--jobs N] [--json FILE] [--keep]

Boots Debian's kernels in QEMU (no KVM), runs the enforcement and the conformance suite in each, as root and as an
ordinary user (a machine for either), and prints one table. The checkout has to be built; needs qemu-system-x86, cpio,
gcc and apt. With arm64, the packages for it are made, npm installs them with Node for arm64, and a command and
doctor --attack run there; needs qemu-system-arm and g++-12-aarch64-linux-gnu.

  --kernels LIST  the series, or arm64, with commas between them (default: ${NAMES.join(',')})
  --only LIST     only the test files with one of these texts in their names
  --jobs N        so many machines at a time (default: 2)
  --minutes N     of the processor for a machine, after which it has failed (default: 30; by the clock four times that)
  --json FILE     every test of every kernel, with what became of it
  --keep          keep the root, the initramfs and the consoles, and say where
  --help          this

examples:
  scripts/kernel-matrix
  scripts/kernel-matrix --kernels 5.10,7.2 --json matrix.json
  scripts/kernel-matrix --kernels 6.1 --only signal --keep

exit status: 0 nothing escaped, nothing failed, every suite ran, every ABI is as expected; 1 not so; 2 wrong usage;
3 no machine could be made: a program is missing, or the archive with the kernels is not reached`;

const terminal = process.stderr.isTTY && process.env.TERM !== 'dumb' ? process.stderr : undefined;
const wipe = terminal === undefined ? '' : '\r\u001b[K';
const say = (text) => console.error(`${wipe}kernel-matrix: ${text}`);
/** On a terminal, a line that is written over; else one of its own. */
const sayForNow = (text) =>
  terminal === undefined
    ? say(text)
    : terminal.write(`${wipe}kernel-matrix: ${text}`.slice(0, terminal.columns));
const { series, values } = readArguments();
const started = Date.now();

const place = newPlace({ keep: values.keep });
if (values.keep) say(`everything is kept in ${place}`);
let booted = false;
try {
  checkPrograms();
  const kernels = [
    ...(await x64Kernels(series.filter((each) => each !== ARM64))),
    ...(series.includes(ARM64) ? [arm64Kernel()] : []),
  ];

  booted = true;
  // The newest have most to try: with them last, a processor would have nothing to do in the end.
  const waiting = kernels.toReversed().flatMap((kernel) => USERS.map((who) => ({ kernel, who })));
  const machines = [];
  const worker = async () => {
    for (let next = waiting.shift(); next !== undefined; next = waiting.shift())
      machines.push(await runMachine(next));
  };
  await Promise.all(Array.from({ length: Number(values.jobs) }, worker));
  terminal?.write(wipe);
  const results = kernels.map((kernel) => resultOf(kernel, machines));

  for (const { series: name, problems, tails } of results) {
    for (const problem of problems) console.log(`${name}: ${problem}`);
    for (const tail of tails) console.log(`${name}: the end of a console:\n${tail}`);
  }
  console.log(tableOf(results));
  const seconds = Math.round((Date.now() - started) / 1000);
  const files = Math.max(...kernels.map((kernel) => kernel.files.length));
  console.log(`${Math.floor(seconds / 60)} min ${seconds % 60} s, ${files} test files, two users`);
  if (values.json !== undefined)
    writeFileSync(values.json, JSON.stringify({ seconds, results }, undefined, 1));
  process.exit(results.every(({ problems }) => problems.length === 0) ? 0 : 1);
} catch (error) {
  say(error.message);
  process.exit(booted ? 1 : 3);
}

/** Those with all tests, which share one initramfs. */
async function x64Kernels(names) {
  const kernels = [];
  for (const each of names) {
    const kernel = await kernelOf(each, (what) => say(`fetching ${what}`));
    say(`${each}: Linux ${kernel.version}${kernel.note === undefined ? '' : ` (${kernel.note})`}`);
    kernels.push(kernel);
  }
  if (kernels.length === 0) return [];
  say('making the initramfs');
  const root = matrixRoot(place, kernels);
  const files = await addTests(root, values.only.split(','));
  if (files.length === 0) throw new Error(`no test file has ${values.only} in its name`);
  const initrd = packRoot(root);
  return kernels.map((kernel) => ({ ...kernel, architecture: 'x64', machine: 'x86_64', initrd, files }));
}

/** The one that the package for arm64 is tried on, as it is installed. */
function arm64Kernel() {
  say('making the packages and the initramfs for arm64');
  const { root, kernel, version } = packagedArm64Root(join(place, ARM64));
  say(`${ARM64}: Linux ${version}`);
  const made = { series: ARM64, version, image: kernel, initrd: packRoot(root), files: [] };
  return { ...made, architecture: ARM64, machine: 'aarch64' };
}

async function runMachine({ kernel, who }) {
  const { series: name, version, image, initrd, architecture, machine } = kernel;
  const abi = expectedAbi(version);
  const heard = new Console();
  const from = Date.now();
  const secondsSince = () => Math.round((Date.now() - from) / 1000);
  const vm = await boot({
    architecture,
    kernel: image,
    initrd,
    megabytes: 3072,
    seconds: Number(values.minutes) * 60,
    // What the kernel does not know it hands to the first process as its environment.
    append: [
      `mitigations=off init_on_alloc=0 norandmaps SANDBOX_RUN_AS=${who} SANDBOX_RUN_SLOW_HOST=1`,
      `SANDBOX_RUN_EXPECT_MACHINE=${machine} SANDBOX_RUN_EXPECT_ABI=${abi}`,
      `SANDBOX_RUN_EXPECT_NAMESPACES=1 SANDBOX_RUN_OLDER_TIERS=0`,
      `SANDBOX_RUN_EXPECT_BACKEND=${abi > 0 ? 'landlock' : 'namespaces'}`,
      `SANDBOX_RUN_EXPECT_BACKENDS=${abi > 0 ? 'landlock,' : ''}namespaces,application`,
    ].join(' '),
    onLine: (line) => {
      const progress = heard.hear(line);
      if (progress !== undefined) sayForNow(`${name} ${who} ${secondsSince()} s: ${progress}`);
    },
  });
  if (values.keep) writeFileSync(join(place, `console-${name}-${who}`), vm.lines.join('\n'));
  return { series: name, who, vm, heard, seconds: secondsSince() };
}

/** What the machines of one kernel come to. */
function resultOf({ series: name, version, note, machine, files }, machines) {
  const own = machines.filter((machine) => machine.series === name);
  const abi = expectedAbi(version);
  const users = Object.fromEntries(
    own.map(({ who, heard, seconds }) => [who, { ...heard.outcomes, seconds }]),
  );
  const sound = ({ vm, heard }) => vm.ended && heard.done && vm.ill.length === 0;
  const tails = own
    .filter((machine) => !sound(machine))
    .map(({ vm }) => vm.lines.slice(-30).join('\n').slice(-4000));
  return { series: name, version, machine, note, abi, users, problems: problemsOf(abi, own, files), tails };
}

function readArguments() {
  let read;
  try {
    read = parseArgs({
      options: {
        kernels: { type: 'string', default: NAMES.join(',') },
        only: { type: 'string', default: '' },
        jobs: { type: 'string', default: '2' },
        minutes: { type: 'string', default: '30' },
        json: { type: 'string' },
        keep: { type: 'boolean', default: false },
        help: { type: 'boolean', default: false },
      },
    }).values;
  } catch (error) {
    fail(error.message);
  }
  if (read.help) {
    console.log(USAGE);
    process.exit(0);
  }
  const list = [...new Set(read.kernels.split(',').map((name) => name.trim()))];
  const unknown = list.find((name) => !NAMES.includes(name));
  if (unknown !== undefined) fail(`--kernels: ${unknown || 'nothing'} is not one of ${NAMES.join(', ')}`);
  for (const name of ['jobs', 'minutes'])
    if (!/^[1-9]\d*$/.test(read[name])) fail(`--${name}: ${read[name]} is not a number of them`);
  return { series: list, values: read };
}

function fail(message) {
  say(`${message}\n\n${USAGE}`);
  process.exit(2);
}

function checkPrograms() {
  const arm64 = series.includes(ARM64);
  const programs = [
    ...(series.some((each) => each !== ARM64) ? ['qemu-system-x86_64', 'gcc', 'xz'] : []),
    ...(arm64 ? ['qemu-system-aarch64', 'aarch64-linux-gnu-gcc-12'] : []),
  ];
  const packages = `qemu-system-x86 cpio gcc xz-utils${arm64 ? ' qemu-system-arm g++-12-aarch64-linux-gnu' : ''}`;
  for (const name of [...programs, 'cpio', 'dpkg-deb']) {
    if (spawnSync('bash', ['-c', 'type -P "$1"', '-', name]).status !== 0)
      throw new Error(`${name} is missing; on Debian: apt-get install ${packages}`);
  }
}
