import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { execa } from 'execa';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { bundleProgram } from '../../support/bundle.ts';
import { open } from './fixtures.ts';

const root = mkdtempSync(join(tmpdir(), 'sandbox-run-race-test-'));
let racer: string;

beforeAll(async () => {
  racer = await bundleProgram(
    root,
    'racer',
    `import { readFileSync } from 'node:fs';
     import { openState } from '../../src/state/open-state.ts';
     process.stdout.write('ready ');
     // Ends when the starter lets go.
     readFileSync(0);
     openState(process.argv[2]).then(async ({ budget }) => {
       const reservation = await budget.reserve('p', 50);
       await reservation?.commit();
       process.stdout.write(reservation === undefined ? 'refused' : 'taken');
     });`,
  );
});
afterAll(() => rmSync(root, { recursive: true, force: true }));

it('200 processes that race for 50 actions get exactly 50', { timeout: 120_000 }, async () => {
  const state = mkdtempSync(join(root, 'state-'));
  // All are there before the first may go; the database is not.
  const racers = Array.from({ length: 200 }, () =>
    execa(process.execPath, [racer, state], { reject: false, stdin: 'pipe' }),
  );
  await Promise.all(racers.map((child) => new Promise((done) => child.stdout.once('data', done))));
  for (const child of racers) child.stdin.end();
  const said = (await Promise.all(racers)).map(({ stdout, stderr }) => stdout + stderr);
  expect(said.filter((text) => text === 'ready taken')).toHaveLength(50);
  expect(said.filter((text) => text === 'ready refused')).toHaveLength(150);
  const { budget, close } = await open(state);
  expect(await budget.used('p')).toBe(50);
  close();
});
