import { existsSync, mkdirSync, mkdtempSync, readdirSync, readlinkSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { loadAddon } from '../../src/confine/native/index.ts';
import { ChangeStore, stateDirectory } from '../../src/run/index.ts';
import { makeArena } from '../support/arena.ts';
import { eventually } from '../support/eventually.ts';
import { makeHold } from '../support/hold.ts';
import { HOST, WITH_VIEW } from '../support/tiers.ts';
import { useOwnState } from './support/own-state.ts';

// A change set that something uses stays, whoever wants it gone.

const arena = makeArena();
useOwnState(arena);
const describe_ = describe.skipIf(!HOST.namespaces);

describe_('a change set on which a command runs (needs namespaces)', () => {
  it('cannot be discarded meanwhile, and the command keeps what it sees and does', async () => {
    const root = arena.freshCorner();
    const beside = arena.freshCorner();
    const hold = makeHold(beside);
    const sandbox = await arena.sandbox(WITH_VIEW, { workspace: root, readable: [beside] });
    const changes = await sandbox.changes();
    const { changes: below } = await sandbox.run('echo below > f', { effect: 'preview' });
    const id = below?.id ?? '';
    const started = sandbox.start(`echo ready; ${hold.words}; cat f; echo above > g`, {
      effect: 'preview',
      on: id,
    });
    for await (const line of started.outputText()) if (line.text.includes('ready')) break;
    await expect(changes.discard(id)).rejects.toMatchObject({
      code: 'changes.state',
      message: expect.stringContaining('while a command runs on them'),
    });
    await expect(changes.discard(id, ['f'])).rejects.toMatchObject({ code: 'changes.state' });
    hold.letGo();
    const ended = await started.result;
    expect(ended).toMatchObject({ stdout: 'ready\nbelow\n', warnings: [], changes: { on: id } });
    await changes.discard(ended.changes?.id ?? '');
    await changes.discard(id);
    expect(await changes.list()).toEqual([]);
  });
});

describe_('a change set on which a command ran (needs namespaces)', () => {
  it('without its lock is not run on: that is a result', async () => {
    const sandbox = await arena.sandbox(WITH_VIEW, { workspace: arena.freshCorner() });
    const { changes: below } = await sandbox.run('echo below > f', { effect: 'preview' });
    const id = below?.id ?? '';
    rmSync(join(stateDirectory(), 'changes', id, 'lock'));
    expect(await sandbox.run('cat f', { effect: 'preview', on: id })).toMatchObject({
      status: 'setup-failed',
      error: { code: 'state.unusable', message: expect.stringContaining('/lock cannot be used (ENOENT)') },
    });
    await (await sandbox.changes()).discard(id);
  });

  it('can be discarded as soon as that has ended, although it changed nothing', async () => {
    const sandbox = await arena.sandbox(WITH_VIEW, { workspace: arena.freshCorner() });
    const changes = await sandbox.changes();
    for (let times = 0; times < 5; times++) {
      const { changes: below } = await sandbox.run('echo below > f', { effect: 'preview' });
      const id = below?.id ?? '';
      expect(await sandbox.run('cat f', { effect: 'preview', on: id })).toMatchObject({ stdout: 'below\n' });
      await changes.discard(id);
    }
  });
});

describe('what is too old', () => {
  /** Sets of which the first is too old, in a store of their own. */
  async function aged() {
    const home = mkdtempSync(join(tmpdir(), 'sandbox-run-state-'));
    const workspace = arena.freshCorner();
    const store = new ChangeStore(loadAddon(), home);
    const made = async (at: number) => {
      const opened = await store.open(workspace);
      const set = { id: opened.id, at, workspace, command: 'true', state: 'waiting' } as const;
      const after = { kind: 'file', mode: 0o644, bytes: 0, modified: '0' } as const;
      store.save({ ...set, operations: [{ path: 'f', after, isOwn: true }], copies: [], placed: [] });
      opened[Symbol.dispose]();
      return opened.id;
    };
    const old = await made(Date.now() - 40 * 86_400_000);
    /** Opens a layer as a process does that has just begun. What is too old has another name, or none, once it is open. */
    const begin = (on?: string) => new ChangeStore(loadAddon(), home).open(workspace, on);
    const names = () => readdirSync(join(home, 'changes')).filter((name) => name.startsWith(old));
    return { home, store, old, begin, names, left: () => rmSync(home, { recursive: true }) };
  }

  it('stays while another process applies or takes back, and goes when nobody does', async () => {
    const { store, begin, names, old, left } = await aged();
    const busy = store.lock();
    (await begin())[Symbol.dispose]();
    expect(names()).toEqual([old]);
    busy[Symbol.dispose]();
    (await begin())[Symbol.dispose]();
    await eventually(() => expect(names()).toEqual([]));
    left();
  });

  it('stays while a command runs on it', async () => {
    const { begin, names, old, left, store } = await aged();
    const running = await store.open(store.find(old).workspace, old);
    (await begin())[Symbol.dispose]();
    expect([names(), existsSync(store.upperOf(old))]).toEqual([[old], true]);
    running[Symbol.dispose]();
    (await begin())[Symbol.dispose]();
    await eventually(() => expect(names()).toEqual([]));
    left();
  });

  it('stays while nobody can tell whether one does', async () => {
    const { home, store, begin, names, old, left } = await aged();
    const lock = join(home, 'changes', old, 'lock');
    rmSync(lock);
    symlinkSync('lock', lock);
    expect(() => store.claim(old)).toThrow(expect.objectContaining({ code: 'state.unusable' }));
    (await begin())[Symbol.dispose]();
    expect(names()).toEqual([old]);
    left();
  });

  it('stays while another one that waits lies on it', async () => {
    const { begin, names, old, left, store } = await aged();
    const upon = await store.open(store.find(old).workspace, old);
    store.save({ ...store.find(old), id: upon.id, at: Date.now(), on: old });
    upon[Symbol.dispose]();
    (await begin())[Symbol.dispose]();
    expect(names()).toEqual([old]);
    await store.remove(upon.id);
    (await begin())[Symbol.dispose]();
    await eventually(() => expect(names()).toEqual([]));
    left();
  });

  it('goes although whoever removed it ended in the middle', async () => {
    const { home, begin, left, names } = await aged();
    const gone = join(home, 'changes', '20200101-000000-abcdef.gone');
    (await begin())[Symbol.dispose]();
    await eventually(() => expect(names()).toEqual([]));
    mkdirSync(join(gone, 'upper/d'), { recursive: true });
    (await begin())[Symbol.dispose]();
    await eventually(() => expect(existsSync(gone)).toBe(false));
    left();
  });
});

it('a layer that somebody takes for one that was left, before it is locked, is made anew', async () => {
  const home = mkdtempSync(join(tmpdir(), 'sandbox-run-state-'));
  onTestFinished(() => rmSync(home, { recursive: true }));
  const addon = loadAddon();
  let looks = 0;
  const tryLock = (fd: number) => {
    const isLayer = /-[0-9a-f]{6}\/lock$/.test(readlinkSync(`/proc/self/fd/${fd}`));
    return !(isLayer && ++looks === 1) && addon.tryLock(fd);
  };
  const store = new ChangeStore(Object.create(addon, { tryLock: { value: tryLock } }), home);
  const opened = await store.open(arena.freshCorner());
  expect([looks, new ChangeStore(addon, home).claim(opened.id)]).toEqual([2, undefined]);
  opened[Symbol.dispose]();
});

it('what lost a part just when a command was to run on it is not run on', async () => {
  const home = mkdtempSync(join(tmpdir(), 'sandbox-run-state-'));
  onTestFinished(() => rmSync(home, { recursive: true }));
  const workspace = arena.freshCorner();
  const store = new ChangeStore(loadAddon(), home);
  const opened = await store.open(workspace);
  const { id } = opened;
  const set = {
    id,
    at: Date.now(),
    workspace,
    command: 'true',
    state: 'waiting',
    copies: [],
    placed: [],
  } as const;
  const after = { kind: 'file', mode: 0o644, bytes: 0, modified: '0' } as const;
  const operation = { path: 'f', after, isOwn: true };
  store.save({ ...set, operations: [operation] });
  opened[Symbol.dispose]();
  const own = store.claim(id);
  const begins = store.open(workspace, id);
  store.save({ ...set, operations: [{ ...operation, discarded: true }] });
  own?.[Symbol.dispose]();
  await expect(begins).rejects.toMatchObject({ message: expect.stringContaining('was discarded') });
});
