// What is in the virtual machines of the kernel matrix beside the tests: what they and their attacks start.
import { spawnSync } from 'node:child_process';
import { chmodSync, cpSync, existsSync, mkdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import {
  addCompiled,
  addLibrariesOf,
  addLoopback,
  addPrograms,
  addScripts,
  addTree,
  makeRoot,
} from './root.mjs';

const PROGRAMS = `
  awk basename bash cat chmod chown chroot chrt cp curl cut date dd dirname echo env expr false find flock git grep head
  hostname id install ionice kill ln ls mkdir mkfifo mknod mktemp mount mv nice node nohup nsenter od openssl passwd perl printenv
  printf prlimit ps pwd python3 readlink realpath renice rg rm rmdir script sed seq setpriv setsid sh sha256sum sleep sort
  stat su sync tail tar taskset tee test timeout touch tr true truncate tty umount uname uniq unshare wc which
  whoami xargs yes
`;
/** Parts of Python's library that nothing here uses. */
const UNWANTED = [
  'test',
  'tests',
  'idlelib',
  'lib2to3',
  'tkinter',
  'ensurepip',
  'pydoc_data',
  'dist-packages',
];

/** `load-module FILE`. */
const LOAD_MODULE = `#include <fcntl.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>
int main(int argc, char **argv) {
  if (syscall(SYS_finit_module, open(argv[1], O_RDONLY | O_CLOEXEC), "", 0) == 0) return 0;
  perror(argv[1]);
  return 1;
}`;

const ETC = {
  shadow: 'root:*:19000:0:99999:7:::\nuser:*:19000:0:99999:7:::\n',
  hosts: '127.0.0.1 localhost\n::1 localhost\n',
  'resolv.conf': 'nameserver 127.0.0.1\n',
  // openssl refuses to make a certificate without a file of settings.
  'ssl/openssl.cnf': '[req]\ndistinguished_name = subject\n[subject]\n',
  'nsswitch.conf': 'passwd: files\ngroup: files\nhosts: files dns\n',
};

/** Everything but the tests, in a directory beneath `place`, for all of these kernels (cf. debian-kernels.mjs). */
export function matrixRoot(place, kernels) {
  const root = makeRoot(place);
  addPrograms(root, PROGRAMS.trim().split(/\s+/));
  for (const name of ['su', 'passwd']) chmodSync(join(root, 'usr/bin', name), 0o4755);
  addPython(root);
  addPerl(root);
  addGit(root);
  addLoopback(root);
  addCompiled(root, 'load-module', LOAD_MODULE);
  for (const { modules } of kernels) cpSync(modules, join(root, 'modules'), { recursive: true });
  for (const directory of ['etc/ssl', 'usr/lib/ssl']) mkdirSync(join(root, directory), { recursive: true });
  symlinkSync('/etc/ssl/openssl.cnf', join(root, 'usr/lib/ssl/openssl.cnf'));
  for (const [name, text] of Object.entries(ETC)) writeFileSync(join(root, 'etc', name), text);
  chmodSync(join(root, 'etc/shadow'), 0o600);
  if (existsSync('/etc/ld.so.cache')) cpSync('/etc/ld.so.cache', join(root, 'etc/ld.so.cache'));
  symlinkSync('/run', join(root, 'var/run'));
  addScripts(root, {
    init: 'matrix-init',
    mounts: 'mounts',
    'usr/bin/some-files': 'some-files',
    'probe.mjs': 'probe.mjs',
    'usr/bin/gcc': 'tests/gcc',
  });
  return root;
}

/** What git does in programs beside its own. */
function addGit(root) {
  if (existsSync('/usr/share/git-core/templates')) addTree(root, '/usr/share/git-core/templates');
  const from = spawnSync('/usr/bin/git', ['--exec-path'], { encoding: 'utf8' }).stdout.trim();
  mkdirSync(join(root, from), { recursive: true });
  const over = ['git-remote-http', 'git-remote-https'];
  for (const name of ['git-submodule', 'git-sh-setup', 'git-sh-i18n', 'git-sh-i18n--envsubst', ...over]) {
    if (!existsSync(join(from, name))) continue;
    cpSync(join(from, name), join(root, from, name), { dereference: true });
  }
  addLibrariesOf(root, ...over.map((name) => join(from, name)));
  // A remote repository, be it a directory, is asked through a shell, which has to find this by its name.
  symlinkSync('/usr/bin/git', join(root, from, 'git-upload-pack'));
}

/** With the part of its library that lies where its POSIX module does: on Debian that is all that perl-base has. */
function addPerl(root) {
  const script = 'use POSIX; print $INC{"POSIX.pm"}';
  const module = spawnSync('/usr/bin/perl', ['-e', script], { encoding: 'utf8' }).stdout;
  if (module === '') throw new Error('perl does not say where its library is');
  addTree(root, dirname(module));
}

function addPython(root) {
  const script = 'import sysconfig as s; print(s.get_path("stdlib"))';
  const library = spawnSync('/usr/bin/python3', ['-c', script], { encoding: 'utf8' }).stdout.trim();
  if (library === '') throw new Error('python3 does not say where its library is');
  addTree(root, library, UNWANTED);
  const listed = spawnSync('bash', ['-c', 'ls "$1"/lib-dynload/*.so', '-', library], { encoding: 'utf8' });
  addLibrariesOf(root, ...listed.stdout.trim().split('\n'));
}
