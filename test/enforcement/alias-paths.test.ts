import { linkSync, mkdirSync, symlinkSync } from 'node:fs';
import { join, relative } from 'node:path';
import { describe, expect, it } from 'vitest';
import { makeArena, SECRET, snapshot } from '../support/arena.ts';
import { startBystander } from '../support/bystander.ts';
import { compile, confined, unconfined, worked } from '../support/sandboxee.ts';
import { HOST, OLDEST_TIERS, TIERS } from '../support/tiers.ts';

const opener = compile(
  'open-aliases',
  `
  int main(int argc, char **argv) {
    for (int i = 1; i < argc; i++) {
      char name[4200];
      int fd;
      sprintf(name, "read:%d", i);
      TRY(name, open(argv[i], O_RDONLY));
      sprintf(name, "write:%d", i);
      TRY(name, open(argv[i], O_WRONLY));
      sprintf(name, "path-then-reopen:%d", i);
      fd = open(argv[i], O_PATH);
      char again[64];
      sprintf(again, "/proc/self/fd/%d", fd);
      TRY(name, fd < 0 ? -1 : open(again, O_RDONLY));
    }
    return 0;
  }`,
);

const handles = compile(
  'open-by-handle',
  `
  int main(int argc, char **argv) {
    struct { struct file_handle handle; unsigned char bytes[128]; } h;
    int mount_id, mount = open(".", O_RDONLY);
    // The handle of the secret can be guessed (inode numbers); here it is given.
    h.handle.handle_bytes = 128;
    if (argc > 3) {
      char *at = argv[3]; int n = 0;
      while (*at) { unsigned v; sscanf(at, "%2x", &v); h.handle.f_handle[n++] = v; at += 2; }
      h.handle.handle_bytes = n; h.handle.handle_type = atoi(argv[2]);
      TRY("open-by-handle", syscall(SYS_open_by_handle_at, mount, &h, O_RDONLY));
    } else {
      if (name_to_handle_at(AT_FDCWD, argv[1], &h.handle, &mount_id, 0)) return 1;
      TRY("open-by-handle", syscall(SYS_open_by_handle_at, mount, &h, O_RDONLY));
      printf("type=T%d\\nhandle=H", h.handle.handle_type);
      for (int i = 0; i < h.handle.handle_bytes; i++) printf("%02x", h.handle.f_handle[i]);
      printf("\\n");
    }
    return 0;
  }`,
);

const walker = compile(
  'walk-up',
  `
  int main(int argc, char **argv) {
    // Up from a directory that was opened before it was moved.
    mkdir("deep", 0700); mkdir("deep/er", 0700);
    int fd = open("deep/er", O_RDONLY | O_DIRECTORY);
    rename("deep/er", "er");
    char up[4200] = "";
    for (int i = 0; i < 12; i++) strcat(up, "../");
    strcat(up, argv[1] + 1);
    TRY("old-directory", openat(fd, up, O_RDONLY));
    TRY("dot-dot", open(up, O_RDONLY));
    TRY("root-dot-dot", (sprintf(up, "/../../..%s", argv[1]), open(up, O_RDONLY)));
    TRY("cwd-descriptor", openat(open("/", O_PATH), argv[1] + 1, O_RDONLY));
    return 0;
  }`,
);

describe('reaching outside by another name', () => {
  const arena = makeArena();
  const { workspace, secret } = arena;
  mkdirSync(join(workspace, 'sub'));
  symlinkSync(secret, join(workspace, 'link'));
  symlinkSync(relative(workspace, secret), join(workspace, 'relative-link'));
  symlinkSync(arena.outside, join(workspace, 'directory-link'));
  symlinkSync('/', join(workspace, 'root-link'));
  symlinkSync('link', join(workspace, 'link-to-link'));

  const aliases = async () => {
    const bystander = await startBystander([
      '/bin/sh',
      '-c',
      `cd "${arena.outside}"; echo ready; exec sleep 60 8<"${secret}"`,
    ]);
    return [
      join(workspace, 'link'),
      join(workspace, 'relative-link'),
      join(workspace, 'directory-link/secret.txt'),
      join(workspace, `root-link${secret}`),
      join(workspace, 'link-to-link'),
      `${workspace}/sub/../../outside/secret.txt`,
      `${workspace}/../outside/secret.txt`,
      `/proc/self/root${secret}`,
      `/proc/thread-self/root${secret}`,
      '/proc/self/cwd/../outside/secret.txt',
      `/proc/${process.pid}/root${secret}`,
      `/proc/${bystander.pid}/root${secret}`,
      `/proc/${bystander.pid}/cwd/secret.txt`,
      `/proc/${bystander.pid}/fd/8`,
      `/proc/${bystander.pid}/task/${bystander.pid}/fd/8`,
    ];
  };

  it('works without a sandbox', async () => {
    const names = await aliases();
    const trace = await unconfined([opener, ...names], { cwd: workspace });
    const failed = names.flatMap((name, i) => (trace.results[`read:${i + 1}`] === 'ok' ? [] : [name]));
    expect(failed).toEqual([]);
    const walk = await unconfined([walker, secret], { cwd: workspace });
    expect(worked(walk)).toHaveLength(4);
  });

  describe.each([...TIERS, ...OLDEST_TIERS])('$name', (tier) => {
    it('fails through links, dot-dot and /proc', async () => {
      const names = [...(await aliases()), `/proc/1/root${secret}`, `/proc/${process.ppid}/root${secret}`];
      const sandbox = await arena.sandbox(tier);
      const before = snapshot(arena.outside);
      const trace = await confined(sandbox, [opener, ...names]);
      expect(worked(trace).map((name) => `${name} ${names[Number(name.split(':')[1]) - 1]}`)).toEqual([]);
      expect(Object.keys(trace.results)).toHaveLength(names.length * 3);
      const walk = await confined(sandbox, [walker, secret]);
      expect(worked(walk)).toEqual([]);
      expect(snapshot(arena.outside)).toEqual(before);
    });

    it('fails through a link that the command makes itself', async () => {
      const sandbox = await arena.sandbox(tier);
      const before = snapshot(arena.outside);
      const result = await sandbox.run(
        `cd "${arena.freshCorner()}"; ln -s "${secret}" l; cat l; echo x > l; ln -s "${arena.outside}" d; ls d/; echo x > d/new; cp l copy; ln "${secret}" hard; cat hard; true`,
      );
      expect(result.stdout).not.toContain(SECRET);
      expect(result.stdout).not.toContain('secret.txt');
      expect(snapshot(arena.outside)).toEqual(before);
    });

    it('fails by a file handle, which passes all directories', async () => {
      const sandbox = await arena.sandbox(tier);
      const free = await unconfined([handles, secret], { cwd: workspace });
      // The overlays of containers give no handles: then one that is made up has to be refused before it is looked at.
      const given = free.results.handle !== undefined;
      if (HOST.root && given) expect(free.results['open-by-handle']).toBe('ok');
      const type = free.results.type?.slice(1) ?? '1';
      const bytes = free.results.handle?.slice(1) ?? '0'.repeat(16);
      expect(bytes).toMatch(/^[0-9a-f]+$/);
      const trace = await confined(sandbox, [handles, secret, type, bytes]);
      expect(trace.results['open-by-handle']).toBe('EPERM');
    });

    it('reaches a hard link that somebody outside put into the workspace, as it is a file of the workspace', async () => {
      const corner = arena.freshCorner();
      linkSync(secret, join(corner, 'given'));
      const sandbox = await arena.sandbox(tier);
      const result = await sandbox.run(['/bin/cat', join(corner, 'given')]);
      expect(result.stdout).toBe(SECRET);
    });
  });
});
