import { spawnSync } from 'node:child_process';
import {
  existsSync,
  linkSync,
  mkdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import type { Command, ControlId, ExecutionResult, Sandbox } from '../../src/index.ts';
import { eventually } from '../support/eventually.ts';
import { processesWith } from '../support/leftovers.ts';
import { compile, PROGRAMS } from '../support/sandboxee.ts';
import { makeStage, SECRET, USABLE } from './support.ts';

const stage = makeStage();
const inWorkspace = (name: string) => join(stage.workspace, name);
const outside = (name: string) => join(stage.outside, name);

/** Connects to the port and says so. */
const CONNECT = compile(
  'conformance-connect',
  `#include <arpa/inet.h>
#include <netinet/in.h>
int main(int argc, char** argv) {
  struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(atoi(argv[1])), .sin_addr = {htonl(INADDR_LOOPBACK)}};
  int s = socket(AF_INET, SOCK_STREAM, 0);
  TRY("connect", s < 0 ? -1 : connect(s, (void*)&to, sizeof to));
}`,
);
/** A daemon that leaves session and parent, and writes its first file once there is the second. */
const DAEMON = compile(
  'conformance-daemon',
  `int main(int argc, char** argv) {
  if (fork() > 0) return 0;
  setsid();
  if (fork() > 0) return 0;
  for (int fd = 0; fd < 3; ++fd) close(fd);
  while (access(argv[2], F_OK)) usleep(10000);
  close(open(argv[1], O_CREAT | O_WRONLY, 0644));
}`,
);
const IDENTITY = compile(
  'conformance-identity',
  `int main(void) {
  printf("nnp=%d\\n", prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0));
  for (int fd = 3; fd < 200; ++fd) if (fcntl(fd, F_GETFD) >= 0) printf("fd%d=open\\n", fd);
  FILE* status = fopen("/proc/self/status", "r");
  for (char line[256]; status && fgets(line, sizeof line, status);) if (!strncmp(line, "CapEff", 6)) printf("%s", line);
}`,
);

describe.each(USABLE)('what is reported as enforced holds, under %s', (backend) => {
  let sandbox: Sandbox;
  beforeAll(async () => {
    // Where programs are judged instead of held, an attack that is a program of its own never begins.
    const unjudged = backend === 'application' ? {} : { unsafe: { unjudged_commands: true } };
    sandbox = await stage.sandbox(backend, { readable: [PROGRAMS], policy: unjudged });
  });
  beforeEach(async () => {
    mkdirSync(inWorkspace('.git/hooks'), { recursive: true });
    writeFileSync(inWorkspace('.git/hooks/pre-commit'), 'kept\n');
    writeFileSync(outside('victim.txt'), 'kept\n');
    // What came in the same tick of the file system's clock as a command is taken for the command's.
    // That clock ticks 100 times a second at least, so it is behind by ten milliseconds at most.
    const { ctimeMs } = statSync(inWorkspace('.git/hooks/pre-commit'));
    while (Date.now() <= ctimeMs + 10);
  });

  /** The control's claim; an attack that worked where it says `enforced` is an escape. */
  const claims = (id: ControlId): boolean =>
    sandbox.plan.report.controls.some((control) => control.id === id && control.state === 'enforced');

  const attack = (command: Command): Promise<ExecutionResult> => sandbox.run(command, { timeout: 20_000 });

  it.each([
    ['by its path', () => ['cat', stage.secret] as const],
    ['by way of ..', () => ['cat', '../outside/secret.txt'] as const],
    ['by a link in the workspace', () => ['cat', 'link-to-secret'] as const],
    ['by a directory that is a link', () => ['cat', 'link-to-outside/secret.txt'] as const],
    ['by the root of another process', () => ['cat', `/proc/${process.ppid}/root${stage.secret}`] as const],
    ['by a redirect', () => `cat < ${stage.secret}`],
    ['with sed', () => ['sed', `r ${stage.secret}`, 'lines.txt'] as const],
  ])('a file outside is not read %s', async (_, command) => {
    for (const [name, target] of [
      ['link-to-secret', stage.secret],
      ['link-to-outside', stage.outside],
    ] as const) {
      rmSync(inWorkspace(name), { force: true });
      symlinkSync(target, inWorkspace(name));
    }
    const result = await attack(command());
    expect(result.stdout).not.toContain(SECRET);
    if (result.status !== 'denied') expect(claims('filesystem')).toBe(true);
  });

  it.each([
    ['by a redirect', () => `cat lines.txt > ${outside('victim.txt')}`],
    ['by appending', () => 'cat lines.txt >> ../outside/victim.txt'],
    ['through a link', () => 'cat lines.txt > link-to-victim'],
    ['by copying', () => ['cp', 'lines.txt', outside('victim.txt')] as const],
    ['by copying through a link', () => ['cp', 'lines.txt', 'link-to-victim'] as const],
    ['with sed', () => ['sed', '-i', 's/kept/lost/', outside('victim.txt')] as const],
    ['with a command of sed', () => ['sed', `w ${outside('victim.txt')}`, 'lines.txt'] as const],
  ])('a file outside is not written %s', async (_, command) => {
    rmSync(inWorkspace('link-to-victim'), { force: true });
    symlinkSync(outside('victim.txt'), inWorkspace('link-to-victim'));
    await attack(command());
    expect(readFileSync(outside('victim.txt'), 'utf8')).toBe('kept\n');
  });

  it.each([
    ['by a redirect', () => 'cat lines.txt > .git/hooks/pre-commit'],
    ['by copying', () => ['cp', 'lines.txt', '.git/hooks/pre-commit'] as const],
    ['in place', () => ['sed', '-i', 's/kept/lost/', '.git/hooks/pre-commit'] as const],
  ])('a hook is not written %s, or the report says that it can be', async (_, command) => {
    const result = await attack(command());
    const hook = inWorkspace('.git/hooks/pre-commit');
    // What changed it may have been seen when it ended, and not by whom it was: then it is told or taken away.
    const isKept = existsSync(hook) && readFileSync(hook, 'utf8') === 'kept\n';
    const isMeant = claims('protected-paths') || result.status === 'denied';
    expect(isKept || (!isMeant && result.leftBehind.length > 0)).toBe(true);
  });

  describe('the network', () => {
    const server = createServer((socket) => {
      connections++;
      socket.destroy();
    });
    let connections = 0;
    beforeAll(() => new Promise<void>((done) => server.listen(0, '127.0.0.1', done)));
    afterAll(() => new Promise((done) => server.close(done)));

    it('of the host is not reached, or the report says that it can be', async () => {
      const address = server.address();
      const port = typeof address === 'object' ? String(address?.port) : '';
      const result = await attack([CONNECT, port]);
      if (result.status === 'denied') return;
      expect(result.stdout).toMatch(/^connect=/);
      if (claims('network'))
        expect([result.stdout, connections]).toEqual([expect.not.stringContaining('ok'), 0]);
    });
  });

  it('a daemon ends with the command, or the report says that it may not', async () => {
    const witness = inWorkspace('daemon-was-here');
    rmSync(witness, { force: true });
    const go = inWorkspace('daemon-may-go');
    rmSync(go, { force: true });
    // Without a sandbox it stays, and writes.
    spawnSync(DAEMON, [witness, go]);
    expect(processesWith(witness)).toHaveLength(1);
    writeFileSync(go, '');
    await eventually(() => expect(existsSync(witness)).toBe(true));
    await eventually(() => expect(processesWith(witness)).toEqual([]));
    for (const path of [witness, go]) rmSync(path);
    const result = await attack([DAEMON, witness, go]);
    if (result.status === 'denied') return;
    // One that was killed may still be seen; one that was not stays.
    await eventually(() => expect(processesWith(witness)).toEqual([]));
    expect([existsSync(witness), result.treeEnded]).toEqual([false, true]);
  });

  it('it has no capabilities, no new privileges and no descriptors but the three', async () => {
    const result = await attack([IDENTITY]);
    if (result.status === 'denied') return;
    if (claims('privileges')) expect(result.stdout).toMatch(/^nnp=1\n[\s\S]*CapEff:\s0+\n$/);
    if (claims('descriptors')) expect(result.stdout).not.toContain('open');
  });

  it('a hard link does not carry a file to wider rights', async () => {
    try {
      linkSync(stage.secret, inWorkspace('hard-link'));
    } catch {
      return;
    }
    // A link that somebody else made is in the workspace: nothing can tell it from a file that belongs there.
    rmSync(inWorkspace('hard-link'));
    const result = await attack(['cp', '-l', stage.secret, 'hard-link']);
    expect(existsSync(inWorkspace('hard-link'))).toBe(false);
    expect(result.exitCode).not.toBe(0);
  });
});
