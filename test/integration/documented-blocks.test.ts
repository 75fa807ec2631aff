import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import {
  chmodSync,
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { stripVTControlCharacters } from 'node:util';
import { execa } from 'execa';
import { parse } from 'smol-toml';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createSandbox, messageForModel } from '../../src/index.ts';
import { blocksOf, type DocumentedBlock, documentedBlocks, linesOf } from '../support/documented-blocks.ts';
import { eventually } from '../support/eventually.ts';
import { processesWith } from '../support/leftovers.ts';
import { lacks } from '../support/programs.ts';
import { HOST } from '../support/tiers.ts';
import { NOT_RUN, SNIPPETS, TREATED, type Treatment } from './documented-treatments.ts';

// Every block of README.md and docs/ is run, read or checked as it is written there. What cannot be stands in a table with its
// reason; what is in no table is tried, so that a new block has to work.

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const MOST_MS = 120_000;
const BLOCKS = documentedBlocks();
const title = ({ page, line, language }: DocumentedBlock) => `${page}:${line} ${language}`;
const ofLanguage = (pattern: RegExp) => BLOCKS.filter(({ language }) => pattern.test(language));

const worlds: World[] = [];
const base = realpathSync(mkdtempSync(join(tmpdir(), 'documented-')));
const bin = join(base, 'bin');
const registry = createServer((request, response) => {
  const address = `http://localhost:${(registry.address() as AddressInfo).port}`;
  const tarball = readFileSync(join(base, 'tiny.tgz'));
  if (request.url === '/tiny') {
    const integrity = `sha512-${createHash('sha512').update(tarball).digest('base64')}`;
    const dist = { tarball: `${address}/tiny.tgz`, integrity };
    const versions = { '1.0.0': { name: 'tiny', version: '1.0.0', dist } };
    response.end(JSON.stringify({ name: 'tiny', 'dist-tags': { latest: '1.0.0' }, versions }));
  } else if (request.url === '/tiny.tgz') response.end(tarball);
  else if (request.url === '/v1') response.end('hello\n');
  else response.writeHead(404).end('{}');
});
let port = 0;

beforeAll(async () => {
  if (!existsSync(join(ROOT, 'dist/cli.cjs')))
    throw new Error('dist/ is missing: run `npm run build:ts` first');
  mkdirSync(bin);
  symlinkSync(join(ROOT, 'dist/cli.cjs'), join(bin, 'sandbox-run'));
  symlinkSync(join(ROOT, 'dist/sandbox-sh.cjs'), join(bin, 'sandbox-sh'));
  writeFileSync(join(bin, 'my-agent'), '#!/bin/sh\nexec "$SHELL" -c "echo hello"\n', { mode: 0o755 });
  mkdirSync(join(base, 'package'));
  mkdirSync(join(base, 'man/man1'), { recursive: true });
  symlinkSync(join(ROOT, 'man/sandbox-run.1'), join(base, 'man/man1/sandbox-run.1'));
  writeFileSync(join(base, 'package/package.json'), '{"name":"tiny","version":"1.0.0"}');
  execFileSync('tar', ['-C', base, '-czf', join(base, 'tiny.tgz'), 'package']);
  await once(registry.listen(0, '127.0.0.1'), 'listening');
  port = (registry.address() as AddressInfo).port;
});
afterAll(() => {
  registry.close();
  for (const world of worlds) world.dispose();
  rmSync(base, { recursive: true, force: true });
});

/** A user with a project, as the pages presuppose it: `~/project`, in which all lines run. */
class World {
  readonly root = mkdtempSync(join(base, 'w-'));
  readonly home = join(this.root, 'home');
  readonly project = join(this.home, 'project');
  // Not in /tmp, of which commands have one of their own.
  readonly site = mkdtempSync('/var/tmp/documented-');
  readonly variables: Record<string, string>;

  constructor() {
    for (const name of ['src', 'packages/core', 'node_modules/.bin', '../.ssh'])
      mkdirSync(join(this.project, name), { recursive: true });
    writeFileSync(join(this.home, '.ssh/id_ed25519'), 'a key\n');
    for (const directory of [join(this.root, 'tmp'), join(this.home, 'data/keys'), join(this.root, 'run')])
      mkdirSync(directory, { recursive: true, mode: 0o700 });
    const write = (name: string, text: string) => writeFileSync(join(this.project, name), text);
    const dev = `node -e "require('node:http').createServer((_, r) => r.end('hello')).listen(5173, '127.0.0.1')"`;
    const scripts = {
      test: 'node -e "console.log(1)"',
      watch: 'echo watching',
      dev,
      serve: 'echo',
      start: 'echo',
      preview: 'echo',
    };
    write(
      'package.json',
      JSON.stringify({ name: 'p', version: '1.0.0', scripts, dependencies: { tiny: '1.0.0' } }),
    );
    write('.npmrc', `registry=http://localhost:${port}/\naudit=false\nfund=false\nupdate-notifier=false\n`);
    write('Makefile', `all:\n\techo made\ntest:\n\techo tested\n`);
    write('train.py', 'print("trained")\n');
    write('package-lock.json', '{"name":"p","lockfileVersion":3,"packages":{}}');
    write('src/Makefile', 'all:\n\techo compiled\n');
    write('src/main.js', '// TODO: more\n');
    write('.env', 'KEY=value\n');
    write('.gitignore', 'node_modules\n.env\n');
    write('commands.jsonl', '{"command":"ls"}\n{"command":"git clean -fdx"}\n');
    this.variables = {
      PATH: [bin, dirname(process.execPath), '/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin'].join(':'),
      HOME: this.home,
      TMPDIR: join(this.root, 'tmp'),
      XDG_RUNTIME_DIR: join(this.root, 'run'),
      MANPATH: join(base, 'man'),
      TERM: 'xterm',
      LANG: 'C.UTF-8',
    };
    const git = (...args: string[]) =>
      execFileSync('git', ['-c', 'user.name=a', '-c', 'user.email=a@b', ...args], {
        cwd: this.project,
        env: this.variables,
        stdio: 'pipe',
      });
    worlds.push(this);
    git('init', '-q');
    git('add', '.');
    git('commit', '-qm', 'first');
    write('notes', 'mine\n');
  }

  dispose(): void {
    for (const directory of [this.root, this.site]) rmSync(directory, { recursive: true, force: true });
  }

  /** What stands for a place, a host or an id of the user's in a page. */
  filledIn(text: string): string {
    return (
      text
        .replaceAll('/home/me/project', this.project)
        .replaceAll('/home/me', this.home)
        .replaceAll('/path/to/project', this.project)
        .replaceAll('/srv/site', this.site)
        .replaceAll('--net @npm -- npm', `--net @npm --net localhost:${port} -- npm`)
        .replaceAll('--preview -- npm install', `--net localhost:${port} --preview -- npm install`)
        // Others may have the ports that a page names.
        .replaceAll(/--publish (?:\d+:)?(\d+) /g, '--publish 0:$1 ')
        .replaceAll('/run/agent', join(this.root, 'run'))
        .replaceAll(
          'api.example.org -- curl https://api.example.org/v1',
          `localhost:${port} -- curl -sS http://localhost:${port}/v1`,
        )
    );
  }

  start(line: string, shell = 'bash') {
    const options = ['bash', 'zsh'].includes(shell) ? (shell === 'zsh' ? ['-f'] : ['--norc']) : [];
    return execa(shell, [...options, '-c', line], {
      cwd: this.project,
      env: this.variables,
      extendEnv: false,
      stdin: 'ignore',
      reject: false,
      all: true,
      timeout: MOST_MS,
    });
  }
}

/** Runs one line as its treatment says; what it printed. */
async function runLine(world: World, line: string, treatment: Treatment): Promise<string> {
  const { before, status = 0, shell, terminal, serves, approved } = treatment;
  before?.(world.project, world.site);
  const [, variable, inner] = /^(\w+)=\$\((.*)\)$/.exec(line) ?? [];
  const command = shell === 'zsh' ? `autoload -U compinit; compinit -uD; ${line}` : (inner ?? line);
  const started = world.start(
    terminal === true
      ? `script -qec ${quoted(command)} /dev/null <<< exit`
      : `${serves === undefined ? '' : 'exec '}${command}`,
    shell,
  );
  if (serves !== undefined) {
    let printed = '';
    started.all?.on('data', (bytes) => {
      printed += bytes;
    });
    try {
      await eventually(() => expect(printed).toMatch(serves));
    } finally {
      started.kill('SIGTERM');
      await started;
    }
    return printed;
  }
  if (approved === true) {
    const waiting = async () => (await world.start('sandbox-run approvals list --json')).stdout;
    await eventually(async () => expect(await waiting()).toMatch(/"id"/));
    const [, id] = /"id":"([^"]+)"/.exec(await waiting()) ?? [];
    expect((await world.start(`sandbox-run approvals approve ${id} --scope once`)).exitCode).toBe(0);
  }
  const { exitCode, all, stdout } = await started;
  expect({ line, exitCode, all }).toEqual({ line, exitCode: status, all });
  if (variable !== undefined) world.variables[variable] = stdout.trim();
  return all ?? '';
}

/** What is shown to a model. */
async function messageOf(world: World, command: string): Promise<string> {
  const sandbox = await createSandbox({ workspace: world.project });
  try {
    return messageForModel(await sandbox.run(command), sandbox.plan) ?? '';
  } finally {
    await sandbox.close();
  }
}

const quoted = (text: string) => `'${text.replaceAll("'", "'\\''")}'`;

/** A line that is printed, in kind: numbers and ids differ, and it may go on. `...` stands for any lines. */
const inKind = (line: string) =>
  new RegExp(
    `^${line
      .trimEnd()
      .replaceAll(/[.*+?^${}()|[\]\\]/g, '\\$&')
      .replaceAll(/\d{8}-\d{6}-[0-9a-f]{6}/g, '\\S+')
      .replaceAll(/\d+(?:\\\.\d+)?/g, '[\\d.]+')}`,
  );

function expectInKind(output: string, expected: readonly string[]): void {
  const lines = stripVTControlCharacters(output).split(/\r?\n/);
  let at = 0;
  for (const line of expected) {
    if (line.trim() === '...') continue;
    const found = lines.findIndex((one, index) => index >= at && inKind(line).test(one));
    expect({ line, found: found >= 0, output }).toEqual({ line, found: true, output });
    at = found + 1;
  }
}

describe('lines for a shell', () => {
  it.each(ofLanguage(/^(?:sh|bash|console)$/).map((block) => [title(block), block] as const))(
    '%s',
    async (_, block) => {
      const world = new World();
      let id: string | undefined;
      try {
        for (const { command, output } of linesOf(block)) {
          const treatment = TREATED[command] ?? {};
          if (NOT_RUN[command] !== undefined) continue;
          if (!HOST.namespaces && treatment.namespaces === true) break;
          // It would change the machine of whoever runs the tests.
          expect(command).not.toMatch(/\b(?:sudo|apt|apt-get|docker|systemctl)\b/);
          if (treatment.needs !== undefined && lacks(treatment.needs)) continue;
          const line = world.filledIn(command).replaceAll(/\d{8}-\d{6}-[0-9a-f]{6}/g, (all) => id ?? all);
          const printed = await runLine(world, line, treatment);
          id ??= /\d{8}-\d{6}-[0-9a-f]{6}/.exec(printed)?.[0];
          expectInKind(
            printed,
            output.map((one) => world.filledIn(one)),
          );
        }
      } finally {
        // Shells that the lines of a page leave open.
        const { stdout } = await world.start('sandbox-run session list --json');
        for (const [, id] of stdout.matchAll(/"id":"([0-9a-f]+)"/g))
          expect(await world.start(`sandbox-run session stop ${id}`)).toMatchObject({ exitCode: 0 });
        // A server that was told to stop may still be writing what it keeps.
        await eventually(() => expect(processesWith(world.root)).toEqual([]));
        world.dispose();
      }
    },
    5 * MOST_MS,
  );
});

describe('settings', () => {
  it.each(ofLanguage(/^toml$/).map((block) => [title(block), block] as const))('%s', async (_, block) => {
    const notOurs =
      SNIPPETS[title(block)] ?? Object.entries(SNIPPETS).find(([text]) => block.text.includes(text))?.[1];
    if (notOurs?.keys !== undefined) {
      expect(Object.keys(parse(block.text))).toEqual(notOurs.keys);
      return;
    }
    const world = new World();
    const file = join(world.root, 'policy.toml');
    writeFileSync(file, block.text, { mode: 0o600 });
    const { exitCode, all } = await world.start(`sandbox-run policy validate ${file}`);
    expect({ exitCode, all }).toEqual({ exitCode: 0, all: `${file}: valid` });
  });

  const isNotRun = ({ text }: { readonly text: string }) =>
    Object.entries(SNIPPETS).some(([part, { run }]) => run === false && text.includes(part));
  const servers = ofLanguage(/^(?:json|ya?ml)$/).filter((block) => !isNotRun(block));
  it.each(servers.map((block) => [title(block), block] as const))(
    '%s starts a server that answers',
    async (_, block) => {
      const world = new World();
      symlinkSync(join(bin, 'sandbox-run'), join(world.project, 'node_modules/.bin/sandbox-run'));
      const { mcpServers } = JSON.parse(world.filledIn(block.text)) as {
        readonly mcpServers: Readonly<
          Record<string, { readonly command: string; readonly args: readonly string[] }>
        >;
      };
      const [server] = Object.values(mcpServers);
      if (server === undefined) throw new Error('no server');
      const params = {
        protocolVersion: '2025-06-18',
        capabilities: {},
        clientInfo: { name: 'a', version: '1' },
      };
      const input = `${JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'initialize', params })}\n`;
      const { stdout } = await execa(server.command, server.args, {
        ...{ cwd: world.project, env: world.variables, extendEnv: false, reject: false, input },
      });
      expect(JSON.parse(stdout.split('\n')[0] ?? '')).toMatchObject({
        id: 1,
        result: { serverInfo: { name: 'sandbox-run' } },
      });
    },
    MOST_MS,
  );
});

describe('code', () => {
  const snippetOf = (block: DocumentedBlock) =>
    Object.entries(SNIPPETS).find(([text]) => block.text.includes(text))?.[1];

  /** A directory with the package and what may be installed beside it. */
  function projectOf(world: World): string {
    const modules = join(world.root, 'node_modules');
    mkdirSync(modules);
    for (const name of readdirSync(join(ROOT, 'node_modules')))
      if (!name.startsWith('.')) symlinkSync(join(ROOT, 'node_modules', name), join(modules, name));
    symlinkSync(ROOT, join(modules, 'sandbox-run'));
    return world.root;
  }

  it.each(ofLanguage(/^(?:ts|js|mjs|typescript|javascript)$/).map((block) => [title(block), block] as const))(
    '%s has the types of the package, and runs',
    async (_, block) => {
      const world = new World();
      const directory = projectOf(world);
      const { before = '', after = '', run = true } = snippetOf(block) ?? {};
      const imports = block.text.match(/^import .*$/gm)?.join('\n') ?? '';
      const body = world.filledIn(block.text.replaceAll(/^import .*$/gm, ''));
      const [declared = '', ...rest] = before.split('---\n');
      const source = `${imports}\n${declared}\n${world.filledIn(rest.join(''))}\n${body}\n${after}\nexport {};\n`;
      const file = join(directory, 'snippet.ts');
      writeFileSync(file, source);
      writeFileSync(join(directory, 'package.json'), '{"type":"module"}');
      const options = [
        ...['--noEmit', '--strict', '--skipLibCheck', '--target', 'esnext', '--module', 'nodenext'],
        ...['--lib', 'esnext', '--types', 'node'],
      ];
      const types = await execa(
        process.execPath,
        [join(ROOT, 'node_modules/typescript/bin/tsc'), ...options, file],
        {
          ...{ cwd: directory, reject: false, all: true },
        },
      );
      expect({ all: types.all, source }).toEqual({ all: '', source });
      if (!run) return;
      const { build } = await import('esbuild');
      const outfile = join(directory, 'snippet.mjs');
      await build({
        entryPoints: [file],
        outfile,
        format: 'esm',
        target: 'node20',
        supported: { using: false },
      });
      const { exitCode, all } = await execa(process.execPath, [outfile], {
        ...{
          cwd: world.project,
          env: world.variables,
          extendEnv: false,
          reject: false,
          all: true,
          timeout: MOST_MS,
        },
      });
      expect({ exitCode, all }).toEqual({ exitCode: 0, all });
    },
    2 * MOST_MS,
  );

  it.each(ofLanguage(/^python$/).map((block) => [title(block), block] as const))(
    '%s runs',
    async (_, block) => {
      const world = new World();
      const file = join(world.root, 'snippet.py');
      cpSync(join(ROOT, 'examples/python/sandbox_run.py'), join(world.root, 'sandbox_run.py'));
      writeFileSync(file, world.filledIn(block.text));
      const { exitCode, all } = await world.start(`python3 -B ${file}`);
      expect({ exitCode, all }).toEqual({ exitCode: 0, all });
      expect(all).toContain('tested');
    },
    MOST_MS,
  );
});

describe('what a model is told', () => {
  const told = BLOCKS.flatMap((block) => {
    const snippet = Object.entries(SNIPPETS).find(([text]) => block.text.includes(text))?.[1];
    return snippet?.command === undefined ? [] : [[title(block), block, snippet.command] as const];
  });

  it.each(told)('%s', async (_, block, command) => {
    const world = new World();
    const lines = block.text.split('\n').filter((line) => line !== '');
    const expected = lines.map((line) => line.replaceAll('/work', world.project).split('…')[0] ?? '');
    expectInKind(await messageOf(world, command), expected);
  });
});

it('every block is of a language that is tried, or stands in the table', () => {
  const tried = /^(?:sh|bash|console|toml|json|ya?ml|ts|js|mjs|typescript|javascript|python)$/;
  const unknown = BLOCKS.filter(
    (block) =>
      !tried.test(block.language) && !Object.keys(SNIPPETS).some((text) => block.text.includes(text)),
  );
  expect(unknown.map(title)).toEqual([]);
});

it('the tables speak of what is there', () => {
  const commands = new Set(BLOCKS.flatMap((block) => linesOf(block).map(({ command }) => command)));
  const gone = [...Object.keys(TREATED), ...Object.keys(NOT_RUN)].filter((one) => !commands.has(one));
  const goneSnippets = Object.keys(SNIPPETS).filter(
    (text) => !BLOCKS.some((block) => block.text.includes(text)),
  );
  expect([...gone, ...goneSnippets]).toEqual([]);
});

it('a block that fails is found', async () => {
  const [block] = blocksOf('page.md', '- a list\n\n  ```sh\n  false   # no\n  ```\n');
  expect(block).toMatchObject({ language: 'sh', line: 3 });
  await expect(
    runLine(new World(), linesOf(block as DocumentedBlock)[0]?.command ?? '', {}),
  ).rejects.toThrow();
  expect(() => expectInKind('2 created', ['1 changed'])).toThrow();
  expect(() => blocksOf('page.md', '```sh\ntrue\n')).toThrow(/page\.md:1/);
  chmodSync(bin, 0o755);
});
