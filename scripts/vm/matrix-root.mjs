// What is in the virtual machines of the kernel matrix beside the tests: what they and their attacks start.
import { spawnSync } from 'node:child_process';
import { chmodSync, cpSync, existsSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { addCompiled, addLibrariesOf, addPrograms, addScripts, addTree, makeRoot } from './root.mjs';

const PROGRAMS = [
  ...[
    'bash',
    'sh',
    'node',
    'python3',
    'git',
    'grep',
    'sed',
    'find',
    'xargs',
    'su',
    'awk',
    'rg',
    'which',
    'ps',
  ],
  ...[
    'mount',
    'umount',
    'unshare',
    'setpriv',
    'setsid',
    'flock',
    'chroot',
    'nsenter',
    'script',
    'tar',
    'hostname',
  ],
  ...[
    'basename',
    'cat',
    'chmod',
    'chown',
    'cp',
    'cut',
    'date',
    'dd',
    'dirname',
    'echo',
    'env',
    'expr',
    'false',
  ],
  ...['head', 'id', 'install', 'kill', 'ln', 'ls', 'mkdir', 'mkfifo', 'mknod', 'mktemp', 'mv', 'nohup', 'od'],
  ...[
    'printenv',
    'printf',
    'pwd',
    'readlink',
    'realpath',
    'rm',
    'rmdir',
    'seq',
    'sha256sum',
    'sleep',
    'sort',
  ],
  ...[
    'stat',
    'sync',
    'tail',
    'tee',
    'test',
    'timeout',
    'touch',
    'tr',
    'true',
    'truncate',
    'tty',
    'uname',
    'uniq',
  ],
  ...['wc', 'whoami', 'yes'],
];
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

const LOOPBACK = `#include <net/if.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
int main(void) {
  struct ifreq lo = {.ifr_flags = IFF_UP | IFF_RUNNING};
  strcpy(lo.ifr_name, "lo");
  return ioctl(socket(AF_INET, SOCK_DGRAM, 0), SIOCSIFFLAGS, &lo) != 0;
}`;

const ETC = {
  shadow: 'root:*:19000:0:99999:7:::\nuser:*:19000:0:99999:7:::\n',
  hosts: '127.0.0.1 localhost\n::1 localhost\n',
  'resolv.conf': 'nameserver 127.0.0.1\n',
  'nsswitch.conf': 'passwd: files\ngroup: files\nhosts: files dns\n',
};

/** Everything but the tests, in a directory beneath `place`. */
export function matrixRoot(place) {
  const root = makeRoot(place);
  addPrograms(root, PROGRAMS);
  chmodSync(join(root, 'usr/bin/su'), 0o4755);
  addPython(root);
  if (existsSync('/usr/share/git-core/templates')) addTree(root, '/usr/share/git-core/templates');
  addCompiled(root, 'loopback', LOOPBACK);
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

function addPython(root) {
  const script = 'import sysconfig as s; print(s.get_path("stdlib"))';
  const library = spawnSync('/usr/bin/python3', ['-c', script], { encoding: 'utf8' }).stdout.trim();
  if (library === '') throw new Error('python3 does not say where its library is');
  addTree(root, library, UNWANTED);
  const listed = spawnSync('bash', ['-c', 'ls "$1"/lib-dynload/*.so', '-', library], { encoding: 'utf8' });
  addLibrariesOf(root, ...listed.stdout.trim().split('\n'));
}
