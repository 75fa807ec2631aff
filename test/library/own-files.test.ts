import { appendFileSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeEach, describe, expect, it } from 'vitest';
import { createSandbox } from '../../src/index.ts';
import { eventually } from '../support/eventually.ts';
import { makePlace } from './support.ts';

// What a command made, and nobody else worked on, can be removed without a question.

const place = makePlace();
beforeEach(() => {
  for (const name of ['made', 'notes', 'x', 'd'])
    rmSync(join(place.workspace, name), { recursive: true, force: true });
});
afterAll(() => place.dispose());

const at = (name: string) => join(place.workspace, name);

/** More than the clock of files is behind. */
const TICK_MS = 20;

/** Whether a command is asked about, and refused, after others of the same sandbox. */
async function asksAfter(
  before: readonly (string | (() => void))[],
  command: string,
  principal?: string,
): Promise<boolean> {
  await using sandbox = await createSandbox({
    workspace: place.workspace,
    ...(principal === undefined ? {} : { principal }),
    policy: {
      approval: { ask: 'nobody' },
      unsafe: { unjudged_commands: false },
      workspace: { undo: 'never' },
    },
  });
  for (const one of before) {
    if (typeof one === 'string') expect((await sandbox.run(one)).status).toBe('exited');
    else {
      one();
      // Files that are made within the tick before a command begins are not told from its own.
      const made = Date.now();
      await eventually(() => expect(Date.now()).toBeGreaterThan(made + TICK_MS));
    }
  }
  const { status, error } = await sandbox.run(command);
  expect([status, error?.code]).toEqual(
    status === 'exited' ? ['exited', undefined] : ['denied', 'command.needs_approval'],
  );
  return status === 'denied';
}

describe('a file is removed without a question', () => {
  it.each<[string, readonly (string | (() => void))[], string]>([
    ['that a command wrote', ['echo 1 > made'], 'rm made'],
    ['that a command copied', ['echo 1 > made; cp made x'], 'rm made x'],
    ['that several commands wrote to', ['echo 1 > made', 'echo 2 >> made', 'sed -i s/1/3/ made'], 'rm made'],
    ['in a directory that a command made', ['mkdir d; touch d/x'], 'rm -r d'],
    ['in a copy that a command made', ['mkdir d; touch d/x; cp -r d x'], 'rm -r x'],
    ['that a command gave another name', ['echo 1 > made', 'mv made x'], 'rm x'],
    ['in a directory that has another name now', ['mkdir d; touch d/x', 'mv d made'], 'rm -r made'],
  ])('%s', async (_, before, command) => {
    expect(await asksAfter(before, command)).toBe(false);
  });
});

describe('a file is asked about', () => {
  it.each<[string, readonly (string | (() => void))[], string]>([
    ['that was there', [() => writeFileSync(at('notes'), 'mine'), 'echo 1 > notes'], 'rm notes'],
    ['that somebody changed since', ['echo 1 > made', () => appendFileSync(at('made'), 'mine')], 'rm made'],
    [
      'that somebody put there since',
      [
        'echo 1 > made',
        () => {
          writeFileSync(at('x'), 'mine');
          renameSync(at('x'), at('made'));
        },
      ],
      'rm made',
    ],
    ['that a command moved there', [() => writeFileSync(at('notes'), 'mine'), 'mv notes made'], 'rm made'],
    ['that has another name', [() => writeFileSync(at('notes'), 'mine'), 'ln notes made'], 'rm made'],
    [
      'beside one that a command made',
      ['mkdir d; touch d/x', () => writeFileSync(at('d/notes'), 'mine')],
      'rm -r d',
    ],
    [
      'that another command wrote to without saying so',
      ['echo 1 > made', 'f=made; echo 2 >> "$f"'],
      'rm made',
    ],
  ])('%s', async (_, before, command) => {
    expect(await asksAfter(before, command)).toBe(true);
  });

  it('of another principal', async () => {
    expect(await asksAfter(['echo 1 > made'], 'true', 'one')).toBe(false);
    expect(await asksAfter([], 'rm made', 'another')).toBe(true);
    expect(readFileSync(at('made'), 'utf8')).toBe('1\n');
    expect(await asksAfter([], 'rm made', 'one')).toBe(false);
  });

  it('that was changed in the tick in which the command ended, with all its times and its size', async () => {
    // Where changes in one tick have times of their own, this is the change that any editor makes.
    expect(await asksAfter(['echo 1 > made', () => writeFileSync(at('made'), '2\n')], 'rm made')).toBe(true);
  });
});
