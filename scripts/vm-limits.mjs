// Boots a kernel in QEMU with nothing but cgroup v2 and tries the limits of process trees there: as root, as an ordinary
// user with a delegated group, and as one without.
//   node scripts/vm-limits.mjs --kernel VMLINUZ        (a kernel of Debian's *-cloud-amd64 packages; needs qemu, cpio, gcc)
// The checkout has to be built. Exit status 0: every case ended as it says.
import { spawnSync } from 'node:child_process';
import { cpSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';

const { values } = parseArgs({ options: { kernel: { type: 'string' } } });
if (values.kernel === undefined) {
  console.error('vm-limits: --kernel VMLINUZ is missing');
  process.exit(2);
}
const PROGRAMS = ['bash', 'node', 'mount', 'mkdir', 'chown', 'cat', 'sleep', 'head', 'setpriv', 'ls', 'ln'];
const MINUTES = 6;
const project = fileURLToPath(new URL('..', import.meta.url));
const place = mkdtempSync(join(tmpdir(), 'sandbox-run-vm-'));
process.on('exit', () => rmSync(place, { recursive: true, force: true }));

const root = join(place, 'root');
for (const name of [
  'proc',
  'sys',
  'dev',
  'tmp',
  'etc',
  'root',
  'run',
  'usr/bin',
  'usr/sbin',
  'app/build/Release',
])
  mkdirSync(join(root, name), { recursive: true });
writeFileSync(join(root, 'etc/passwd'), 'root:x:0:0::/root:/bin/bash\nuser:x:1000:1000::/tmp:/bin/bash\n');
writeFileSync(join(root, 'etc/group'), 'root:x:0:\nuser:x:1000:\n');
for (const name of PROGRAMS) copyProgram(name);
shell(
  `cd ${root} && for d in bin sbin lib lib64; do [ -e $d ] || { mkdir -p usr/$d; ln -s usr/$d $d; }; done`,
);
cpSync(join(project, 'dist'), join(root, 'app/dist'), { recursive: true });
cpSync(join(project, 'package.json'), join(root, 'app/package.json'));
cpSync(join(project, 'build/Release/sandbox_run.node'), join(root, 'app/build/Release/sandbox_run.node'));
compile('fork-bomb', 'for (;;) if (fork() == 0) setsid();');
compile('memory-bomb', 'for (;;) { memset(malloc(10000000), 1, 10000000); usleep(1000); }');
compile('spin', 'if (fork() == 0) { setsid(); if (fork() == 0) for (;;); _exit(0); } sleep(60);');
for (const name of ['init', 'cases.mjs']) cpSync(join(project, 'scripts/vm', name), join(root, name));
shell(`chmod 755 ${root}/init && chmod -R go+rX ${root}`);
shell(`cd ${root} && find . | cpio -o -H newc --quiet > ${place}/initrd`);

const vm = spawnSync(
  'qemu-system-x86_64',
  [
    ...['-accel', 'tcg,thread=single', '-cpu', 'max', '-m', '1536', '-nographic', '-no-reboot'],
    ...['-kernel', values.kernel, '-initrd', join(place, 'initrd')],
    ...['-append', 'console=ttyS0 quiet panic=-1 oops=panic cgroup_no_v1=all'],
  ],
  { encoding: 'utf8', timeout: MINUTES * 60_000, stdio: ['ignore', 'pipe', 'inherit'] },
);
const lines = vm.stdout.split(/\r?\n/).filter((line) => /^(ok|FAIL|note|vm) /.test(line));
console.log(lines.join('\n'));
const failed = lines.filter((line) => line.startsWith('FAIL'));
if (!lines.some((line) => line === 'vm done')) {
  console.error(`vm-limits: it did not come to the end\n${vm.stdout.slice(-3000)}`);
  process.exitCode = 1;
} else if (failed.length > 0) {
  process.exitCode = 1;
}

function shell(script) {
  const done = spawnSync('bash', ['-ec', script], { stdio: ['ignore', 'inherit', 'inherit'] });
  if (done.status !== 0) throw new Error(`vm-limits: ${script}`);
}

/** The program and the libraries that it is linked with. */
function copyProgram(name) {
  const path = spawnSync('bash', ['-c', `readlink -f "$(type -P ${name})"`], {
    encoding: 'utf8',
  }).stdout.trim();
  cpSync(path, join(root, 'usr/bin', name), { dereference: true });
  const libraries = spawnSync('ldd', [path], { encoding: 'utf8' }).stdout.matchAll(/(\/\S+) \(0x/g);
  for (const [, library] of libraries) {
    const target = join(root, 'usr', library.replace(/^\/usr/, ''));
    mkdirSync(dirname(target), { recursive: true });
    cpSync(library, target, { dereference: true });
  }
}

function compile(name, body) {
  const source = `#define _GNU_SOURCE\n#include <stdlib.h>\n#include <string.h>\n#include <unistd.h>\nint main(void) { ${body} return 0; }\n`;
  const built = spawnSync(
    'gcc',
    ['-O0', '-w', '-static', '-x', 'c', '-', '-o', join(root, 'usr/bin', name)],
    {
      input: source,
      encoding: 'utf8',
    },
  );
  if (built.status !== 0) throw new Error(`vm-limits: gcc: ${built.stderr}`);
}
