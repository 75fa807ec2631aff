import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  realpathSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { createServer, type Server } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createSandbox, type ExecutionResult, type Sandbox } from '../../src/index.ts';

/** Where the servers of this file are, under names that only the supervisor is told. */
const ADDRESS = '127.0.0.9';
const NAME = 'listed.test';
const UNLISTED = 'unlisted.test';
/** What programs do with a server that answers with it. */
const WORD = 'hello-from-the-host';

const URL_OF = 'http://$HOST:$PORT';
const FETCH = `fetch(process.env.U).then((r) => r.text()).then(console.log, (e) => { console.error(e.cause ?? e); process.exit(1); })`;
const CARES = `const { Resolver } = require('dns'); new Resolver().resolve4(process.env.HOST, (e, a) => { if (e) { console.error(e.code); process.exit(1); }
  require('http').get({ host: a[0], port: process.env.PORT, path: '/' }, (r) => r.pipe(process.stdout)).on('error', (e) => { console.error(e.code); process.exit(1); }); })`;
const ASYNCIO = `
import asyncio, os
async def main():
    reader, writer = await asyncio.open_connection(os.environ['HOST'], int(os.environ['PORT']))
    writer.write(b'GET / HTTP/1.0\\r\\n\\r\\n')
    print((await reader.read()).decode())
asyncio.run(main())`;
const PERL = `my $s = IO::Socket::INET->new("$ENV{HOST}:$ENV{PORT}") or die $!; print $s "GET / HTTP/1.0\\r\\n\\r\\n"; print <$s>;`;
const JAVA = `import java.net.*; public class Get { public static void main(String[] a) throws Exception { System.out.println(new String(URI.create(System.getenv("U")).toURL().openStream().readAllBytes())); } }`;
const GO = `package main
import ("fmt"; "io"; "net/http"; "os")
func main() { r, e := http.Get(os.Getenv("U")); if e != nil { fmt.Println(e); os.Exit(1) }; b, _ := io.ReadAll(r.Body); fmt.Println(string(b)) }`;

/** Against a libc that asks names in its own way, and is in the program. */
const MUSL = `#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>
int main(void) {
  struct addrinfo hints = {0, AF_UNSPEC, SOCK_STREAM}, *found;
  if (getaddrinfo(getenv("HOST"), getenv("PORT"), &hints, &found)) return 1;
  int fd = socket(found->ai_family, SOCK_STREAM, 0);
  if (connect(fd, found->ai_addr, found->ai_addrlen)) return 2;
  write(fd, "GET / HTTP/1.0\\r\\n\\r\\n", 18);
  char text[4096]; int got;
  while ((got = read(fd, text, sizeof text)) > 0) write(1, text, got);
  return 0;
}`;

/** Programs, each with what it shows if it got through. */
const PROGRAMS: readonly (readonly [name: string, command: string, shows: string])[] = [
  ['curl', `curl -sS -m 10 ${URL_OF}/`, WORD],
  ['wget', `wget -q -T 10 -t 1 -O- ${URL_OF}/`, WORD],
  ['bash itself', `exec 3<>/dev/tcp/$HOST/$PORT; printf 'GET / HTTP/1.0\\r\\n\\r\\n' >&3; cat <&3`, WORD],
  ['git clone', `rm -rf clone && git clone -q ${URL_OF}/repository.git clone && cat clone/file`, WORD],
  [
    'npm install',
    `rm -rf project && mkdir project && cd project && echo '{}' >package.json && npm install --no-audit --no-fund --fetch-retries=0 --registry ${URL_OF}/ small && cat node_modules/small/index.js`,
    WORD,
  ],
  [
    'pip install',
    `rm -rf site; python3 -m pip --isolated install -q --retries 0 --no-deps --disable-pip-version-check --index-url ${URL_OF}/simple/ --trusted-host $HOST --target site small-thing; cat site/small_thing.py`,
    WORD,
  ],
  ['node fetch', `U=${URL_OF}/ node -e "$FETCH"`, WORD],
  ['node c-ares', 'node -e "$CARES"', WORD],
  [
    'python urllib',
    `U=${URL_OF}/ python3 -c 'import os, urllib.request as u; print(u.urlopen(os.environ["U"], timeout=10).read())'`,
    WORD,
  ],
  ['python asyncio', 'python3 -c "$ASYNCIO"', WORD],
  ['perl', 'perl -MIO::Socket::INET -e "$PERL"', WORD],
  ['go', `U=${URL_OF}/ ./get-go`, WORD],
  ['java', `U=${URL_OF}/ java -Xshare:auto -cp . Get`, WORD],
  [
    'ssh',
    `ssh -o BatchMode=yes -o StrictHostKeyChecking=no -o ConnectTimeout=10 -p $PORT $HOST true 2>&1; true`,
    'kex_exchange_identification',
  ],
  // Another protocol: that the server does not speak it is an answer of the server.
  ['redis-cli', `redis-cli -h $HOST -p $PORT ping 2>&1; true`, 'Protocol error'],
  ['busybox', `busybox nslookup $HOST && busybox wget -q -O- ${URL_OF}/`, WORD],
  ['musl', './get-musl', WORD],
  ['psql', `psql "host=$HOST port=$PORT connect_timeout=10" -c 'select 1' 2>&1; true`, 'server'],
];

function has(program: string): boolean {
  return process.env.PATH?.split(':').some((directory) => existsSync(join(directory, program))) === true;
}
/** Those that every machine of this project's tests has, and what else is there. */
const ALWAYS = [
  'curl',
  'bash itself',
  'git clone',
  'npm install',
  'node fetch',
  'node c-ares',
  'python urllib',
  'python asyncio',
  'perl',
];
const PROGRAM_OF: Readonly<Record<string, string>> = {
  'pip install': 'pip3',
  wget: 'wget',
  go: 'go',
  java: 'javac',
  ssh: 'ssh',
  psql: 'psql',
  musl: 'musl-gcc',
};
const there = PROGRAMS.filter(([name]) => ALWAYS.includes(name) || has(PROGRAM_OF[name] ?? name));

describe('real programs where the network is listed', () => {
  const root = mkdtempSync(join(realpathSync(tmpdir()), 'listed-network-'));
  const workspace = join(root, 'workspace');
  const files = join(root, 'files');
  let server: Server;
  let port = 0;
  let requests = 0;
  let sandbox: Sandbox;

  beforeAll(async () => {
    for (const directory of [workspace, files]) mkdirSync(directory);
    makeRepository(files);
    const tarball = makePackage(files);
    makeWheel(files);
    if (has('go')) {
      writeFileSync(join(root, 'get.go'), GO);
      execFileSync('go', ['build', '-o', join(workspace, 'get-go'), join(root, 'get.go')], {
        env: { ...process.env, GOFLAGS: '-mod=mod', GOCACHE: join(root, 'go'), CGO_ENABLED: '0' },
      });
    }
    if (has('musl-gcc')) {
      writeFileSync(join(root, 'get-musl.c'), MUSL);
      execFileSync('musl-gcc', ['-static', '-o', join(workspace, 'get-musl'), join(root, 'get-musl.c')]);
    }
    if (has('javac')) {
      writeFileSync(join(workspace, 'Get.java'), JAVA);
      execFileSync('javac', ['Get.java'], { cwd: workspace });
    }
    server = createServer((request, response) => {
      requests += 1;
      const path = decodeURIComponent(new URL(request.url ?? '/', 'http://x').pathname);
      if (path === '/small') {
        const dist = {
          tarball: `http://${request.headers.host}/small-1.0.0.tgz`,
          shasum: createHash('sha1').update(tarball).digest('hex'),
        };
        return response.end(
          JSON.stringify({
            name: 'small',
            'dist-tags': { latest: '1.0.0' },
            versions: { '1.0.0': { name: 'small', version: '1.0.0', dist } },
          }),
        );
      }
      if (path === '/simple/small-thing/') {
        response.setHeader('content-type', 'text/html');
        return response.end(
          '<a href="/small_thing-1.0-py3-none-any.whl">small_thing-1.0-py3-none-any.whl</a>',
        );
      }
      const file = join(files, path);
      if (path !== '/' && existsSync(file) && statSync(file).isFile())
        return response.end(readFileSync(file));
      if (path !== '/') response.statusCode = 404;
      return response.end(`${WORD}\n`);
    });
    await once(server.listen(0, ADDRESS), 'listening');
    const address = server.address();
    if (address === null || typeof address === 'string') throw new Error('no port');
    port = address.port;
    sandbox = await createSandbox({
      workspace,
      // The name may lead to that address, as it is listed; at this port it is reached by its name alone.
      net: [`${NAME}:${port}`, `${ADDRESS}:${port}`],
      env: { FETCH, CARES, ASYNCIO, PERL },
      gate: { lookup: async () => ({ addresses: [ADDRESS], ttl: 5 }) },
      policy: { unsafe: { unjudged_commands: true } },
    });
  }, 240_000);
  afterAll(async () => {
    await sandbox?.close();
    server?.close();
    rmSync(root, { recursive: true, force: true });
  });

  const run = (command: string, host: string): Promise<ExecutionResult> =>
    sandbox.run(command, { env: { HOST: host, PORT: String(port) }, timeout: 60_000 });

  it.each(there)(
    '%s reaches a host that is listed',
    async (_, command, shows) => {
      const before = requests;
      const result = await run(command, NAME);
      expect(result.stdout + result.stderr).toContain(shows);
      expect(result.connections).toContainEqual(
        expect.objectContaining({
          verdict: 'allowed',
          host: NAME,
          address: ADDRESS,
          port,
          // In the user's own network it is the address that opens a port.
          rule: `${ADDRESS}:${port}`,
        }),
      );
      if (shows === WORD) expect(requests).toBeGreaterThan(before);
    },
    120_000,
  );

  it.each(there)(
    '%s is told at once of a host that is not, and so is the user',
    async (_, command) => {
      const before = requests;
      const result = await run(command, UNLISTED);
      expect(result.stdout).not.toContain(WORD);
      expect(requests).toBe(before);
      expect(result.durationMs).toBeLessThan(50_000);
      expect(result.connections).toContainEqual(
        expect.objectContaining({
          verdict: 'refused',
          protocol: 'name',
          host: UNLISTED,
          error: 'NXDOMAIN',
          entry: UNLISTED,
        }),
      );
    },
    120_000,
  );
});

function makeRepository(files: string): void {
  const at = join(files, 'repository.git');
  const work = join(files, 'work');
  const git = (...words: readonly string[]) =>
    execFileSync(
      'git',
      ['-c', 'user.name=x', '-c', 'user.email=x@x', '-c', 'init.defaultBranch=main', ...words],
      { cwd: work, stdio: 'pipe' },
    );
  mkdirSync(work);
  writeFileSync(join(work, 'file'), `${WORD}\n`);
  git('init', '-q');
  git('add', '.');
  git('commit', '-qm', 'first');
  git('clone', '-q', '--bare', '.', at);
  execFileSync('git', ['update-server-info'], { cwd: at });
}

function makePackage(files: string): Buffer {
  mkdirSync(join(files, 'package'));
  writeFileSync(join(files, 'package/package.json'), '{"name":"small","version":"1.0.0","main":"index.js"}');
  writeFileSync(join(files, 'package/index.js'), `// ${WORD}\n`);
  execFileSync('tar', ['czf', 'small-1.0.0.tgz', 'package'], { cwd: files });
  return readFileSync(join(files, 'small-1.0.0.tgz'));
}

function makeWheel(files: string): void {
  const program = `
import zipfile
with zipfile.ZipFile('small_thing-1.0-py3-none-any.whl', 'w') as wheel:
    wheel.writestr('small_thing.py', '# ${WORD}\\n')
    wheel.writestr('small_thing-1.0.dist-info/METADATA', 'Metadata-Version: 2.1\\nName: small-thing\\nVersion: 1.0\\n')
    wheel.writestr('small_thing-1.0.dist-info/WHEEL', 'Wheel-Version: 1.0\\nGenerator: x\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n')
    wheel.writestr('small_thing-1.0.dist-info/RECORD', '')
`;
  execFileSync('python3', ['-c', program], { cwd: files });
}
