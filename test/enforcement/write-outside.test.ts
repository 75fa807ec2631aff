import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { makeArena, snapshot } from '../support/arena.ts';
import { compile, confined, unconfined, worked } from '../support/sandboxee.ts';
import { OLDER_TIERS, stateOf, TIERS } from '../support/tiers.ts';

const writer = compile(
  'write-outside',
  `
  int at(char *out, const char *directory, const char *name) { return sprintf(out, "%s/%s", directory, name); }
  int main(int argc, char **argv) {
    const char *victims = argv[1], *workspace = argv[2];
    char path[4096], other[4096];
    #define V(name) (at(path, victims, name), path)
    #define W(name) (at(other, workspace, name), other)
    int fd;
    TRY("write", (fd = open(V("file"), O_WRONLY)) < 0 ? -1 : write(fd, "x", 1));
    TRY("append", (fd = open(V("file"), O_WRONLY | O_APPEND)) < 0 ? -1 : write(fd, "x", 1));
    TRY("read-write", open(V("file"), O_RDWR));
    TRY("open-truncating", open(V("file"), O_WRONLY | O_TRUNC));
    TRY("open-truncating-read-only", open(V("file"), O_RDONLY | O_TRUNC));
    TRY("truncate", truncate(V("file"), 1));
    TRY("create", open(V("created"), O_WRONLY | O_CREAT | O_EXCL, 0600));
    TRY("temporary", open(victims, O_WRONLY | O_TMPFILE, 0600));
    TRY("mkdir", mkdir(V("made"), 0700));
    TRY("mkfifo", mkfifo(V("fifo"), 0600));
    TRY("mknod-socket", mknod(V("socket"), S_IFSOCK | 0600, 0));
    TRY("mknod-file", mknod(V("node"), S_IFREG | 0600, 0));
    TRY("symlink", symlink("/etc/passwd", V("link")));
    TRY("unlink", unlink(V("doomed")));
    TRY("rmdir", rmdir(V("empty")));
    char from[4096], to[4096];
    at(from, victims, "renamed"); at(to, victims, "renamed-2");
    TRY("rename", rename(from, to));
    at(from, victims, "full"); at(to, victims, "full-2");
    TRY("rename-directory", rename(from, to));
    at(from, victims, "moved-out"); at(to, workspace, "moved-out");
    TRY("rename-into-workspace", rename(from, to));
    close(open(W("planted"), O_WRONLY | O_CREAT, 0600));
    close(open(W("planted-2"), O_WRONLY | O_CREAT, 0600));
    at(from, workspace, "planted"); at(to, victims, "planted");
    TRY("rename-out-of-workspace", rename(from, to));
    at(from, workspace, "planted-2"); at(to, victims, "file");
    TRY("rename-over", rename(from, to));
    close(open(W("planted-3"), O_WRONLY | O_CREAT, 0600));
    at(from, workspace, "planted-3"); at(to, victims, "linked");
    TRY("exchange", syscall(SYS_renameat2, AT_FDCWD, from, AT_FDCWD, to, 2));
    at(from, workspace, "planted-3"); at(to, victims, "hard-link");
    TRY("link-out-of-workspace", link(from, to));
    at(from, victims, "linked"); at(to, workspace, "hard-link");
    TRY("link-into-workspace", link(from, to));
    TRY("write-through-link", (fd = open(W("hard-link"), O_WRONLY)) < 0 ? -1 : write(fd, "x", 1));
    return 0;
  }`,
);

const mover = compile(
  'move-inside',
  `
  int main() {
    mkdir("from", 0700); mkdir("to", 0700);
    close(open("from/file", O_WRONLY | O_CREAT, 0600));
    TRY("rename-between-directories", rename("from/file", "to/file"));
    return 0;
  }`,
);

describe.each([
  { place: 'a workspace under /tmp', parent: '/tmp' },
  { place: 'a workspace under /var/tmp', parent: '/var/tmp' },
])('changing the tree outside $place', ({ parent }) => {
  const arena = makeArena(parent);

  it('works without a sandbox', async () => {
    const victims = arena.freshVictims();
    const corner = arena.freshCorner();
    const trace = await unconfined([writer, victims, corner], { cwd: arena.workspace });
    expect(Object.entries(trace.results).filter(([, outcome]) => outcome !== 'ok')).toEqual([]);
    expect(Object.keys(trace.results)).toHaveLength(24);
  });

  describe.each(TIERS)('$name', (tier) => {
    it('fails for the workspace, its parent and the root as such', async () => {
      const sandbox = await arena.sandbox(tier);
      const before = readdirSync(arena.root);
      const result = await sandbox.run(
        `mv "$PWD" "$PWD.moved"; rmdir "$PWD"; : > ../beside; : > /beside; mkdir /made; rm -rf "${arena.outside}"; true`,
      );
      expect(result.status).toBe('exited');
      expect(readdirSync(arena.root)).toEqual(before);
      expect(existsSync(arena.secret)).toBe(true);
      expect(existsSync('/beside')).toBe(false);
      expect(existsSync('/made')).toBe(false);
    });

    it('fails inside the workspace too under the profile read-only', async () => {
      const sandbox = await arena.sandbox(tier, { profile: 'read-only' });
      const corner = arena.freshCorner();
      const before = snapshot(arena.workspace);
      const trace = await confined(sandbox, [writer, corner, corner]);
      expect(worked(trace)).toEqual([]);
      expect(snapshot(arena.workspace)).toEqual(before);
    });
  });

  describe.each([...TIERS, ...OLDER_TIERS])('$name', (tier) => {
    it('fails, except for what the report names', async () => {
      const sandbox = await arena.sandbox(tier);
      const victims = arena.freshVictims();
      const corner = arena.freshCorner();
      const before = snapshot(arena.outside);
      const trace = await confined(sandbox, [writer, victims, corner]);
      expect([trace.exitCode, Object.keys(trace.results).length]).toEqual([0, 24]);
      expect(existsSync(join(corner, 'hard-link'))).toBe(false);
      const truncatable = !tier.view && tier.landlockAbi < 3;
      expect(worked(trace)).toEqual(truncatable ? ['truncate'] : []);
      expect(stateOf(sandbox, 'truncate')).toBe(truncatable ? 'degraded' : 'enforced');
      if (!truncatable) expect(snapshot(arena.outside)).toEqual(before);
    });

    it('leaves renaming between directories to the workspace where the kernel can tell', async () => {
      const sandbox = await arena.sandbox(tier);
      const trace = await confined(sandbox, [mover]);
      // Only the first Landlock refuses it everywhere; without Landlock there are mounts, and these are in the way of nothing.
      const expected = tier.landlockAbi === 1 ? ['EXDEV', 'degraded'] : ['ok', 'enforced'];
      expect([trace.results['rename-between-directories'], stateOf(sandbox, 'rename')]).toEqual(expected);
    });
  });
});
