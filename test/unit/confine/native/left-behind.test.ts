import { execFileSync } from 'node:child_process';
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  realpathSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setImmediate as turn } from 'node:timers/promises';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import type {
  NativeConfinementSpec,
  NativeEffects,
  NativeEventHandler,
} from '../../../../src/confine/native/contract.ts';
import { loadAddon } from '../../../../src/confine/native/load.ts';
import type { Sandbox } from '../../../../src/index.ts';
import type { NativeIndex, NativeIndexed } from '../../../../src/workspace/index.ts';
import { until } from '../../../support/bystander.ts';
import { HOST, sandboxIn, TIERS, WITH_VIEW, WITHOUT_LANDLOCK } from '../../../support/tiers.ts';

/** What the addon tells of commands, asked with real plans to which the test adds what it tells about. */
const addon = loadAddon();
const { createConfinement, launch } = addon;
let effects: NativeEffects[] = [];
let workspace = '';
let sandbox: Sandbox | undefined;

beforeEach(() => {
  workspace = mkdtempSync(join(realpathSync(tmpdir()), 'left-behind-'));
  execFileSync('git', ['-C', workspace, 'init', '-q', '-b', 'main'], { stdio: 'pipe' });
  effects = [];
});
afterEach(async () => {
  vi.restoreAllMocks();
  await sandbox?.close();
  sandbox = undefined;
  rmSync(workspace, { recursive: true, force: true });
});

function extend(change: (spec: NativeConfinementSpec) => NativeConfinementSpec): void {
  vi.spyOn(addon, 'createConfinement').mockImplementation((spec) => createConfinement(change(spec)));
  vi.spyOn(addon, 'launch').mockImplementation((confinement, onEvent, ...rest) => {
    const tell: NativeEventHandler = (event) => {
      if (event.kind === 'ended' || event.kind === 'turn-ended') effects.push(event);
      onEvent(event);
    };
    return launch(confinement, tell, ...rest);
  });
}

const read = (index: NativeIndex) =>
  new Promise<NativeIndexed>((resolve, reject) => {
    addon.readIndex(index, (indexed, failure) => {
      if (indexed === undefined) reject(new Error(failure?.stage));
      else resolve(indexed);
    });
  });

/** What is written after this has a later time than what was written before it, on the coarsest clock of files, too. */
async function fileClockMoves(): Promise<void> {
  const probe = `${workspace}.clock`;
  const stamp = () => {
    writeFileSync(probe, '');
    const { mtimeMs } = statSync(probe);
    rmSync(probe);
    return mtimeMs;
  };
  const before = stamp();
  // A tick is at most 10 ms.
  while (stamp() <= before + 20) await turn();
}

async function indexed(): Promise<NativeIndexed> {
  const index = addon.createIndex({
    root: workspace,
    names: ['.git', '.envrc'],
    suffixes: ['.code-workspace'],
    gitNames: ['config', 'HEAD'],
    maxDirectories: 1000,
  });
  extend((spec) => ({ ...spec, index }));
  return await read(index);
}

const told = () =>
  effects
    .splice(0)
    .map((one) =>
      one?.leftBehind?.entries
        .map(({ change, path, kind }) => `${change} ${path.slice(workspace.length + 1)} ${kind}`)
        .sort(),
    );

describe.each(TIERS)('the index of a tree, $name', (tier) => {
  it('tells what a command leaves behind, and nothing of the user', async () => {
    const first = await indexed();
    expect(first.entries.map(({ path }) => path.slice(workspace.length + 1)).sort()).toEqual([
      '.git',
      '.git/HEAD',
      '.git/config',
    ]);
    expect([first.spent, first.unreadable]).toEqual([false, []]);
    sandbox = await sandboxIn(tier, { workspace });
    writeFileSync(join(workspace, '.envrc'), 'of the user\n');
    await fileClockMoves();
    await sandbox.run('mkdir -p a/nested && cd a/nested && git init -q . && echo x > all.code-workspace');
    // What was looked at is replaced by another file then, which is nobody's change of the next command.
    await fileClockMoves();
    await sandbox.run('/bin/true');
    expect(told()).toEqual([
      [
        'appeared a/nested/.git directory',
        'appeared a/nested/.git/HEAD file',
        'appeared a/nested/.git/config file',
        'appeared a/nested/all.code-workspace file',
      ],
      undefined,
    ]);
  });

  it('tells it of each turn of a session', async () => {
    await indexed();
    sandbox = await sandboxIn(tier, { workspace });
    const session = await sandbox.session();
    // Its first turn is not the test's.
    effects = [];
    await session.run(
      '(until [ -e go ]; do sleep 0.02; done; echo late > late.code-workspace) > /dev/null 2>&1 &',
    );
    await session.run('echo x > now.code-workspace');
    writeFileSync(join(workspace, 'go'), '');
    await until(() => existsSync(join(workspace, 'late.code-workspace')));
    await fileClockMoves();
    await session.run('true');
    expect(effects.map((one) => one?.leftBehind?.entries.map(({ earlier }) => earlier))).toEqual([
      undefined,
      [undefined],
      [true],
    ]);
    expect(told().slice(1)).toEqual([
      ['appeared now.code-workspace file'],
      ['appeared late.code-workspace file'],
    ]);
    await session.close();
  });
});

const VIEWS = HOST.namespaces ? [WITH_VIEW, WITHOUT_LANDLOCK].filter(({ view }) => view) : [];

describe.each(VIEWS)('a link over a file, $name (needs namespaces)', (tier) => {
  const linked = () => {
    extend((spec) => spec);
    return join(workspace, '.git/config');
  };

  it('lets git write its configuration, and tells what it wrote', async () => {
    const config = linked();
    const before = readFileSync(config, 'utf8');
    sandbox = await sandboxIn(tier, { workspace });
    const result = await sandbox.run(
      'git config user.name n && git remote add o https://example.invalid/o && git branch -m other && git config user.name',
    );
    expect([result.exitCode, result.stderr, result.stdout]).toEqual([0, '', 'n\n']);
    // What only names things is taken over.
    expect(readFileSync(config, 'utf8')).toMatch(/name = "n"\n\[remote "o"\]\n\turl = "https:/);
    const [copy] = effects[0]?.copies ?? [];
    expect([copy?.source, String(copy?.before)]).toEqual([config, before]);
    expect(String(copy?.after)).toMatch(/name = n[\s\S]*\[remote "o"\]/);
    // The next command begins with it.
    expect((await sandbox.run('git config --local user.name')).stdout).toBe('n\n');
    expect(effects[1]?.copies).toBeUndefined();
  });

  it('holds, and is there again after the user replaced the file', async () => {
    const config = linked();
    sandbox = await sandboxIn(tier, { workspace });
    const attack =
      'cd .git; rm -f config; mv config x; echo e > y; mv -T y config; ln -f y config; echo e >> config';
    for (const text of ['[a]\n', '[b]\n', '[c]\n']) {
      writeFileSync(`${config}.new`, text);
      renameSync(`${config}.new`, config);
      await sandbox.run(attack);
      expect(readFileSync(config, 'utf8')).toBe(text);
      expect(String(effects.pop()?.copies?.[0]?.after)).toBe(`${text}e\n`);
    }
  });

  it('tells the changes of each turn of a session', async () => {
    linked();
    sandbox = await sandboxIn(tier, { workspace });
    const session = await sandbox.session();
    // Its first turn is not the test's.
    effects = [];
    await session.run('git config a.b 1');
    await session.run('true');
    await session.run('git config a.b 2');
    await session.close();
    const [one, none, two] = effects.map((each) => each?.copies?.[0]);
    expect(none).toBeUndefined();
    expect(String(two?.before)).toBe(String(one?.after));
    expect(String(two?.after)).toContain('b = 2');
  });
});

describe('a copy', () => {
  it('of what is no regular file refuses the launch', async () => {
    mkdirSync(join(workspace, 'd'));
    extend((spec) => ({
      ...spec,
      slotDirectories: [...spec.slotDirectories, 'slot:git'],
      copies: [{ source: join(workspace, 'd'), path: 'slot:git/0/config' }],
    }));
    await expect(sandboxIn(WITH_VIEW, { workspace }).then((made) => made.run('true'))).rejects.toThrow(
      /copy|directory/,
    );
  });
});
