import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { createSandbox, SandboxError } from '../../src/index.ts';
import { eventually } from '../support/eventually.ts';
import { processesWith } from '../support/leftovers.ts';
import { makePlaceWithSandbox } from './support.ts';

const { place, sandbox } = await makePlaceWithSandbox();

/** What a caller without types may pass. */
// biome-ignore lint/suspicious/noExplicitAny: that is what is tested
type Anything = any;

const refusal = { name: 'SandboxError', code: 'usage.invalid' };

describe('wrong options are refused by name, and nothing runs', () => {
  it.each([
    ['timeout', '200'],
    ['timeout', Number.NaN],
    ['timeout', -1],
    ['timeout', Number.POSITIVE_INFINITY],
    ['timeout', 1e300],
    ['signal', {}],
    ['signal', { aborted: false, addEventListener() {} }],
    ['env', { A: 1 }],
    ['env', { 'A=B': 'x' }],
    ['env', { '': 'x' }],
    ['env', 'a'],
    ['cwd', 1],
    ['input', {}],
    ['stdin', 'x'],
    ['stdio', [0, 1, 2]],
    ['onOutput', 'x'],
    ['approved', 'yes'],
    ['taints', ['x']],
    ['maxOutput', -1],
    ['maxOutput', { head: 1 }],
    ['maxOutput', { head: 1, tail: 1.5 }],
    ['maxOutput', 2 ** 27 + 1],
    ['maxOutput', { head: 2 ** 27, tail: 1 }],
    ['encoding', 'latin1'],
    ['escapes', true],
    ['combined', 'yes'],
    ['spill', 'yes'],
    ['spill', { maxBytes: -1 }],
    ['spill', { maxBytes: 1, path: '/tmp/x' }],
    ['tiemout', 1],
  ] as const)('run: %s: %o', async (name, value) => {
    const options: Anything = { [name]: value };
    await expect(sandbox.run('touch ran', options)).rejects.toMatchObject(refusal);
    await expect(sandbox.run('touch ran', options)).rejects.toThrow(name);
    expect(() => sandbox.start('touch ran', options)).toThrow(SandboxError);
    expect(() => sandbox.spawn('touch ran', options)).toThrow(SandboxError);
    expect(readdirSync(place.workspace)).toEqual([]);
  });

  it.each([
    [{ stdio: 'inherit', combined: true }, 'combined'],
    [{ stdio: 'inherit', spill: true }, 'spill'],
    [{ stdio: 'inherit', maxOutput: 1 }, 'maxOutput'],
    [{ encoding: 'bytes', escapes: 'neutralize' }, 'escapes'],
    [{ input: 'x', stdin: 'inherit' }, 'input'],
  ] as const)('run: %o, which do not go together', async (options, name) => {
    await expect(sandbox.run('touch ran', options)).rejects.toMatchObject(refusal);
    await expect(sandbox.run('touch ran', options)).rejects.toThrow(name);
    expect(readdirSync(place.workspace)).toEqual([]);
  });

  it.each([[undefined], [null], [[]], [['a', 1]], [1]])('run: the command %o', async (command) => {
    await expect(sandbox.run(command as Anything)).rejects.toMatchObject(refusal);
  });

  it.each(['SIGFOO', 'toString', 0, 9, null])('kill: the signal %o', async (signal) => {
    const wrong: Anything = signal;
    const job = await sandbox.run('sleep 9', { background: true });
    const started = sandbox.start('sleep 9');
    const child = sandbox.spawn('sleep 9');
    const onTerminal = sandbox.spawn('sleep 9', { pty: { cols: 80, rows: 24 } });
    for (const one of [job, started, child, onTerminal]) {
      expect(() => one.kill(wrong)).toThrow(SandboxError);
      expect(() => one.kill(wrong)).toThrow(`${signal}`);
      one.kill('SIGKILL');
    }
    await Promise.all([job.wait(), started.result, child.result, onTerminal.result]);
  });

  it.each([null, 1, 'x', []])('run: the options %o', async (options) => {
    await expect(sandbox.run('true', options as Anything)).rejects.toMatchObject(refusal);
  });

  it.each([
    [{ timeout: '1' }],
    [{ maxOutput: Number.NaN }],
    [{ maxOutput: '1' }],
    [{ readable: '/usr' }],
    [{ passEnv: 'HOME' }],
    [{ env: { A: 1 } }],
    [{ autonomy: 'x' }],
    [{ policy: 1 }],
    [{ polciy: {} }],
    [null],
  ])('createSandbox: %o', async (options) => {
    await expect(createSandbox(options as Anything)).rejects.toMatchObject(refusal);
  });

  it.each([
    [{ network: { mode: 'OFF' } }, 'network.mode'],
    [{ foo: 1 }, 'foo'],
    [{ filesystem: { writ: [] } }, 'filesystem.writ'],
    [{ filesystem: { write: '/root' } }, 'filesystem.write'],
    [{ demand: { network: 'never' } }, 'demand.network'],
    [{ limits: { open_files: Number.NaN } }, 'limits.open_files'],
  ])('createSandbox: the policy object %o', async (policy, key) => {
    const made = createSandbox({ workspace: place.workspace, policy: policy as Anything });
    await expect(made).rejects.toMatchObject({ code: 'policy.invalid' });
    await expect(made).rejects.toThrow(key);
  });

  it('an option is read once: what was checked is what is used', async () => {
    let reads = 0;
    const options = {
      get timeout() {
        reads += 1;
        return reads === 1 ? 5_000 : ('x' as Anything);
      },
    };
    expect((await sandbox.run(['true'], options)).status).toBe('exited');
    expect(reads).toBe(1);
  });
});

describe('a temporary directory that commands can write', () => {
  it('is not used for private directories, and nothing outside is removed', async () => {
    const workspace = join(place.other, 'with-tmp');
    const victim = join(place.root, 'victim');
    for (const name of ['tmp', 'home']) {
      mkdirSync(join(victim, name), { recursive: true });
      writeFileSync(join(victim, name, 'keep'), 'kept');
    }
    mkdirSync(join(workspace, 'tmp'), { recursive: true });
    const before = process.env.TMPDIR;
    process.env.TMPDIR = join(workspace, 'tmp');
    try {
      await using inside = await createSandbox({ workspace, autonomy: 'autonomous' });
      const swap = `cd tmp; for d in *; do [ -e "$d" ] && mv "$d" "moved-$d" && ln -s ${victim} "$d"; done; true`;
      expect((await inside.run(swap, { approved: true })).status).toBe('exited');
      expect((await inside.run(['true'])).status).toBe('exited');
      expect(readdirSync(join(workspace, 'tmp'))).toEqual([]);
    } finally {
      process.env.TMPDIR = before;
    }
    for (const name of ['tmp', 'home']) expect(readFileSync(join(victim, name, 'keep'), 'utf8')).toBe('kept');
    expect(readdirSync(join(victim, 'home'))).toEqual(['keep']);
  });
});

describe('spawn', () => {
  it('keeps no descriptor once the command has ended, whoever forgets its standard input', async () => {
    const once = async () => {
      const child = sandbox.spawn(['true']);
      child.stdout.resume();
      child.stderr.resume();
      await child.result;
    };
    await once();
    const before = readdirSync('/proc/self/fd').length;
    for (let round = 0; round < 20; round++) await once();
    await eventually(() => expect(readdirSync('/proc/self/fd').length).toBeLessThanOrEqual(before));
  });

  it('a refused option leaves no process', () => {
    const mark = `${500_000 + process.pid}`;
    expect(() => sandbox.spawn(['sleep', mark], { timeout: 'x' } as Anything)).toThrow(SandboxError);
    expect(processesWith(mark)).toEqual([]);
  });
});
