import { existsSync, readFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { makeArena } from '../support/arena.ts';
import { compile, confined, unconfined, worked } from '../support/sandboxee.ts';
import { HOST, OLDEST_TIERS, TIERS } from '../support/tiers.ts';

const mounter = compile(
  'change-mounts',
  `
  #include <sys/sysmacros.h>
  int fork_with(unsigned long flags) {
    long pid = syscall(SYS_clone, flags | SIGCHLD, 0, 0, 0, 0);
    if (pid == 0) _exit(0);
    if (pid > 0) waitpid(pid, 0, 0);
    return pid;
  }
  int main(int argc, char **argv) {
    int fd;
    mkdir("mnt", 0700);
    TRY("mount", mount("none", "mnt", "tmpfs", 0, 0));
    // With what is mounted beneath it, which may not be left out in a namespace of another user.
    TRY("bind", mount("/etc", "mnt", 0, MS_BIND | MS_REC, 0));
    TRY("remount", mount(0, "/", 0, MS_REMOUNT | MS_BIND, 0));
    TRY("remount-etc", mount(0, "/usr", 0, MS_REMOUNT | MS_BIND, 0));
    TRY("private", mount(0, "/", 0, MS_REC | MS_PRIVATE, 0));
    TRY("umount", umount2("/proc", MNT_DETACH));
    TRY("umount-workspace", umount2(".", MNT_DETACH));
    TRY("pivot-root", syscall(SYS_pivot_root, ".", "."));
    TRY("chroot", chroot("mnt"));
    TRY("open-tree", syscall(SYS_open_tree, AT_FDCWD, "/etc", 1));
    TRY("move-mount", syscall(SYS_move_mount, AT_FDCWD, "/etc", AT_FDCWD, "mnt", 0));
    TRY("fsopen", syscall(SYS_fsopen, "tmpfs", 0));
    TRY("fspick", syscall(SYS_fspick, AT_FDCWD, "/", 0));
    TRY("mount-setattr", syscall(SYS_mount_setattr, AT_FDCWD, "/", 0, (uint64_t[4]){0, 1, 0, 0}, 32));
    TRY("unshare-user", unshare(CLONE_NEWUSER));
    TRY("unshare-mount", unshare(CLONE_NEWNS));
    TRY("unshare-network", unshare(CLONE_NEWNET));
    TRY("unshare-pid", unshare(CLONE_NEWPID));
    TRY("unshare-ipc", unshare(CLONE_NEWIPC));
    TRY("unshare-time", unshare(0x80));
    TRY("clone-user", fork_with(CLONE_NEWUSER));
    TRY("clone-user-mount", fork_with(CLONE_NEWUSER | CLONE_NEWNS));
    TRY("clone-user-high-bits", fork_with(0x100000000ul | CLONE_NEWUSER));
    TRY("clone-network", fork_with(CLONE_NEWNET));
    TRY("clone-cgroup", fork_with(0x02000000));
    TRY("clone3-user", ({ long r = syscall(SYS_clone3, (uint64_t[8]){CLONE_NEWUSER, 0, 0, 0, SIGCHLD}, 64); if (r == 0) _exit(0); r; }));
    TRY("setns-own", setns(open("/proc/self/ns/net", O_RDONLY), 0));
    TRY("setns-pidfd", setns(syscall(SYS_pidfd_open, getppid(), 0), CLONE_NEWNS));
    TRY("setns-user", setns(open("/proc/self/ns/user", O_RDONLY), CLONE_NEWUSER));
    TRY("parent-user-namespace", ({ fd = open("/proc/self/ns/user", O_RDONLY); setns(ioctl(fd, 0xb701), 0); }));
    TRY("uid-map", ({ fd = open("/proc/self/uid_map", O_WRONLY); fd < 0 ? -1 : write(fd, "0 0 4294967295", 14); }));
    TRY("character-device", mknod("device", S_IFCHR | 0600, makedev(1, 1)));
    TRY("block-device", mknod("disk", S_IFBLK | 0600, makedev(254, 0)));
    TRY("device-at", mknodat(AT_FDCWD, "device-2", S_IFCHR | 0666, makedev(1, 8)));
    TRY("device-high-bits", syscall(SYS_mknodat, AT_FDCWD, "device-3", 0x100000000ull | S_IFCHR | 0666, makedev(1, 8)));
    char *devices[] = {"/dev/mem", "/dev/kmem", "/dev/kmsg", "/dev/port", "/dev/fuse", "/dev/kvm", "/dev/vda", "/dev/sda", "/dev/loop-control", "/dev/net/tun", "/dev/console", "/dev/tty0", "/dev/vsock", "/dev/userfaultfd", "/dev/cuse", "/dev/input", "/dev/ttyS0", "/dev/rtc0", "/dev/mapper/control"};
    for (int i = 0; i < sizeof devices / sizeof *devices; i++) {
      char name[64];
      sprintf(name, "open:%s", devices[i]);
      TRY(name, open(devices[i], O_RDONLY | O_NONBLOCK | O_NOCTTY));
    }
    return 0;
  }`,
);

describe('changing mounts, namespaces, roots and devices', () => {
  const arena = makeArena();

  /** The mounts of this host but for those of other tests, which come and go in places of their own. */
  const mountsOfHost = () =>
    readFileSync('/proc/self/mountinfo', 'utf8')
      .split('\n')
      .filter((line) => {
        const at = line.split(' ')[4] ?? '';
        return !at.startsWith(join(tmpdir(), 'sandbox-run-')) || at.startsWith(arena.root);
      });

  it.runIf(!HOST.namespaces)('cannot be tried without a sandbox (no namespaces)', async () => {
    const trace = await unconfined(['/usr/bin/unshare', '--user', '--map-root-user', '--mount', mounter]);
    expect([trace.exitCode, worked(trace)]).toEqual([1, []]);
  });

  it.runIf(HOST.namespaces)('some of it works without a sandbox', async () => {
    // In namespaces of its own, so that nothing of the host is changed.
    const trace = await unconfined(
      ['/usr/bin/unshare', ...(HOST.root ? [] : ['--user', '--map-root-user']), '--mount', mounter],
      {
        cwd: arena.freshCorner(),
      },
    );
    expect(worked(trace)).toEqual(
      expect.arrayContaining(['mount', 'bind', 'unshare-network', 'chroot', 'fsopen']),
    );
  });

  describe.each([...TIERS, ...OLDEST_TIERS])('$name', (tier) => {
    it('fails', async () => {
      const sandbox = await arena.sandbox(tier);
      const mounts = mountsOfHost();
      const corner = arena.freshCorner();
      const trace = await confined(sandbox, [mounter], { cwd: corner });
      expect(worked(trace)).toEqual([]);
      expect(Object.keys(trace.results)).toHaveLength(54);
      expect(
        ['device', 'disk', 'device-2', 'device-3'].filter((name) => existsSync(join(corner, name))),
      ).toEqual([]);
      expect(mountsOfHost()).toEqual(mounts);
    });

    it('leaves the harmless devices', async () => {
      const sandbox = await arena.sandbox(tier);
      const result = await sandbox.run(
        'echo x > /dev/null && head -c4 /dev/zero | wc -c && head -c4 /dev/urandom | wc -c; echo x > /dev/full',
      );
      expect(result.stdout).toBe('4\n4\n');
      expect(result.exitCode).toBe(1);
    });
  });

  it.each(TIERS.filter((tier) => tier.view))(
    'a device in the workspace cannot be opened: $name',
    async (tier) => {
      const sandbox = await arena.sandbox(tier);
      const mounts = await sandbox.run(['/bin/grep', ` ${arena.workspace} `, '/proc/self/mountinfo']);
      expect(mounts.stdout).toMatch(/\bnodev\b/);
      expect(mounts.stdout).toMatch(/\bnosuid\b/);
    },
  );
});
