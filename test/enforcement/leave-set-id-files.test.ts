import {
  chmodSync,
  chownSync,
  copyFileSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { makeArena } from '../support/arena.ts';
import { compile, confined, unconfined, worked } from '../support/sandboxee.ts';
import { OLDEST_TIERS, sandboxIn, TIERS } from '../support/tiers.ts';

/** Each way of giving a file the bits, once with set-user-ID, once with set-group-ID. */
const planter = compile(
  'plant-set-id',
  `
  #include <sys/xattr.h>
  #define FILE_OF(name) ({ close(openat(AT_FDCWD, name, O_CREAT | O_WRONLY, 0755)); name; })
  struct how { uint64_t flags, mode, resolve; };
  int main(int argc, char **argv) {
    static const struct { const char *name; int bit; } kinds[] = {{"user", 04755}, {"group", 02755}};
    umask(0);
    if (argc < 2 || chdir(argv[1])) return 2;
    for (int i = 0; i < 2; i++) {
      int bit = kinds[i].bit, fd;
      char name[64], of[64];
      #define NAMED(call) (sprintf(name, "%s-%s", call, kinds[i].name), strcpy(of, name), name)
      NAMED("chmod"), FILE_OF(of); TRY(name, chmod(of, bit));
      NAMED("chmod-high"), FILE_OF(of); TRY(name, syscall(SYS_fchmodat, AT_FDCWD, of, 0x100000000ull | bit));
      NAMED("fchmod"), FILE_OF(of); TRY(name, fchmod(open(of, O_RDONLY), bit));
      NAMED("fchmodat"), FILE_OF(of); TRY(name, fchmodat(AT_FDCWD, of, bit, 0));
      NAMED("fchmodat2"), FILE_OF(of); TRY(name, syscall(452, AT_FDCWD, of, bit, 0));
      NAMED("creat"); TRY(name, creat(of, bit));
      NAMED("open"); TRY(name, syscall(SYS_openat, AT_FDCWD, of, O_CREAT | O_WRONLY, bit));
    #ifdef SYS_open
      NAMED("open-legacy"); TRY(name, syscall(SYS_open, of, O_CREAT | O_RDWR | O_EXCL, bit));
      NAMED("mknod"); TRY(name, syscall(SYS_mknod, of, S_IFREG | bit, 0));
      NAMED("mkdir"); TRY(name, syscall(SYS_mkdir, of, bit));
    #endif
      NAMED("mknodat"); TRY(name, syscall(SYS_mknodat, AT_FDCWD, of, S_IFREG | bit, 0));
      NAMED("mkdirat"); TRY(name, syscall(SYS_mkdirat, AT_FDCWD, of, bit));
      NAMED("openat2"); TRY(name, syscall(437, AT_FDCWD, of, &(struct how){O_CREAT | O_WRONLY, bit, 0}, 24));
      NAMED("tmpfile"); TRY(name, ({
        fd = open(".", O_TMPFILE | O_WRONLY, bit);
        char path[64];
        sprintf(path, "/proc/self/fd/%d", fd);
        fd < 0 ? -1 : linkat(AT_FDCWD, path, AT_FDCWD, of, AT_SYMLINK_FOLLOW);
      }));
    }
    // VFS_CAP_REVISION_2 with CAP_SETUID permitted and effective.
    unsigned capability[5] = {0x02000001, 1 << 7, 0, 0, 0};
    FILE_OF("capability");
    TRY("capability", setxattr("capability", "security.capability", capability, sizeof capability, 0));
    return 0;
  }`,
);

/** Takes set-user-ID files that exist: by rename, by a link, by writing another program into one. */
const taker = compile(
  'take-set-id',
  `
  int main(int argc, char **argv) {
    const char *system = argv[1], *own = argv[2];
    TRY("link", link(system, "linked"));
    TRY("link-handle", ({ int fd = open(system, O_PATH); char path[64]; sprintf(path, "/proc/self/fd/%d", fd); linkat(AT_FDCWD, path, AT_FDCWD, "linked-handle", AT_SYMLINK_FOLLOW); }));
    TRY("rename", rename(system, "renamed"));
    TRY("exchange", ({ close(open("decoy", O_CREAT | O_WRONLY, 0755)); syscall(SYS_renameat2, AT_FDCWD, system, AT_FDCWD, "decoy", 2); }));
    TRY("write-own", ({ int fd = open(own, O_WRONLY); write(fd, "#!evil\\n", 7); }));
    return 0;
  }`,
);

/** Gives a directory the group's bit in each way, and tries what else might get it that way. */
const sharer = compile(
  'share-by-group',
  `
  #include <pthread.h>
  static volatile int stop;
  static int file, directory, swapped;
  static void *swap_descriptors(void *unused) {
    while (!stop) { dup2(file, swapped); dup2(directory, swapped); }
    return unused;
  }
  static void *swap_paths(void *unused) {
    while (!stop) { rename("race-file", "race"); rename("race", "race-file"); rename("race-dir", "race"); rename("race", "race-dir"); }
    return unused;
  }
  int main(int argc, char **argv) {
    char name[64], of[64];
    if (argc < 2 || chdir(argv[1])) return 2;
    #define IN(call) (sprintf(name, "dir-%s", call), strcpy(of, name), mkdir(of, 0755), name)
    IN("chmod"); TRY(name, chmod(of, 02775));
    IN("chmod-high"); TRY(name, syscall(SYS_fchmodat, AT_FDCWD, of, 0x100000000ull | 02755));
    IN("fchmod"); TRY(name, fchmod(open(of, O_RDONLY), 02700));
    IN("fchmodat"); TRY(name, fchmodat(open(".", O_RDONLY), of, 02775, 0));
    IN("nofollow"); TRY(name, fchmodat(AT_FDCWD, of, 02775, AT_SYMLINK_NOFOLLOW));
    IN("proc"); TRY(name, ({ char path[64]; sprintf(path, "/proc/self/fd/%d", open(of, O_PATH)); chmod(path, 02775); }));
    IN("user"); TRY(name, chmod(of, 06775));
    TRY("none", chmod("not-there", 02775));
    TRY("bad", fchmod(999, 02775));
    TRY("foreign", chmod("foreign", 02775));
    TRY("foreign-fd", fchmod(open("foreign", O_RDONLY), 02775));
    TRY("read-only", chmod(argv[2], 02775));
    close(open("dir-chmod/inner", O_CREAT | O_WRONLY, 0755));
    TRY("inner", chmod("dir-chmod/inner", 02755));
    TRY("moved", ({ rename("dir-chmod/inner", "moved"); chmod("moved", 02755); }));
    symlink("moved", "link"); TRY("through-link", chmod("link", 02755));
    pthread_t thread;
    close(open("race-fd-file", O_CREAT | O_WRONLY, 0755));
    mkdir("race-fd-dir", 0755);
    file = open("race-fd-file", O_RDONLY), directory = open("race-fd-dir", O_RDONLY), swapped = dup(directory);
    pthread_create(&thread, 0, swap_descriptors, 0);
    int won = 0;
    for (int i = 0; i < 2000; i++) won |= fchmod(swapped, 02755) == 0;
    stop = 1; pthread_join(thread, 0); stop = 0;
    close(open("race-file", O_CREAT | O_WRONLY, 0755));
    mkdir("race-dir", 0755);
    pthread_create(&thread, 0, swap_paths, 0);
    for (int i = 0; i < 2000; i++) won |= (chmod("race", 02755) == 0) << 1;
    stop = 1; pthread_join(thread, 0);
    TRY("races-were-run", won == 3 ? 0 : -1);
    return 0;
  }`,
);

const SET_USER_ID = 0o4000;
const SET_GROUP_ID = 0o2000;

/** Names in a directory of what has one of the bits. */
function withBits(directory: string, bits: number): readonly string[] {
  return readdirSync(directory).filter((name) => (lstatSync(join(directory, name)).mode & bits) !== 0);
}

/** What chmod says where the kernel is older than the call (6.6). */
const NOT_EVERYWHERE = ['fchmodat2-user', 'fchmodat2-group'];
const NOT_ON_DIRECTORIES = (name: string) => !/^mkdir/.test(name);

describe('leaving programs that run as their owner', () => {
  const arena = makeArena();

  it('works without a sandbox', async () => {
    const corner = arena.freshCorner();
    const trace = await unconfined([planter, corner]);
    const names = Object.keys(trace.results).filter((name) => name !== 'capability');
    expect(worked(trace)).toEqual(
      expect.arrayContaining(names.filter((name) => !NOT_EVERYWHERE.includes(name))),
    );
    const bits = withBits(corner, SET_USER_ID | SET_GROUP_ID);
    // The kernel makes no directory with these bits, whatever is asked.
    const able = names.filter((name) => NOT_ON_DIRECTORIES(name) && !NOT_EVERYWHERE.includes(name));
    expect(bits).toEqual(expect.arrayContaining(able));
  });

  describe.each([...TIERS, ...OLDEST_TIERS])('$name', (tier) => {
    it('fails by every call that gives a mode', async () => {
      const sandbox = await arena.sandbox(tier);
      const corner = arena.freshCorner();
      const trace = await confined(sandbox, [planter, corner]);
      // Directories with the group's bit may be asked for, and come without it.
      expect(worked(trace)).toEqual(
        Object.keys(trace.results).filter((name) => /^mkdir.*-group$/.test(name)),
      );
      expect(Object.keys(trace.results).length).toBeGreaterThanOrEqual(23);
      for (const [name, outcome] of Object.entries(trace.results)) {
        if (outcome !== 'ok')
          expect([name, outcome]).toEqual([name, name.startsWith('openat2') ? 'ENOSYS' : 'EPERM']);
      }
      expect(withBits(corner, SET_USER_ID | SET_GROUP_ID)).toEqual([]);
    });

    it('fails by taking one that exists', async () => {
      const sandbox = await arena.sandbox(tier);
      const corner = arena.freshCorner();
      const own = join(corner, 'own');
      copyFileSync('/bin/true', own);
      chmodSync(own, 0o6755);
      const trace = await confined(sandbox, [taker, '/usr/bin/passwd', own], { cwd: corner });
      expect(worked(trace)).toEqual(['write-own']);
      expect(withBits(corner, SET_USER_ID | SET_GROUP_ID)).toEqual([]);
      expect(statSync('/usr/bin/passwd').mode & SET_USER_ID).toBe(SET_USER_ID);
    });

    it('leaves every other mode', async () => {
      const sandbox = await arena.sandbox(tier);
      const corner = arena.freshCorner();
      const result = await sandbox.run(
        `cd "${corner}" && mkdir d && chmod 1777 d && touch f && chmod 0755 f && install -m 0640 f g && mkdir -m 0700 e && stat -c %a d f g e`,
      );
      expect([result.stderr, result.stdout]).toEqual(['', '1777\n755\n640\n700\n']);
    });

    it('leaves copying a set-group-ID directory, the copy comes without the bit', async () => {
      const sandbox = await arena.sandbox(tier);
      const corner = arena.freshCorner();
      mkdirSync(join(corner, 'from'));
      writeFileSync(join(corner, 'from/file'), 'x');
      chmodSync(join(corner, 'from'), 0o2755);
      const result = await sandbox.run('cp -r from to && cat to/file && stat -c " %a" to', { cwd: corner });
      expect([result.stderr, result.stdout]).toEqual(['', 'x 755\n']);
    });

    it('lets directories be shared by a group of the user, and no file, however they are swapped', async () => {
      const sandbox = await arena.sandbox(tier, { readable: [arena.outside] });
      const corner = arena.freshCorner();
      mkdirSync(join(corner, 'foreign'));
      const isRoot = process.geteuid?.() === 0;
      if (isRoot) chownSync(join(corner, 'foreign'), 0, 4_242);
      const trace = await confined(sandbox, [sharer, corner, arena.outside]);
      const { seccompGroups } = sandbox.plan;
      const isSupervised = seccompGroups.includes('@set-id-of-files');
      expect(isSupervised).toBe(!seccompGroups.includes('@set-id'));
      const ways = ['chmod', 'chmod-high', 'fchmod', 'fchmodat', 'nofollow', 'proc'].map(
        (way) => `dir-${way}`,
      );
      const foreign = isRoot ? [] : ['foreign', 'foreign-fd'];
      const races = isSupervised ? ['races-were-run'] : [];
      expect(worked(trace)).toEqual(isSupervised ? [...ways, ...foreign, ...races] : []);
      const left = withBits(corner, SET_USER_ID | SET_GROUP_ID);
      const directories = left.filter((name) => lstatSync(join(corner, name)).isDirectory());
      expect(left).toEqual(directories);
      expect(directories).toEqual(expect.arrayContaining(isSupervised ? ways : []));
      expect(statSync(arena.outside).mode & SET_GROUP_ID).toBe(0);
      if (isRoot) expect(statSync(join(corner, 'foreign')).mode & SET_GROUP_ID).toBe(0);
      const named = await sandbox.run(
        `cd "${corner}" && mkdir -m 2775 made && mkdir by && chmod g+s by && stat -c %a made by`,
      );
      expect(named.stdout).toBe(isSupervised ? '2775\n2755\n' : '');
    });

    it('leaves sharing by group: a set-group-ID directory hands its bit on, and git and cp can set it', async () => {
      const workspace = join(arena.root, `shared-${tier.landlockAbi}-${tier.view}`);
      mkdirSync(workspace);
      chmodSync(workspace, 0o2775);
      writeFileSync(join(workspace, 'file'), 'x');
      const sandbox = await sandboxIn(tier, { workspace });
      try {
        const result = await sandbox.run(
          'git init -q --shared=group . && git add file && git -c user.name=n -c user.email=e commit -qm m && mkdir sub && cp -a sub copy && chmod g+w sub && stat -c %a sub copy .git',
        );
        expect([result.stderr, result.stdout]).toEqual(['', '2775\n2755\n2775\n']);
        const trace = await confined(sandbox, ['chmod', '4755', 'file']);
        expect(trace.exitCode).not.toBe(0);
        const said = sandbox.plan.report.controls.find(({ id }) => id === 'syscalls')?.reason;
        const isSupervised = sandbox.plan.seccompGroups.includes('@set-id-of-files');
        expect(said?.includes('set-group-ID modes are left')).toBe(!isSupervised);
        const ofFile = await confined(sandbox, ['chmod', '2755', 'file']);
        expect(ofFile.exitCode === 0).toBe(!isSupervised);
      } finally {
        await sandbox.close();
      }
    });

    it('does not let a link of the command pass for such a directory', async () => {
      const workspace = join(arena.root, `linked-${tier.landlockAbi}-${tier.view}`);
      const shared = join(workspace, 'elsewhere');
      mkdirSync(shared, { recursive: true });
      chmodSync(shared, 0o2775);
      const first = await sandboxIn(tier, { workspace });
      await first.run('ln -s elsewhere .git; ln -s loop loop');
      await first.close();
      const sandbox = await sandboxIn(tier, { workspace });
      try {
        expect(sandbox.plan.seccompGroups).not.toContain('@set-user-id');
      } finally {
        await sandbox.close();
      }
    });
  });
});
