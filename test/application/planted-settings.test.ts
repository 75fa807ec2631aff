import { spawnSync } from 'node:child_process';
import {
  appendFileSync,
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  realpathSync,
  renameSync,
  rmSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { createSandbox, type Sandbox } from '../../src/index.ts';
import { createChecker } from '../../src/run/index.ts';
import { OF_THIS_PROCESS } from '../../src/workspace/index.ts';
import { SECRET } from './support.ts';

const ENV = { PATH: '/usr/bin:/bin', HOME: '/nonexistent', GIT_CONFIG_NOSYSTEM: '1' };
const root = mkdtempSync(join(realpathSync(tmpdir()), 'planted-settings-'));
const open: Sandbox[] = [];
afterAll(async () => {
  await Promise.all(open.map((sandbox) => sandbox.close()));
  rmSync(root, { recursive: true, force: true });
});

/** A repository with a changed file, a program that leaves a marker, and a secret outside. */
class Place {
  static #count = 0;
  readonly at = join(root, `${Place.#count++}`);
  readonly workspace = join(this.at, 'workspace');
  readonly outside = join(this.at, 'outside');
  readonly marker = join(this.at, 'marker');
  readonly program = join(this.workspace, 'planted');

  constructor() {
    for (const directory of [this.workspace, this.outside, join(this.workspace, 'sub')])
      mkdirSync(directory, { recursive: true });
    writeFileSync(join(this.outside, 'secret.txt'), `${SECRET}\n`);
    writeFileSync(this.program, `#!/bin/sh\n: > ${this.marker}\nexit 0\n`);
    chmodSync(this.program, 0o755);
    makeRepository(this.workspace);
    writeFileSync(join(this.workspace, 'file'), 'changed\n');
  }

  git(...words: readonly string[]) {
    return run(this.workspace, 'git', ...words);
  }

  /** As the workspace's own file says it, whatever the verb would refuse to write. */
  config(text: string): void {
    appendFileSync(join(this.workspace, '.git/config'), `${text.replaceAll('PROGRAM', this.program)}\n`);
  }

  write(path: string, text: string): void {
    writeFileSync(join(this.workspace, path), text);
  }

  async sandbox(): Promise<Sandbox> {
    const sandbox = await createSandbox({
      workspace: this.workspace,
      backend: 'application',
      policyFiles: false,
      autonomy: 'autonomous',
    });
    open.push(sandbox);
    return sandbox;
  }
}

function run(cwd: string, program: string, ...words: readonly string[]) {
  return spawnSync(program, words, { cwd, encoding: 'utf8', env: ENV, input: '', timeout: 60_000 });
}

function makeRepository(directory: string): void {
  const git = (...words: readonly string[]) =>
    run(directory, 'git', '-c', 'user.name=n', '-c', 'user.email=e@x', ...words);
  git('init', '-q', '-b', 'main');
  writeFileSync(join(directory, 'file'), 'first\n');
  git('add', 'file');
  git('commit', '-q', '-m', 'first');
}

/** What is planted; what runs it outside, and here must not. `refused`: here the command does not run at all. */
interface Planted {
  readonly plant: (place: Place) => void;
  readonly command: string;
  readonly refused?: true;
}

const filtered = (place: Place, driver: string) => {
  place.write('.gitattributes', 'file filter=f diff=f\n');
  place.config(driver);
  // As long as before, and another time: git has to read it.
  place.write('file', 'other\n');
  utimesSync(join(place.workspace, 'file'), 1, 1);
};

const nested = (place: Place, driver: string) => {
  const inner = join(place.workspace, 'inner');
  mkdirSync(inner);
  makeRepository(inner);
  place.git('-c', 'advice.addEmbeddedRepo=false', 'add', 'inner');
  appendFileSync(join(inner, '.git/config'), `${driver.replaceAll('PROGRAM', place.program)}\n`);
  writeFileSync(join(inner, 'file'), 'x\n');
};

const hook = (place: Place, directory: string) => {
  mkdirSync(join(place.workspace, directory), { recursive: true });
  symlinkSync(place.program, join(place.workspace, directory, 'post-index-change'));
  utimesSync(join(place.workspace, 'file'), 1, 1);
  place.write('file', 'first\n');
};

const signed = (place: Place) => {
  const { stdout: tree } = place.git('rev-parse', 'HEAD^{tree}');
  const text = `tree ${tree.trim()}\nauthor n <e@x> 1 +0000\ncommitter n <e@x> 1 +0000\ngpgsig -----BEGIN PGP SIGNATURE-----\n \n x\n -----END PGP SIGNATURE-----\n\nsigned\n`;
  const { stdout: id } = spawnSync('git', ['hash-object', '-t', 'commit', '-w', '--stdin'], {
    cwd: place.workspace,
    encoding: 'utf8',
    env: ENV,
    input: text,
  });
  place.git('update-ref', 'refs/heads/main', id.trim());
};

const RUNS: Readonly<Record<string, Planted>> = {
  'core.fsmonitor, status': {
    plant: (p) => p.config('[core]\n\tfsmonitor = PROGRAM'),
    command: 'git status',
  },
  'core.fsmonitor, diff': { plant: (p) => p.config('[core]\n\tfsmonitor = PROGRAM'), command: 'git diff' },
  'diff.external': { plant: (p) => p.config('[diff]\n\texternal = PROGRAM'), command: 'git diff' },
  'a diff driver': {
    plant: (p) => filtered(p, '[diff "f"]\n\tcommand = PROGRAM'),
    command: 'git diff',
  },
  'textconv, diff': { plant: (p) => filtered(p, '[diff "f"]\n\ttextconv = PROGRAM'), command: 'git diff' },
  'textconv, log': { plant: (p) => filtered(p, '[diff "f"]\n\ttextconv = PROGRAM'), command: 'git log -p' },
  'a driver by .git/info/attributes': {
    plant: (p) => {
      p.config('[diff "f"]\n\ttextconv = PROGRAM');
      p.write('.git/info/attributes', 'file diff=f\n');
    },
    command: 'git diff',
  },
  'core.attributesFile': {
    plant: (p) => {
      p.write('attributes', 'file diff=f\n');
      p.config(`[core]\n\tattributesFile = ${p.workspace}/attributes\n[diff "f"]\n\ttextconv = PROGRAM`);
    },
    command: 'git diff',
  },
  'a clean filter, status': {
    plant: (p) => filtered(p, '[filter "f"]\n\tclean = PROGRAM'),
    command: 'git status',
    refused: true,
  },
  'a clean filter, diff': {
    plant: (p) => filtered(p, '[filter "f"]\n\tclean = PROGRAM'),
    command: 'git diff',
    refused: true,
  },
  'a filter process': {
    plant: (p) => filtered(p, '[filter "f"]\n\tprocess = PROGRAM'),
    command: 'git status',
    refused: true,
  },
  'a filter in an included file': {
    plant: (p) => {
      filtered(p, '[include]\n\tpath = ../planted.config');
      p.write('planted.config', `[filter "f"]\n\tclean = ${p.program}\n`);
    },
    command: 'git status',
    refused: true,
  },
  'a filter in config.worktree': {
    plant: (p) => {
      filtered(p, '[core]\n\trepositoryformatversion = 1\n[extensions]\n\tworktreeConfig = true');
      p.write('.git/config.worktree', `[filter "f"]\n\tclean = ${p.program}\n`);
    },
    command: 'git status',
    refused: true,
  },
  'a hook for the index': { plant: (p) => hook(p, '.git/hooks'), command: 'git status' },
  'core.hooksPath': {
    plant: (p) => {
      hook(p, 'hooks');
      p.config('[core]\n\thooksPath = hooks');
    },
    command: 'git status',
  },
  'a signature by log.showSignature': {
    plant: (p) => {
      signed(p);
      p.config('[log]\n\tshowSignature = true\n[gpg]\n\tprogram = PROGRAM');
    },
    command: 'git log',
  },
  'a signature by format.pretty': {
    plant: (p) => {
      signed(p);
      p.config('[format]\n\tpretty = format:%G?\n[gpg]\n\tprogram = PROGRAM');
    },
    command: 'git log',
  },
  'a signature by an option': {
    plant: (p) => {
      signed(p);
      p.config('[gpg]\n\tprogram = PROGRAM');
    },
    command: 'git log --show-signature',
    refused: true,
  },
  'a signature by a format': {
    plant: (p) => {
      signed(p);
      p.config('[gpg]\n\tprogram = PROGRAM');
    },
    command: "git log '--format=%h %G?'",
    refused: true,
  },
  'a signature by a format of a name': {
    plant: (p) => {
      signed(p);
      p.config('[pretty]\n\tp = format:%G?\n[gpg]\n\tprogram = PROGRAM');
    },
    command: 'git log --pretty=p',
    refused: true,
  },
  'a submodule, status': {
    plant: (p) => nested(p, '[core]\n\tfsmonitor = PROGRAM'),
    command: 'git status',
  },
  'a submodule, diff': { plant: (p) => nested(p, '[core]\n\tfsmonitor = PROGRAM'), command: 'git diff' },
  'diff.submodule': {
    plant: (p) => {
      nested(p, '[core]\n\tfsmonitor = PROGRAM');
      p.config('[diff]\n\tsubmodule = diff');
    },
    command: 'git diff',
  },
  'status.submoduleSummary': {
    plant: (p) => {
      nested(p, '[core]\n\tfsmonitor = PROGRAM');
      p.config('[status]\n\tsubmoduleSummary = true');
    },
    command: 'git status',
  },
  'a directory that looks like a repository': {
    plant: (p) => {
      run(p.workspace, 'git', 'init', '-q', '--bare', 'bare');
      appendFileSync(
        join(p.workspace, 'bare/config'),
        `[core]\n\tworktree = ..\n\tbare = false\n\tfsmonitor = ${p.program}\n`,
      );
    },
    command: 'cd bare && git status',
  },
  'a lost object': {
    plant: (p) => {
      p.config(
        '[core]\n\trepositoryformatversion = 1\n[extensions]\n\tpartialClone = o\n[remote "o"]\n\turl = .\n\tpromisor = true\n\tuploadpack = PROGRAM',
      );
      p.git('rm', '-q', '--cached', 'file');
      const { stdout } = p.git('rev-parse', 'HEAD:file');
      rmSync(join(p.workspace, '.git/objects', stdout.slice(0, 2), stdout.trim().slice(2)));
    },
    command: 'git log -p',
    refused: true,
  },
  'a pager by the configuration': {
    plant: (p) => p.config('[core]\n\tpager = PROGRAM\n[pager]\n\tlog = PROGRAM'),
    command: 'git -p log',
    refused: true,
  },
  'an option with an external program': {
    plant: (p) => p.config('[diff]\n\texternal = PROGRAM'),
    command: 'git log -p --ext-diff',
    refused: true,
  },
};

describe('programs that files of the workspace name for git', () => {
  it.each(Object.entries(RUNS))('are not run: %s', async (_, { plant, command, refused }) => {
    const control = new Place();
    plant(control);
    const script = command.startsWith('git -p') ? `script -qec '${command}' /dev/null` : command;
    run(control.workspace, '/bin/bash', '-c', script);
    expect(existsSync(control.marker), 'the planted program runs without us').toBe(true);

    const place = new Place();
    plant(place);
    rmSync(place.marker, { force: true });
    const result = await (await place.sandbox()).run(command, { approved: true });
    expect(existsSync(place.marker)).toBe(false);
    expect(result.status, JSON.stringify(result)).toBe(refused === true ? 'denied' : 'exited');
    if (refused !== true) expect(result.exitCode, result.stderr).toBe(0);
  });

  it('are not planted by an earlier part of the line', async () => {
    const place = new Place();
    const inner = join(place.workspace, 'inner');
    mkdirSync(inner);
    makeRepository(inner);
    renameSync(join(inner, '.git'), join(inner, 'kept'));
    appendFileSync(
      join(inner, 'kept/config'),
      `[core]\n\tfsmonitor = ${place.program}\n[filter "f"]\n\tclean = ${place.program}\n`,
    );
    writeFileSync(join(inner, '.gitattributes'), '* filter=f\n');
    const sandbox = await place.sandbox();
    for (const command of [
      'mv inner/kept inner/.git && cd inner && git status',
      'cp -r inner/kept inner/.git && cd inner && git status',
      'cp -r inner/kept inner/.git | git status',
      'echo x | tee inner/.git/config && git status',
      'git status; cp -r inner other',
    ])
      expect((await sandbox.run(command, { approved: true })).status, command).toBe('denied');
    for (const command of ['git diff > out.txt', 'git status | sort > other.txt'])
      expect(await sandbox.run(command), command).toMatchObject({ status: 'exited', exitCode: 0 });
    expect(existsSync(place.marker)).toBe(false);
  });

  it('are not named by variables', async () => {
    const place = new Place();
    const variables = { GIT_EXTERNAL_DIFF: place.program, GIT_PAGER: place.program, GIT_SSH: place.program };
    process.env.GIT_EXTERNAL_DIFF = place.program;
    const sandbox = await createSandbox({
      workspace: place.workspace,
      backend: 'application',
      policyFiles: false,
      autonomy: 'autonomous',
      policy: { environment: { pass: ['GIT_EXTERNAL_DIFF'], set: { GIT_TRACE: `${place.outside}/trace` } } },
    }).finally(() => delete process.env.GIT_EXTERNAL_DIFF);
    open.push(sandbox);
    const result = await sandbox.run('git diff');
    expect(result.exitCode, JSON.stringify(result)).toBe(0);
    expect(result.stdout).toContain('+changed');
    for (const [name, value] of Object.entries(variables))
      expect((await sandbox.run('git diff', { env: { [name]: value } })).status).toBe('denied');
    expect(existsSync(place.marker)).toBe(false);
    expect(existsSync(`${place.outside}/trace`)).toBe(false);
  });
});

it('is not so elsewhere, where nobody turns it off: such lines are not harmless by themselves', async () => {
  const { workspace } = new Place();
  const checker = await createChecker(
    { workspace, backend: 'application', policyFiles: false },
    OF_THIS_PROCESS,
  );
  const isPlain = (command: string) => checker.judge({ command }).isPlain();
  expect(isPlain('cat file'), 'what reads and obeys nothing is').toBe(true);
  for (const command of ['git status', 'git diff', 'git log', 'rg x', 'rg --no-ignore x', 'cat *'])
    expect([command, isPlain(command)]).toEqual([command, false]);
  await checker.close();
});

describe('what lies outside of the workspace', () => {
  const ELSEWHERE: Readonly<Record<string, (place: Place) => void>> = {
    'a .git file': (p) => {
      renameSync(join(p.workspace, '.git'), join(p.outside, 'git'));
      p.write('.git', `gitdir: ${p.outside}/git\n`);
    },
    'a .git link': (p) => {
      renameSync(join(p.workspace, '.git'), join(p.outside, 'git'));
      symlinkSync('../outside/git', join(p.workspace, '.git'));
    },
    'a link among the references': (p) =>
      symlinkSync('../../../../outside/secret.txt', join(p.workspace, '.git/refs/heads/x')),
    'a link among the objects': (p) => symlinkSync('/', join(p.workspace, '.git/objects/ab')),
    commondir: (p) => p.write('.git/commondir', p.outside),
    alternates: (p) => p.write('.git/objects/info/alternates', `${p.outside}\n`),
  };

  it.each(Object.entries(ELSEWHERE))('git does not obey %s', async (_, plant) => {
    const place = new Place();
    plant(place);
    const sandbox = await place.sandbox();
    for (const command of ['git status', 'git log', 'git diff'])
      expect((await sandbox.run(command, { approved: true })).status, command).toBe('denied');
  });

  it('git does not read, by any word', async () => {
    const place = new Place();
    const sandbox = await place.sandbox();
    for (const command of [
      'git diff ../outside/secret.txt file',
      'git diff --no-index /dev/null ../outside/secret.txt',
      `git diff ${place.outside}/secret.txt file`,
      'git diff -- ../outside/secret.txt file',
      'git diff -O../outside/secret.txt',
      'git diff --output=../outside/new',
      'git log --output=new',
      'git log --stdin',
      'git -C ../outside log',
      'git --git-dir=../outside log',
      'git --work-tree=../outside diff',
      'git -c core.worktree=/etc status',
      'git --exec-path=. status',
      'git show HEAD:file',
      'git commit -m x',
      'git',
      'git --version',
      'cd ..; git status',
    ])
      expect((await sandbox.run(command, { approved: true })).status, command).toBe('denied');
  });

  it('git finds no repository around the workspace', async () => {
    const place = new Place();
    const sandbox = await createSandbox({
      workspace: join(place.workspace, 'sub'),
      backend: 'application',
      policyFiles: false,
      autonomy: 'autonomous',
    });
    open.push(sandbox);
    expect((await sandbox.run('git log', { approved: true })).status).toBe('denied');
  });

  it.each(['.gitignore', '.ignore', '.rgignore', 'sub/.ignore'])(
    'rg does not follow the link %s',
    async (name) => {
      const place = new Place();
      writeFileSync(join(place.outside, 'secret.txt'), `[${SECRET}\n`);
      symlinkSync(join(place.outside, 'secret.txt'), join(place.workspace, name));
      place.write('sub/x', 'text\n');
      const told = run(place.workspace, 'rg', 'text', '.').stderr;
      expect(told, 'rg tells what is in it').toContain(SECRET);
      const sandbox = await place.sandbox();
      expect((await sandbox.run('rg text', { approved: true })).status).toBe('denied');
      expect((await sandbox.run('rg --no-ignore text')).stdout).toContain('text');
    },
  );

  it('rg obeys no settings, and ignores what a file of the workspace says', async () => {
    const place = new Place();
    place.write('.ignore', 'ignored\n');
    place.write('ignored', 'text\n');
    place.write('sub/found', 'text\n');
    place.write('rgc', `--pre=${place.program}\n`);
    run(place.workspace, 'env', 'RIPGREP_CONFIG_PATH=rgc', 'rg', 'text', '.');
    expect(existsSync(place.marker), 'the planted program runs without us').toBe(true);
    rmSync(place.marker);
    const sandbox = await createSandbox({
      workspace: place.workspace,
      backend: 'application',
      policyFiles: false,
      autonomy: 'autonomous',
      policy: { environment: { set: { RIPGREP_CONFIG_PATH: 'rgc' } } },
    });
    open.push(sandbox);
    const result = await sandbox.run('rg text');
    expect(result.stdout).toBe('sub/found:text\n');
    expect((await sandbox.run('cd sub && rg text')).stdout).toBe('found:text\n');
    expect(existsSync(place.marker)).toBe(false);
    for (const command of ['rg --pre ./planted text', 'rg -z text', 'rg -L text', 'rg --debug text'])
      expect((await sandbox.run(command, { approved: true })).status, command).toBe('denied');
  });
});
