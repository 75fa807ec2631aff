import {
  copyFileSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from '@photostructure/sqlite';
import { describe, expect, it } from 'vitest';
import { SandboxError } from '../../../../src/base/errors/sandbox-error.ts';
import { MIGRATIONS } from '../../../../src/gate/state/migrations.ts';
import type { ApprovalRequest, State } from '../../../../src/model/index.ts';
import { open, stateDirectories } from './fixtures.ts';

const directory = stateDirectories();
const unusable = (message: RegExp) => ({ code: 'state.unusable', message: expect.stringMatching(message) });
const REQUEST = { fingerprint: 'f', principal: 'p', session: 's' } as ApprovalRequest;

/** Everything that must not be forgotten. */
async function whatIsRemembered({ budget, sessions, approvals }: State) {
  return {
    used: await budget.used('p'),
    taints: await sessions.taints('s', 'p', 'user'),
    granted: (await approvals.granted(REQUEST))?.id,
    waiting: (await approvals.list('pending')).length,
  };
}

async function remember({ budget, sessions, approvals }: State): Promise<void> {
  for (let i = 0; i < 5; i += 1) await budget.reserve('p', 100);
  await sessions.taint('s', 'p', 'secret', 'it saw one');
  await approvals.grant(REQUEST, 'always', 'test');
  await approvals.post(REQUEST, Date.now() + 3_600_000);
}

/** A state directory with something in it: all of it is in one file once it is closed. */
async function filled(): Promise<string> {
  const [used, path] = [directory(), directory()];
  const state = await open(used);
  await remember(state);
  state.close();
  copyFileSync(join(used, 'gate.db'), join(path, 'gate.db'));
  return path;
}

const emptyFile = (file: string) => {
  const database = new DatabaseSync(file);
  database.exec('PRAGMA journal_mode = WAL');
  database.close();
};

describe('a state that was lost is not begun anew:', () => {
  it.each([
    [
      'an empty file',
      (file: string) => writeFileSync(file, ''),
      /is empty.*remove it to begin with nothing$/,
    ],
    [
      'a file whose tables were in the log that is gone',
      (file: string) => {
        rmSync(file);
        emptyFile(file);
      },
      /is empty.*remove it/,
    ],
    [
      'a file of zeros',
      (file: string) => writeFileSync(file, Buffer.alloc(readFileSync(file).length)),
      /not a database; move it away$/,
    ],
    [
      'one that is gone, but not its log',
      leaveLog,
      /is gone, but not gate\.db-wal.*remove .*gate\.db-wal to/,
    ],
    [
      'one of another program',
      (file: string) => {
        rmSync(file);
        const database = new DatabaseSync(file);
        database.exec('CREATE TABLE notes (text TEXT); PRAGMA user_version = 1');
        database.close();
      },
      /another program/,
    ],
    [
      'one without one of its tables',
      (file: string) => {
        const database = new DatabaseSync(file);
        database.exec('DROP TABLE actions; PRAGMA user_version = 0');
        database.close();
      },
      /damaged/,
    ],
  ])('%s', async (_, lose, message) => {
    const path = await filled();
    await lose(join(path, 'gate.db'));
    // It stays refused, however often it is tried.
    for (let i = 0; i < 2; i += 1)
      await expect(open(path).then((state) => state.budget.reserve('p', 5))).rejects.toMatchObject(
        unusable(message),
      );
  });

  it('one that is taken away is, because somebody did that', async () => {
    const path = await filled();
    rmSync(join(path, 'gate.db'));
    const state = await open(path);
    expect(await state.budget.used('p')).toBe(0);
    state.close();
  });

  it.each(['is moved away', 'is replaced'])('one that %s while it is in use', async (how) => {
    const path = await filled();
    const file = join(path, 'gate.db');
    const state = await open(path);
    renameSync(file, `${file}.old`);
    if (how === 'is replaced') copyFileSync(`${file}.old`, file);
    await expect(async () => state.budget.reserve('p', 100)).rejects.toMatchObject(unusable(/in use/));
    state.close();
  });

  it('one of a killed process whose log is gone, until somebody says so', async () => {
    const path = await filled();
    const state = await open(path);
    await state.sessions.taint('s2', 'p', 'corruption', 'it read one');
    // As they are at this moment, which is all that a killed process leaves.
    const killed = directory();
    for (const name of readdirSync(path)) copyFileSync(join(path, name), join(killed, name));
    const whole = directory();
    for (const name of readdirSync(killed)) copyFileSync(join(killed, name), join(whole, name));
    rmSync(join(killed, 'gate.db-wal'));
    await expect(open(killed)).rejects.toMatchObject(
      unusable(/gate\.db-wal is gone; .*gate\.db-shm to go on/),
    );
    rmSync(join(killed, 'gate.db-shm'));
    const acknowledged = await open(killed);
    expect(await acknowledged.sessions.list('p')).toHaveLength(1);
    acknowledged.close();
    const found = await open(whole);
    expect(await found.sessions.list('p')).toHaveLength(2);
    found.close();
    state.close();
  });

  it('one with a taint that nobody knows', async () => {
    const path = await filled();
    const database = new DatabaseSync(join(path, 'gate.db'));
    database.exec(`UPDATE taints SET taint = 'unheard'`);
    database.close();
    const state = await open(path);
    await expect(async () => state.sessions.taints('s', 'p', 'user')).rejects.toMatchObject(
      unusable(/unheard/),
    );
    state.close();
  });
});

describe('a database that is damaged anywhere', () => {
  /** What is remembered after the damage; `undefined`: it was refused. */
  async function rememberedIn(bytes: Buffer): Promise<object | undefined> {
    const path = directory();
    writeFileSync(join(path, 'gate.db'), bytes);
    let state: State | undefined;
    try {
      state = await open(path);
      return await whatIsRemembered(state);
    } catch (error) {
      if (!(error instanceof SandboxError) || error.code !== 'state.unusable') throw error;
      return undefined;
    } finally {
      state?.close();
    }
  }

  it('remembers everything or is refused: cut off, and with any part of it zeroed', {
    timeout: 60_000,
  }, async () => {
    const path = await filled();
    const state = await open(path);
    const before = await whatIsRemembered(state);
    state.close();
    expect(before).toMatchObject({ used: 5, taints: ['secret'], waiting: 1 });
    const whole = readFileSync(join(path, 'gate.db'));
    expect(await rememberedIn(whole)).toEqual(before);
    let refused = 0;
    for (let at = 0; at < whole.length; at += 512) {
      const zeroed = Buffer.from(whole).fill(0, at, Math.min(whole.length, at + 4096));
      const sector = Buffer.from(whole).fill(0, at, at + 512);
      for (const bytes of [whole.subarray(0, at), zeroed, sector]) {
        const found = await rememberedIn(bytes);
        if (found === undefined) refused += 1;
        else expect({ at, found }).toEqual({ at, found: before });
      }
    }
    expect(refused).toBeGreaterThan(whole.length / 512);
  });
});

it('a database of the version before, without an id, is kept as it is', async () => {
  const path = directory();
  const database = new DatabaseSync(join(path, 'gate.db'));
  database.exec(`PRAGMA journal_mode = WAL; ${MIGRATIONS[0]}; PRAGMA user_version = 1`);
  database.exec(`INSERT INTO budgets VALUES ('p', 3)`);
  database.close();
  const state = await open(path);
  expect(await state.budget.used('p')).toBe(3);
  state.close();
  const again = new DatabaseSync(join(path, 'gate.db'));
  expect(again.prepare('PRAGMA application_id').get()).toEqual({ application_id: 0x5362526e });
  again.close();
});

it('drops no lock of another one in the same process when it is opened', async () => {
  const path = directory();
  const first = await open(path);
  await remember(first);
  const index = `:${statSync(join(path, 'gate.db-shm')).ino} `;
  const locks = () => readFileSync('/proc/locks', 'utf8').split(index).length - 1;
  const before = locks();
  expect(before).toBeGreaterThan(0);
  // A fresh log is empty until something is written.
  const second = await open(path);
  const third = await open(path);
  expect(locks()).toBe(before);
  for (const state of [first, second, third]) state.close();
});

it('leaves nothing beside the database when it is made', async () => {
  const path = directory();
  const states = await Promise.all(Array.from({ length: 8 }, () => open(path)));
  for (const state of states) state.close();
  expect(readdirSync(path).filter((name) => !/^gate\.db(-wal|-shm)?$/.test(name))).toEqual([]);
});

/** As a process that was killed leaves it, without the file itself. */
async function leaveLog(file: string): Promise<void> {
  const state = await open(join(file, '..'));
  await remember(state);
  const log = readFileSync(`${file}-wal`);
  state.close();
  rmSync(file);
  writeFileSync(`${file}-wal`, log);
}
