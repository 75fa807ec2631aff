import { execFileSync } from 'node:child_process';
import {
  chmodSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { createServer, type Server } from 'node:http';
import { join } from 'node:path';
import { parse } from 'smol-toml';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { isBeneath } from '../../src/base/absolute-path.ts';
import type { PolicyFile } from '../../src/model/index.ts';
import { HOST } from '../support/tiers.ts';
import { cli } from './support.ts';

const PATIENCE = 120_000;

/** Files of a project and of what lies beside it, by path; `run` is what a developer types. */
interface Project {
  readonly inside: Readonly<Record<string, string>>;
  readonly outside?: Readonly<Record<string, string>>;
  /** `$O` is the directory outside, `$PORT` a service of this machine. */
  readonly run: string;
  /** What the policy must have, and what is too much. */
  readonly needs: readonly string[];
}

const PROJECTS: Readonly<Record<string, Project>> = {
  'make with shared sources': {
    inside: { Makefile: 'all:\n\tcat $(O)/parts/* > out\n\ttest "$$(cat out)" = abc\n' },
    outside: { 'parts/1': 'a', 'parts/2': 'b', 'parts/3': 'c' },
    run: 'make',
    needs: ['"$O/parts"'],
  },
  'C with headers elsewhere': {
    inside: { 'main.c': '#include "own.h"\nint main(void) { return ANSWER - 42; }\n' },
    outside: { 'include/own.h': '#define ANSWER 42\n' },
    run: 'gcc -I$O/include -o main main.c && ./main',
    needs: ['"$O/include"'],
  },
  'python with fixtures elsewhere': {
    inside: {
      'test_it.py':
        'import os, unittest\nclass T(unittest.TestCase):\n  def test(self):\n    self.assertEqual(open(os.environ["O"] + "/fixture.txt").read(), "yes")\n',
    },
    outside: { 'fixture.txt': 'yes' },
    run: 'python3 -m unittest -q test_it',
    needs: ['"$O/fixture.txt"'],
  },
  'npm script that writes a report': {
    inside: {
      'package.json': '{"name":"a","version":"1.0.0","scripts":{"report":"node report.js"}}',
      'report.js': 'require("fs").writeFileSync(process.env.O + "/reports/new.txt", "x")',
    },
    outside: { 'reports/old.txt': '' },
    run: 'npm run --silent report',
    needs: ['"$O/reports"'],
  },
  'git with a repository beside it': {
    inside: {},
    outside: {},
    run: 'git clone -q $O/repo.git copy && test -d copy/.git',
    needs: ['"$O/repo.git"'],
  },
  'a tool that is installed elsewhere': {
    inside: {},
    outside: { 'bin/tool': '#!/bin/sh\necho works > result\n' },
    run: '$O/bin/tool && test -s result',
    needs: ['"$O/bin/tool"'],
  },
  'a backup into another directory': {
    inside: { 'data/a': 'x' },
    outside: { 'backups/.keep': '' },
    run: 'tar czf $O/backups/data.tgz data',
    needs: ['"$O/backups"'],
  },
  'settings by a link': {
    inside: {},
    outside: { 'settings/app.ini': 'key=1\n' },
    run: 'ln -sfn $O/settings/app.ini app.ini; grep -q key=1 app.ini',
    needs: ['"$O/settings/app.ini"'],
  },
  'a log that is written on': {
    inside: {},
    outside: { 'app.log': 'begin\n' },
    run: 'echo more >> $O/app.log && echo again >> $O/app.log',
    needs: ['"$O/app.log"'],
  },
  'a file by a long way round': {
    inside: { 'packages/a/x': '' },
    outside: { 'mono/package.json': '{}' },
    run: 'cat packages/a/../../../outside/mono//./package.json',
    needs: ['"$O/mono/package.json"'],
  },
  'a file behind a link, and back': {
    inside: {},
    outside: { 'far/in/x': 'x', 'far/y': 'y' },
    run: 'ln -sfn $O/far/in link; cat link/x link/../y',
    needs: ['"$O/far/in/x"', '"$O/far/y"'],
  },
  'files of one project': {
    inside: {},
    outside: { 'mono/package.json': '{}', 'mono/a/one.txt': '1', 'mono/b/c/two.txt': '2', 'mono/other': '' },
    run: 'cat $O/mono/package.json $O/mono/a/one.txt $O/mono/b/c/two.txt',
    needs: ['"$O/mono"'],
  },
  'a word list in the home': {
    inside: {},
    outside: { '../home/lib/words': 'a' },
    run: 'grep -q a ../home/lib/../lib/words',
    needs: ['"~/lib/words"'],
  },
  'npm ci with a registry of this machine': {
    inside: {
      'package.json': '{"name":"a","version":"1.0.0","dependencies":{"tiny":"1.0.0"}}',
      'package-lock.json':
        '{"name":"a","version":"1.0.0","lockfileVersion":3,"packages":{"":{"name":"a","version":"1.0.0","dependencies":{"tiny":"1.0.0"}},"node_modules/tiny":{"version":"1.0.0","resolved":"http://localhost:$PORT/tiny.tgz"}}}',
      '.npmrc': 'registry=http://localhost:$PORT/\naudit=false\nfetch-retries=0\nupdate-notifier=false\n',
    },
    run: 'npm ci && test -f node_modules/tiny/package.json',
    needs: ['"localhost:$PORT"'],
  },
  'tests that start a server': {
    inside: {
      'it.test.js': [
        "const { createServer, get } = require('node:http');",
        "const answer = require('node:fs').readFileSync(process.env.O + '/answer');",
        "require('node:test')('it', (_, done) => {",
        '  const server = createServer((_, response) => response.end(answer)).listen(0, () =>',
        '    get({ port: server.address().port, agent: false }, (response) =>',
        "      response.on('data', (bytes) => require('node:assert').equal(String(bytes), 'yes')).on('end', () => server.close(done))));",
        '});',
      ].join('\n'),
    },
    outside: { answer: 'yes' },
    run: 'node --test',
    needs: ['"$O/answer"'],
  },
  'a service of this machine': {
    inside: {
      'ask.py':
        'import os, urllib.request\nprint(urllib.request.urlopen("http://localhost:" + os.environ["PORT"]).read())\n',
    },
    run: 'python3 ask.py',
    needs: ['"localhost:$PORT"'],
  },
};

// Without namespaces nothing hides what is outside, and the network of a learned policy needs a supervisor anyway.
describe.runIf(HOST.namespaces && HOST.signalScope)('sandbox-run learn', () => {
  let root: string;
  let workspace: string;
  let outside: string;
  let server: Server;
  let port: number;

  beforeAll(async () => {
    const packed = mkdtempSync('/var/tmp/learn-package-');
    mkdirSync(join(packed, 'package'));
    writeFileSync(join(packed, 'package/package.json'), '{"name":"tiny","version":"1.0.0"}');
    const tarball = execFileSync('tar', ['-C', packed, '-cz', 'package']);
    rmSync(packed, { recursive: true });
    server = createServer(({ url }, response) => response.end(url === '/tiny.tgz' ? tarball : 'hello'));
    await new Promise<void>((done) => server.listen(0, '127.0.0.1', done));
    const address = server.address();
    port = typeof address === 'object' && address !== null ? address.port : 0;
  });
  afterAll(() => server.close());
  beforeEach(() => {
    root = realpathSync(mkdtempSync('/var/tmp/learn-'));
    workspace = join(root, 'workspace');
    outside = join(root, 'outside');
    mkdirSync(workspace);
    mkdirSync(outside);
  });
  afterEach(() => rmSync(root, { recursive: true, force: true }));

  const cliWith = (env: Readonly<Record<string, string>>, ...args: readonly string[]) =>
    cli(
      {
        workspace,
        env: {
          ...{ PATH: process.env.PATH ?? '', HOME: join(root, 'home') },
          ...{ XDG_STATE_HOME: join(root, 'state'), XDG_CONFIG_HOME: join(root, 'config') },
          ...env,
        },
      },
      args,
      { input: '' },
    );
  const call = (...args: readonly string[]) => cliWith({}, ...args);
  const vars = () => ['--env', `O=${outside}`, '--env', `PORT=${port}`];

  function make({ inside, outside: beside = {} }: Project): void {
    rmSync(workspace, { recursive: true, force: true });
    rmSync(outside, { recursive: true, force: true });
    for (const [directory, files] of [
      [workspace, inside],
      [outside, beside],
    ] as const) {
      mkdirSync(directory, { recursive: true });
      for (const [path, content] of Object.entries(files)) {
        mkdirSync(join(directory, path, '..'), { recursive: true });
        writeFileSync(join(directory, path), filled(content));
        if (content.startsWith('#!')) chmodSync(join(directory, path), 0o755);
      }
    }
    execFileSync('git', ['init', '-q', '--bare', join(outside, 'repo.git')]);
    // Nobody needs these.
    for (const path of [
      'outside/decoy',
      'outside/decoys/a',
      'other/decoy',
      'home/notes',
      'home/.ssh/id_ed25519',
    ]) {
      mkdirSync(join(root, path, '..'), { recursive: true });
      writeFileSync(join(root, path), 'x');
    }
  }

  /** Files outside of the workspace that a command can use under a policy. */
  async function opened(policy: string): Promise<readonly string[]> {
    const all = readdirSync(root, { recursive: true, withFileTypes: true, encoding: 'utf8' })
      .filter((entry) => entry.isFile())
      .map((entry) => join(entry.parentPath, entry.name))
      .filter((path) => !isBeneath(path, workspace) && !isBeneath(path, join(root, 'state')));
    writeFileSync(join(workspace, 'list'), `${all.join('\n')}\n`);
    const script =
      'while IFS= read -r path; do if { : < "$path"; } 2> /dev/null || [ -w "$path" ]; then echo "$path"; fi; done < list';
    const { stdout } = await call('--policy', policy, '-c', script);
    return stdout.split('\n').filter((line) => line !== '');
  }

  const filled = (text: string) => text.replaceAll('$O', outside).replaceAll('$PORT', String(port));

  it.each(Object.entries(PROJECTS))(
    'proposes what is needed and no more: %s',
    async (_, project) => {
      make(project);
      const policy = join(root, 'policy.toml');
      // A command that needs something fails without it.
      const before = await call(
        ...vars(),
        '--policy',
        unjudged(root),
        '--explain',
        'never',
        '-c',
        project.run,
      );
      expect([before.exitCode === 0, before.stderr]).toEqual([false, expect.anything()]);
      const learned = await call('learn', '--yes', '--output', policy, ...vars(), '-c', project.run);
      expect([learned.exitCode, learned.stderr]).toEqual([0, expect.stringContaining('the policy is in')]);
      const text = readFileSync(policy, 'utf8');
      const { filesystem, network, limits } = parse(text) as PolicyFile;
      const proposed = [...(filesystem?.read ?? []), ...(filesystem?.write ?? []), ...(network?.allow ?? [])];
      const needed = project.needs.map((need) => filled(need).slice(1, -1));
      expect([proposed.toSorted(), network?.unix, limits]).toEqual([needed.toSorted(), undefined, undefined]);
      // Anew, under that policy and no other: nothing is denied.
      make(project);
      const again = await call('--json', ...vars(), '--policy', both(root, text), '-c', project.run);
      const result = JSON.parse(again.stdout);
      expect([result.exitCode, result.denials, result.stderr]).toEqual([0, undefined, expect.anything()]);
      const inNeeds = (path: string) =>
        needed.some((need) => isBeneath(path, need.replace(/^~/, join(root, 'home'))));
      const isOpen = await opened(both(root, text));
      expect(isOpen.filter((path) => !inNeeds(path))).toEqual([]);
      // The look would find what is open.
      expect(isOpen.length > 0).toBe(
        needed.some((need) => !need.startsWith('localhost') && filesHere(need, join(root, 'home'))),
      );
      // And learned from again it is the same.
      make(project);
      await call('learn', '--yes', '--policy', policy, '--output', policy, ...vars(), '-c', project.run);
      expect(readFileSync(policy, 'utf8')).toBe(text);
    },
    PATIENCE,
  );

  it('proposes from a run that was allowed everything what it used', { timeout: PATIENCE }, async () => {
    const project = PROJECTS['make with shared sources'] as Project;
    make(project);
    const { stdout, stderr, exitCode } = await call('learn', '--unconfined', ...vars(), '--', 'make');
    expect([exitCode, stderr]).toEqual([0, expect.stringContaining('UNCONFINED')]);
    expect(stdout).toContain(`"${outside}/parts"`);
    expect(stdout).not.toContain('node_modules');
  });

  it('never proposes secrets, sockets or a whole home', { timeout: PATIENCE }, async () => {
    make({ inside: {}, outside: { 'id_rsa.pem': 'key', 'secret/a': 'x' }, run: '', needs: [] });
    const file = join(root, 'mine.toml');
    writeFileSync(file, `[filesystem]\nsecret = ["${outside}/secret"]\n`);
    const script =
      'cat $O/id_rsa.pem; cat $O/secret/a; cat ~root/.bashrc; touch /var/x; echo x >> /etc/ld.so.cache; false';
    const output = join(root, 'policy.toml');
    const options = ['--yes', '--policy', file, '--output', output, ...vars()];
    const { stderr } = await call('learn', ...options, '-c', script);
    expect(stderr).toContain('--unconfined learns from a run that you trust');
    const [head = '', leftOut = ''] = readFileSync(output, 'utf8').split('# Denied, and not proposed:');
    const proposed = head.replace(/^#.*$/gm, '');
    expect(proposed).not.toMatch(/id_rsa|secret|"\/root"|"\/var"|"\/etc/);
    expect(leftOut).toMatch(/secret/);
    if (process.getuid?.() === 0) expect(leftOut).toMatch(/write \/etc\/ld\.so\.cache/);
  });

  it('proposes no file and no directory that holds secrets or sockets, or that the user’s programs obey', {
    timeout: PATIENCE,
  }, async () => {
    const home = join(root, 'home');
    const settings = ['.npmrc', '.bashrc', '.config/a', '.config/b', '.config/c', '.config/gh/hosts.yml'];
    make({
      inside: {},
      outside: {
        'mixed/secret/a': 'x',
        'run/a': 'x',
        ...Object.fromEntries(settings.map((name) => [`../home/${name}`, 'x\n'])),
      },
      run: '',
      needs: [],
    });
    // In a tree in which one has to look for it.
    mkdirSync(join(outside, 'run/many'));
    for (let at = 0; at < 12_000; at += 1) writeFileSync(join(outside, 'run/many', `${at}`), '');
    mkdirSync(join(outside, 'run/many/deep'));
    const daemon = createServer().listen(join(outside, 'run/many/deep/bus'));
    const file = join(root, 'mine.toml');
    writeFileSync(file, `[filesystem]\nsecret = ["${outside}/mixed/secret"]\n`);
    const script =
      'cat $H/.npmrc $H/.config/gh/hosts.yml $H/.config/a $H/.config/b $H/.config/c; ls $O/mixed; ls $O/run; echo x >> $H/.bashrc; false';
    const options = ['--yes', '--policy', file, ...vars(), '--env', `H=${home}`];
    const { stdout } = await cliWith({ HOME: home }, 'learn', ...options, '-c', script);
    daemon.close();
    const [head = '', leftOut = ''] = stdout.split('# Denied, and not proposed:');
    const proposed = [...head.matchAll(/^ {2}"(.*)",/gm)].map(([, path]) => path);
    expect(proposed).toEqual(['a', 'b', 'c'].map((name) => `~/.config/${name}`));
    // What is carried in, and what is written to a home of the command's own, is not denied.
    for (const left of ['home/.config/gh/hosts.yml', 'outside/mixed', 'outside/run'])
      expect(leftOut).toContain(`${join(root, left)} (`);
  });

  it('writes names that are not shown, or not as they are, so that TOML and a terminal bear them', {
    timeout: PATIENCE,
  }, async () => {
    const odd = `odd \u009b31m\u007f "\u202e \u{e0001}`;
    make({ inside: {}, outside: { [odd]: 'x' }, run: '', needs: [] });
    const { stdout } = await call(
      'learn',
      '--yes',
      ...vars(),
      '-c',
      'cat "$O/$N" > out',
      '--env',
      `N=${odd}`,
    );
    expect(stdout).not.toMatch(/(?!\n)[\p{Cc}\p{Cf}]/u);
    expect(parse(stdout)).toMatchObject({ filesystem: { read: [join(outside, odd)] } });
  });

  it('writes the limits that somebody asked for, and no others', { timeout: PATIENCE }, async () => {
    make({ inside: {}, outside: { a: '1' }, run: '', needs: [] });
    const asked = ['--timeout', '90', '--memory', '1G', ...vars(), '-c', 'cat $O/a > out'];
    const { stdout } = await call('learn', '--yes', ...asked);
    expect(parse(stdout).limits).toEqual({ timeout_seconds: 90, memory: 1024 ** 3 });
  });

  it('writes what its options allowed, in the same shape, so that the result is enough', {
    timeout: PATIENCE,
  }, async () => {
    make({ inside: {}, outside: { 'given.txt': 'x', 'kept/b': '' }, run: '', needs: [] });
    const given = [
      '--ro',
      `${workspace}/../outside/given.txt`,
      '--rw',
      `${outside}/./kept/`,
      '--net',
      'example.org:8443',
    ];
    const output = join(root, 'given.toml');
    const line = filled('cat $O/given.txt > $O/kept/a');
    expect(await call('learn', ...given, '--output', output, '-c', line)).toMatchObject({ exitCode: 0 });
    expect(parse(readFileSync(output, 'utf8'))).toEqual({
      filesystem: { read: [join(outside, 'given.txt')], write: [join(outside, 'kept')] },
      network: { mode: 'listed', allow: ['example.org:8443'] },
    });
    expect(await call('--policy', output, '-c', line)).toMatchObject({ exitCode: 0 });
  });

  it('says what it cannot propose, and does not try it for ever', { timeout: PATIENCE }, async () => {
    make({ inside: {}, outside: { 'in/x': '1', y: '2' }, run: '', needs: [] });
    const { stdout, stderr } = await call('learn', '--yes', ...vars(), '-c', 'cat $O/in/../y');
    expect(stderr.match(/once more/g)).toHaveLength(1);
    expect(stdout).toContain(`read ${outside}/y (it is listed and was denied again`);
  });

  it('asks for nothing where nobody is there, and proposes what was denied', {
    timeout: PATIENCE,
  }, async () => {
    const project = PROJECTS['python with fixtures elsewhere'] as Project;
    make(project);
    const { exitCode, stdout } = await call('learn', ...vars(), '-c', project.run);
    expect([exitCode === 0, stdout]).toEqual([false, expect.stringContaining(`"${outside}/fixture.txt"`)]);
  });

  it('adds runs up in any order', { timeout: PATIENCE }, async () => {
    make({ inside: {}, outside: { a: '1', b: '2' }, run: '', needs: [] });
    const texts = [];
    for (const order of [
      ['a', 'b'],
      ['b', 'a'],
    ]) {
      const policy = join(root, `${order.join('')}.toml`);
      for (const name of order)
        await call('learn', '--yes', '--output', policy, ...vars(), '-c', `cat $O/${name}`);
      texts.push(readFileSync(policy, 'utf8'));
    }
    expect(texts[1]).toBe(texts[0]);
    expect(texts[0]).toContain(`"${outside}/b",  # cat`);
  });

  it('stays as it is when the same run is added', { timeout: PATIENCE }, async () => {
    make({ inside: {}, outside: { a: '1', 'odd\u009b.pem': '2' }, run: '', needs: [] });
    const policy = join(root, 'policy.toml');
    // Of several lines, and longer than is told.
    const script = `cat $O/a\ncat $'${outside}/odd\\xc2\\x9b.pem'\n# ${'x'.repeat(600)}`;
    const texts = [];
    for (let runs = 0; runs < 2; runs++) {
      await call('learn', '--yes', '--output', policy, ...vars(), '-c', script);
      texts.push(readFileSync(policy, 'utf8'));
    }
    expect(texts[0]).toContain(`"${outside}/a",  # cat`);
    expect(texts[0]).toContain('odd\\u{9b}.pem (');
    expect(texts[1]).toBe(texts[0]);
  });

  it('shows what a policy would change', async () => {
    const file = join(root, 'mine.toml');
    writeFileSync(file, '[filesystem]\nread = ["/opt"]\n\n[limits]\ntimeout_seconds = 90\n');
    const { stdout } = await call('policy', 'diff', file);
    expect(stdout).toBe(
      '+ filesystem.read = "/opt"\n- limits.timeout_seconds = 60\n+ limits.timeout_seconds = 90\n',
    );
    expect((await call('policy', 'diff', empty(root))).stdout).toBe('no difference\n');
  });
});

function unjudged(root: string): string {
  const path = join(root, 'unjudged.toml');
  writeFileSync(path, '[unsafe]\nunjudged_commands = true\n');
  return path;
}

function both(root: string, learned: string): string {
  const path = join(root, 'both.toml');
  writeFileSync(path, `${learned}\n[unsafe]\nunjudged_commands = true\n`);
  return path;
}

function empty(root: string): string {
  const path = join(root, 'empty.toml');
  writeFileSync(path, '');
  return path;
}

const filesHere = (need: string, home: string) => {
  const path = need.replace(/^~/, home);
  return statSync(path).isFile() || readdirSync(path, { recursive: true }).length > 0;
};
