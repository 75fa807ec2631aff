// A file through a pipe into a capture with a cap, and what it is compared with: the same file through a pipe into nothing.
import { spawn } from 'node:child_process';
import { closeSync, openSync, unlinkSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import { median } from '../measure.mjs';
import { printTable } from '../table.mjs';

const MEGABYTE = 1024 * 1024;
const PLAIN = 'cat FILE | cat > /dev/null';
const OURS = "sandbox.run(['cat', FILE]), 1 MiB kept";

function plainPipe(file) {
  return new Promise((done, failed) => {
    const child = spawn('/bin/sh', ['-c', 'cat "$0" | cat > /dev/null', file], { stdio: 'ignore' });
    child.on('error', failed);
    child.on('exit', (code) => (code === 0 ? done() : failed(new Error(`cat ended with ${code}`))));
  });
}

export async function measureCapture({ sandbox, workspace, counts }) {
  const file = join(workspace, 'large');
  const fd = openSync(file, 'w');
  const block = Buffer.alloc(MEGABYTE, 'sixteen letters\n');
  for (let i = 0; i < counts.megabytes; ++i) writeSync(fd, block);
  closeSync(fd);
  const contenders = {
    [PLAIN]: () => plainPipe(file),
    [OURS]: async () => {
      const { outputBytes } = await sandbox.run(['cat', file]);
      if (outputBytes.stdout !== counts.megabytes * MEGABYTE) throw new Error('not all of it arrived');
    },
  };
  const rates = { [PLAIN]: [], [OURS]: [] };
  for (let round = -1; round < counts.rounds; ++round) {
    for (const [name, start] of Object.entries(contenders)) {
      const begin = performance.now();
      await start();
      const seconds = (performance.now() - begin) / 1000;
      if (round >= 0) rates[name].push(counts.megabytes / seconds);
    }
  }
  unlinkSync(file);
  return { counts, plain: median(rates[PLAIN]), ours: median(rates[OURS]) };
}

export function printCapture({ counts, plain, ours }) {
  printTable(
    `A file of ${counts.megabytes} MB through a pipe (median of ${counts.rounds})`,
    ['', 'MB/s'],
    [
      [PLAIN, plain.toFixed(0)],
      [OURS, ours.toFixed(0)],
    ],
  );
}

export function captureGoals({ plain, ours }) {
  return [
    {
      what: 'captured with a cap : through a pipe into nothing',
      value: ours / plain,
      limit: 0.8,
      unit: ' x',
      atLeast: true,
    },
  ];
}
