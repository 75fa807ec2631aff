// Boots a kernel in QEMU with nothing but cgroup v2 and tries the limits of process trees there: as root, as an ordinary
// user with a delegated group, and as one without.
//   node scripts/vm-limits.mjs --kernel VMLINUZ        (a kernel of Debian's *-cloud-amd64 packages; needs qemu, cpio, gcc)
//   node scripts/vm-limits.mjs --kernel 6.12           (one that is looked up, cf. scripts/kernel-matrix)
// The checkout has to be built. Exit status 0: every case ended as it says.
import { existsSync } from 'node:fs';
import { parseArgs } from 'node:util';
import { kernelOf } from './vm/debian-kernels.mjs';
import { boot, newPlace } from './vm/machine.mjs';
import { addCompiled, addPrograms, addScripts, makeRoot, packRoot } from './vm/root.mjs';

const { values } = parseArgs({ options: { kernel: { type: 'string' } } });
if (values.kernel === undefined) {
  console.error('vm-limits: --kernel VMLINUZ is missing');
  process.exit(2);
}
const PROGRAMS = [
  'bash',
  'node',
  'mount',
  'mkdir',
  'chown',
  'cat',
  'sleep',
  'head',
  'setpriv',
  'ls',
  'ln',
  'chroot',
];
const MINUTES = 6;
const kernel = existsSync(values.kernel)
  ? values.kernel
  : (await kernelOf(values.kernel, (what) => console.error(`vm-limits: fetching ${what}`))).image;

const root = makeRoot(newPlace());
addPrograms(root, PROGRAMS);
const program = (body) =>
  `#define _GNU_SOURCE\n#include <stdlib.h>\n#include <string.h>\n#include <unistd.h>\nint main(void) { ${body} return 0; }\n`;
addCompiled(root, 'fork-bomb', program('for (;;) if (fork() == 0) setsid();'));
addCompiled(
  root,
  'memory-bomb',
  program('for (;;) { memset(malloc(10000000), 1, 10000000); usleep(1000); }'),
);
addCompiled(
  root,
  'spin',
  program('if (fork() == 0) { setsid(); if (fork() == 0) for (;;); _exit(0); } sleep(60);'),
);
addScripts(root, { init: 'limits-init', mounts: 'mounts', 'cases.mjs': 'limits-cases.mjs' });

const vm = await boot({
  kernel,
  initrd: packRoot(root),
  megabytes: 1536,
  seconds: MINUTES * 60,
  append: 'cgroup_no_v1=all',
});
const lines = vm.lines.filter((line) => /^(ok|FAIL|note|vm) /.test(line));
console.log(lines.join('\n'));
const failed = lines.filter((line) => line.startsWith('FAIL'));
if (!vm.ended || vm.ill.length > 0 || !lines.includes('vm done')) {
  console.error(`vm-limits: it did not come to the end\n${vm.lines.slice(-40).join('\n')}`);
  process.exitCode = 1;
} else if (failed.length > 0) {
  process.exitCode = 1;
}
