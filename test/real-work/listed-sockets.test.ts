import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, mkdtempSync, realpathSync, rmSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createSandbox, type ExecutionResult, type Sandbox, type SandboxOptions } from '../../src/index.ts';
import { warningsOf } from '../../src/run/index.ts';

const WORD = 'hello-from-the-host';

/** Programs that make sockets of their own, each with what it shows if that works. */
const OWN: readonly (readonly [name: string, command: string, shows: string])[] = [
  [
    'python multiprocessing',
    `python3 -c '
from multiprocessing.connection import Listener, Client
import threading
with Listener(None, "AF_UNIX", authkey=b"k") as listener:
    threading.Thread(target=lambda: print(Client(listener.address, authkey=b"k").recv())).start()
    connection = listener.accept(); connection.send("own-word")'`,
    'own-word',
  ],
  [
    'python manager',
    `python3 -c 'from multiprocessing import Manager
if __name__ == "__main__":
    with Manager() as manager: print("own-" + manager.list(["word"])[0])'`,
    'own-word',
  ],
  [
    'node http',
    `node -e 'const http = require("http"), path = process.cwd() + "/http.sock";
const server = http.createServer((q, r) => r.end("own-word")).listen(path, () => http.get({ socketPath: path, path: "/" }, (r) => { r.pipe(process.stdout); r.on("end", () => server.close()); }))'`,
    'own-word',
  ],
  [
    'node cluster',
    `cat >cluster.js <<'END'
const cluster = require("cluster"), http = require("http");
if (cluster.isPrimary) { const path = process.env.TMPDIR + "/cluster.sock"; cluster.fork({ AT: path }).on("listening", () =>
  http.get({ socketPath: path, path: "/" }, (r) => { r.pipe(process.stdout); r.on("end", () => process.exit()); })); }
else http.createServer((q, r) => r.end("own-word")).listen(process.env.AT);
END
node cluster.js`,
    'own-word',
  ],
  // It shuts itself off from all but root (PR_SET_DUMPABLE), and so from the supervisor of another user.
  ...(process.getuid?.() === 0
    ? [
        [
          'ssh-agent',
          `eval "$(ssh-agent)" >/dev/null; ssh-add -l; kill "$SSH_AGENT_PID"`,
          'no identities',
        ] as const,
      ]
    : []),
];

describe('real programs and sockets of this machine', () => {
  const root = mkdtempSync(join(realpathSync(tmpdir()), 'listed-sockets-'));
  const [workspace, outside] = [join(root, 'workspace'), join(root, 'outside')];
  const [web, other, agent] = ['web', 'other', 'agent'].map((name) => join(outside, name)) as [
    string,
    string,
    string,
  ];
  const servers: Server[] = [];
  const open: Sandbox[] = [];
  let requests = 0;
  const agentProcess: { end?: () => void } = {};
  const outsideEnvironment = process.env.SSH_AUTH_SOCK;

  const sandboxWith = async (options: SandboxOptions): Promise<Sandbox> => {
    const made = await createSandbox({
      workspace,
      policy: { unsafe: { unjudged_commands: true } },
      ...options,
    });
    open.push(made);
    return made;
  };
  const run = async (command: string, options: SandboxOptions): Promise<ExecutionResult> =>
    (await sandboxWith(options)).run(command, { timeout: 60_000 });

  beforeAll(async () => {
    for (const directory of [workspace, outside]) mkdirSync(directory);
    for (const path of [web, other]) {
      const server = createServer((_, response) => {
        requests += 1;
        response.end(`${WORD}\n`);
      });
      servers.push(server);
      await once(server.listen(path), 'listening');
    }
    const key = join(outside, 'key');
    execFileSync('ssh-keygen', ['-q', '-t', 'ed25519', '-N', '', '-C', 'a-key-of-the-user', '-f', key]);
    const child = spawn('ssh-agent', ['-D', '-a', agent], { stdio: ['ignore', 'pipe', 'ignore'] });
    agentProcess.end = () => child.kill('SIGKILL');
    await once(child.stdout, 'data');
    execFileSync('ssh-add', ['-q', key], { env: { ...process.env, SSH_AUTH_SOCK: agent }, stdio: 'pipe' });
    process.env.SSH_AUTH_SOCK = agent;
  });
  afterAll(async () => {
    if (outsideEnvironment === undefined) delete process.env.SSH_AUTH_SOCK;
    else process.env.SSH_AUTH_SOCK = outsideEnvironment;
    await Promise.all(open.map((one) => one.close()));
    for (const server of servers) server.close();
    agentProcess.end?.();
    rmSync(root, { recursive: true, force: true });
  });

  it.each(OWN)('%s has sockets of its own', async (_, command, shows) => {
    const result = await run(command, { net: ['unused.test'] });
    expect(result.stdout + result.stderr).toContain(shows);
    expect(result.connections).toBeUndefined();
  });

  it('ssh-add and ssh-keygen use the agent of the user, whose key stays outside', async () => {
    const result = await run(
      'ssh-add -l && ssh-add -L >key.pub && echo text >file && ssh-keygen -q -Y sign -f key.pub -n test file && head -1 file.sig; test -S "$SSH_AUTH_SOCK" && echo is-there',
      { unix: ['@ssh-agent'] },
    );
    expect(result.stdout).toContain('a-key-of-the-user');
    expect(result.stdout).toContain('BEGIN SSH SIGNATURE');
    expect(result.stdout).toContain('is-there');
    expect(result.connections).toEqual([
      expect.objectContaining({ verdict: 'allowed', protocol: 'unix', host: agent, rule: '@ssh-agent' }),
    ]);
  });

  // 111: ECONNREFUSED, as without a sandbox; 13: EACCES.
  it('a socket of its own that does not listen yet refuses, and one of the host that took its name stays shut', async () => {
    const program = `
import os, socket, sys
def connect(path):
    with socket.socket(socket.AF_UNIX) as s: return s.connect_ex(path)
server = socket.socket(socket.AF_UNIX); server.bind('own.sock')
print(connect('own.sock'), end=' ')
server.listen()
print(connect('own.sock'), end=' ')
other = socket.socket(socket.AF_UNIX); other.bind('other.sock')
os.rename('other.sock', 'moved.sock'); os.symlink(sys.argv[1], 'other.sock')
print(connect('moved.sock'), connect('other.sock'))`;
    const sandbox = await sandboxWith({ net: ['unused.test'], readable: [outside] });
    const result = await sandbox.run(['python3', '-c', program, other]);
    expect(result.stdout + result.stderr).toBe('111 0 111 13\n');
    expect(result.connections).toMatchObject([{ verdict: 'refused', error: 'EACCES' }]);
  });

  it('an agent that is not listed is not there', async () => {
    const result = await run(`SSH_AUTH_SOCK=${agent} ssh-add -l; echo "[$SSH_AUTH_SOCK]"`, {
      net: ['unused.test'],
    });
    expect(result.stdout).not.toContain('a-key-of-the-user');
    expect(result.stdout).toContain('[]');
  });

  it('curl reaches the listed socket, and no other one; both are told', async () => {
    const before = requests;
    const result = await run(
      `curl -sS --unix-socket ${web} http://x/; ln -s ${other} link; curl -sS --unix-socket link http://x/`,
      {
        unix: [web],
      },
    );
    expect(result.stdout).toBe(`${WORD}\n`);
    expect(requests).toBe(before + 1);
    expect(result.connections).toContainEqual(
      expect.objectContaining({
        verdict: 'allowed',
        protocol: 'unix',
        host: web,
        rule: web,
        program: 'curl',
      }),
    );
    expect(result.connections).toContainEqual(
      expect.objectContaining({
        ...{ verdict: 'refused', protocol: 'unix' },
        ...{ host: join(workspace, 'link'), entry: join(workspace, 'link') },
      }),
    );
    expect(warningsOf(result).join()).toMatch(
      /curl could not reach .*link: the policy does not list it; to allow: network\.unix = \[".*link"\]/,
    );
  });

  it('a program may make one socket after the other, and what people are to paste is one entry', async () => {
    const named = join(workspace, 'a; echo b');
    const script = `import socket
for _ in range(300):
    one = socket.socket(socket.AF_UNIX)
    try: one.connect('${named}')
    except FileNotFoundError: pass
    one.close()
print('made all')
one = socket.socket(socket.AF_UNIX)
one.connect('${named}.sock')`;
    const server = createServer(() => {});
    servers.push(server);
    await once(server.listen(`${named}.sock`), 'listening');
    const result = await run(`python3 -c "${script}"`, { unix: [web] });
    expect(result.stdout).toBe('made all\n');
    expect(warningsOf(result).join()).toContain(`network.unix = [${JSON.stringify(`${named}.sock`)}]`);
  });

  it('docker is listed with a warning, and by its variable', async () => {
    process.env.DOCKER_HOST = `unix://${web}`;
    try {
      const result = await run(
        `echo "$DOCKER_HOST"; curl -sS --unix-socket "\${DOCKER_HOST#unix://}" http://x/`,
        {
          unix: ['@docker'],
        },
      );
      expect(result.stdout).toBe(`unix://${web}\n${WORD}\n`);
      expect(result.warnings.join()).toContain('@docker is the socket of a container engine');
    } finally {
      delete process.env.DOCKER_HOST;
    }
  });

  it('a preset whose socket is missing is told, and the rest works', async () => {
    process.env.SSH_AUTH_SOCK = join(outside, 'gone');
    try {
      const result = await run(`curl -sS --unix-socket ${web} http://x/`, { unix: ['@ssh-agent', web] });
      expect(result.stdout).toBe(`${WORD}\n`);
      expect(result.warnings.join()).toMatch(
        /@ssh-agent is not there for commands: SSH_AUTH_SOCK is .*gone, which does not exist/,
      );
    } finally {
      process.env.SSH_AUTH_SOCK = agent;
    }
  });

  it.each(['off', 'open'] as const)('with the network %s the list is refused with one line', async (mode) => {
    await expect(
      sandboxWith({ policy: { network: { mode, unix: ['@ssh-agent'] } }, policyFiles: false }),
    ).rejects.toThrow(/^network\.unix lists sockets, .*mode = "listed" only, not "(?:off|open)"/);
  });
});
