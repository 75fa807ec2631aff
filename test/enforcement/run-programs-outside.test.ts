import { chmodSync, copyFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { makeArena } from '../support/arena.ts';
import { compile, confined, unconfined, worked } from '../support/sandboxee.ts';
import { OLDEST_TIERS, TIERS } from '../support/tiers.ts';

const runner = compile(
  'run-outside',
  `
  int run(const char *program, char **argv) {
    int status, pipes[2], error = 0;
    pipe2(pipes, O_CLOEXEC);
    pid_t pid = fork();
    if (pid == 0) {
      close(1);
      open("/dev/null", O_WRONLY);
      execv(program, argv);
      error = errno;
      write(pipes[1], &error, sizeof error);
      _exit(127);
    }
    close(pipes[1]);
    read(pipes[0], &error, sizeof error);
    waitpid(pid, &status, 0);
    errno = error ? error : EIO;
    return !error && WIFEXITED(status) && WEXITSTATUS(status) == 0 ? 0 : -1;
  }
  int main(int argc, char **argv) {
    char *script = argv[1], *program = argv[2], *secret = argv[3];
    TRY("program", run(program, (char *[]){program, 0}));
    TRY("script", run(script, (char *[]){script, 0}));
    TRY("interpreter-reads-script", run("/bin/sh", (char *[]){"sh", script, 0}));
    TRY("loader", run(LOADER, (char *[]){"ld.so", program, 0}));
    int fd = open(program, O_PATH);
    TRY("execveat", fd < 0 ? -1 : run((char[64]){0}, 0) == 0 ? 0 : -1);
    char magic[64];
    sprintf(magic, "/proc/self/fd/%d", fd);
    TRY("magic-link", fd < 0 ? -1 : run(magic, (char *[]){program, 0}));
    TRY("map-executable", (fd = open(program, O_RDONLY)) < 0 ? -1 : mmap(0, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0) == MAP_FAILED ? -1 : 0);
    return 0;
  }`,
  [`-DLOADER="${process.arch === 'arm64' ? '/lib/ld-linux-aarch64.so.1' : '/lib64/ld-linux-x86-64.so.2'}"`],
);

const memory = compile(
  'run-from-memory',
  `
  int main(int argc, char **argv) {
    if (argc == 2) {  // the copy that runs from memory
      SAY("ran-from-memory", "ok");
      TRY("read-outside", open(argv[1], O_RDONLY));
      TRY("raw-socket", socket(AF_INET, SOCK_RAW, 1));
      TRY("mount", mount("none", "/tmp", "tmpfs", 0, 0));
      return 0;
    }
    int in = open("/proc/self/exe", O_RDONLY), out = memfd_create("program", 0);
    char buffer[65536];
    ssize_t n;
    while ((n = read(in, buffer, sizeof buffer)) > 0) write(out, buffer, n);
    char path[64];
    sprintf(path, "/proc/self/fd/%d", out);
    char *next[] = {"from-memory", argv[1], 0}, *none[] = {0};
    execveat(out, "", next, none, AT_EMPTY_PATH);
    execve(path, next, none);
    TRY("ran-from-memory", -1);
    return 0;
  }`,
);

describe('running programs outside', () => {
  const arena = makeArena();
  const program = join(arena.outside, 'program');
  const script = join(arena.outside, 'script');
  copyFileSync('/bin/true', program);
  writeFileSync(script, '#!/bin/sh\nexit 0\n');
  chmodSync(program, 0o755);
  chmodSync(script, 0o755);

  it('works without a sandbox', async () => {
    const trace = await unconfined([runner, script, program, arena.secret]);
    expect(worked(trace)).toEqual([
      ...['program', 'script', 'interpreter-reads-script', 'loader', 'magic-link', 'map-executable'],
    ]);
  });

  describe.each([...TIERS, ...OLDEST_TIERS])('$name', (tier) => {
    it('fails, also through the loader, an interpreter and a mapping', async () => {
      const sandbox = await arena.sandbox(tier);
      const trace = await confined(sandbox, [runner, script, program, arena.secret]);
      expect(worked(trace)).toEqual([]);
      expect(Object.keys(trace.results)).toHaveLength(7);
    });

    it('is refused by the launch with the path and what to do', async () => {
      const sandbox = await arena.sandbox(tier);
      const result = await sandbox.run([program]);
      expect(result.status).toBe('setup-failed');
      expect(result.error?.code).toMatch(/^program\.not_(executable|found)$/);
      expect(result.error?.message).toContain(program);
    });

    it('from a memory file is possible and as confined as everything else', async () => {
      const sandbox = await arena.sandbox(tier);
      const trace = await confined(sandbox, [memory, arena.secret, 'start']);
      expect(worked(trace)).toEqual(['ran-from-memory']);
      expect(Object.keys(trace.results)).toHaveLength(4);
    });
  });
});
