// The root directory of a virtual machine, put together from programs of this machine, and its initramfs.
import { spawnSync } from 'node:child_process';
import { chmodSync, cpSync, existsSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { NATIVE_ARTIFACTS, SQLITE } from '../native-artifacts.mjs';

export const PROJECT = fileURLToPath(new URL('../..', import.meta.url));

const DIRECTORIES = [
  'proc',
  'sys',
  'dev',
  'tmp',
  'etc',
  'root',
  'run',
  'home',
  'var/tmp',
  'usr/bin',
  'usr/sbin',
];

const LOOPBACK = `#include <net/if.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
int main(void) {
  struct ifreq lo = {.ifr_flags = IFF_UP | IFF_RUNNING};
  strcpy(lo.ifr_name, "lo");
  return ioctl(socket(AF_INET, SOCK_DGRAM, 0), SIOCSIFFLAGS, &lo) != 0;
}`;

/** A root with the usual directories and two users. */
export function emptyRoot(place) {
  const root = join(place, 'root');
  for (const name of DIRECTORIES) mkdirSync(join(root, name), { recursive: true });
  for (const name of ['bin', 'sbin', 'lib', 'lib64']) {
    mkdirSync(join(root, 'usr', name), { recursive: true });
    symlinkSync(`usr/${name}`, join(root, name));
  }
  writeFileSync(
    join(root, 'etc/passwd'),
    'root:x:0:0::/root:/bin/bash\nuser:x:1000:1000::/home/user:/bin/bash\n',
  );
  writeFileSync(join(root, 'etc/group'), 'root:x:0:\nuser:x:1000:\n');
  return root;
}

/** The same with the project as it is built, in `/app`. */
export function makeRoot(place) {
  const root = emptyRoot(place);
  const app = join(root, 'app');
  const native = [...NATIVE_ARTIFACTS, SQLITE].map(({ file }) => `build/Release/${file}`);
  for (const name of ['dist', 'package.json', ...native]) {
    if (!existsSync(join(PROJECT, name))) throw new Error(`${name} is missing: the checkout is not built`);
    cpSync(join(PROJECT, name), join(app, name), { recursive: true });
  }
  return root;
}

/** The distribution's programs come first: one in somebody's home may be a script that starts another. */
const SYSTEM_PATH = '/usr/bin:/usr/sbin:/bin:/sbin';

/** Programs of this machine by their names, each with the libraries that it is linked with. */
export function addPrograms(root, names) {
  for (const name of names) {
    const found = spawnSync('bash', ['-c', 'readlink -f "$(type -P "$1")"', '-', name], {
      env: { PATH: `${SYSTEM_PATH}:${process.env.PATH}` },
      encoding: 'utf8',
    });
    const path = found.stdout.trim();
    if (path === '') throw new Error(`${name}: there is no such program here`);
    const target = join(root, 'usr/bin', name);
    cpSync(path, target, { dereference: true });
    chmodSync(target, 0o755);
    addLibrariesOf(root, path);
  }
}

export function addLibrariesOf(root, ...paths) {
  const linked = spawnSync('ldd', paths, { encoding: 'utf8' }).stdout.matchAll(/(\/\S+) \(0x/g);
  for (const [, library] of linked) {
    const target = join(root, 'usr', library.replace(/^\/usr/, ''));
    if (existsSync(target)) continue;
    mkdirSync(dirname(target), { recursive: true });
    cpSync(library, target, { dereference: true });
  }
}

/** A directory of this machine, at the same place; `unwanted` are names that are left out. */
export function addTree(root, path, unwanted = []) {
  const left = new Set(unwanted);
  cpSync(path, join(root, path), {
    recursive: true,
    verbatimSymlinks: true,
    // Else Python takes none of what it has compiled there, and compiles with every start.
    preserveTimestamps: true,
    filter: (source) => !left.has(basename(source)),
  });
}

/** A program in C, linked statically. */
export function addCompiled(root, name, source, compiler = 'gcc') {
  const target = join(root, 'usr/bin', name);
  const built = spawnSync(compiler, ['-O0', '-w', '-static', '-x', 'c', '-', '-o', target], {
    input: source,
    encoding: 'utf8',
  });
  if (built.status !== 0) throw new Error(`${compiler}: ${built.stderr ?? built.error?.message}`);
}

/** What brings the loopback interface up. */
export function addLoopback(root, compiler) {
  addCompiled(root, 'loopback', LOOPBACK, compiler);
}

/** Programs of this project for the machine, the first process among them. */
export function addScripts(root, scripts) {
  for (const [target, source] of Object.entries(scripts)) {
    writeFileSync(join(root, target), readFileSync(join(PROJECT, 'scripts/vm', source)));
    chmodSync(join(root, target), 0o755);
  }
}

/** Everything belongs to root, and everybody may read it. Returns the file's path. */
export function packRoot(root) {
  const initrd = `${root}.cpio`;
  const script = 'chmod -R go+rX "$1"; cd "$1"; find . | cpio -o -H newc --quiet -R 0:0 > "$2"';
  const packed = spawnSync('bash', ['-ec', script, '-', root, initrd], { encoding: 'utf8' });
  if (packed.status !== 0) throw new Error(`cpio: ${packed.stderr ?? packed.error?.message}`);
  return initrd;
}
