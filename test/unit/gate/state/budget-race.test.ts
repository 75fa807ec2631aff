import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { execa } from 'execa';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { bundleProgram } from '../../../support/bundle.ts';
import { open } from './fixtures.ts';

const root = mkdtempSync(join(tmpdir(), 'sandbox-run-race-test-'));
/** How many processes race, and how many connections to the database each of them opens. */
const PROCESSES = 20;
const EACH = 10;
let racer: string;

beforeAll(async () => {
  racer = await bundleProgram(
    root,
    'racer',
    `import { readFileSync } from 'node:fs';
     import { openState } from '../../src/gate/state/open-state.ts';
     process.stdout.write('ready\\n');
     // Ends when the starter lets go.
     readFileSync(0);
     Promise.all(
       Array.from({ length: ${EACH} }, async () => {
         const { budget } = await openState(process.argv[2]);
         const reservation = await budget.reserve('p', 50);
         await reservation?.commit();
         process.stdout.write(reservation === undefined ? 'refused\\n' : 'taken\\n');
       }),
     );`,
  );
});
afterAll(() => rmSync(root, { recursive: true, force: true }));

it('200 of 20 processes that race for 50 actions get exactly 50', { timeout: 120_000 }, async () => {
  const state = mkdtempSync(join(root, 'state-'));
  // All are there before the first may go; the database is not.
  const racers = Array.from({ length: PROCESSES }, () =>
    execa(process.execPath, [racer, state], { reject: false, stdin: 'pipe' }),
  );
  await Promise.all(racers.map((child) => new Promise((done) => child.stdout.once('data', done))));
  for (const child of racers) child.stdin.end();
  const ended = await Promise.all(racers);
  expect(ended.map(({ stderr }) => stderr).join('')).toBe('');
  const said = ended.flatMap(({ stdout }) => stdout.split('\n'));
  expect(said.filter((text) => text === 'taken')).toHaveLength(50);
  expect(said.filter((text) => text === 'refused')).toHaveLength(150);
  const { budget, close } = await open(state);
  expect(await budget.used('p')).toBe(50);
  close();
});
