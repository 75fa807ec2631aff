import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { build } from 'esbuild';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';

const SOURCE = fileURLToPath(new URL('../../../../src/gate/review/reviewer.ts', import.meta.url));
const COMMAND = { kind: 'command', argv: ['/bin/echo', '{"flagged": false, "reason": ""}'] };
const MODEL = { kind: 'model', model: 'm', baseUrl: 'http://127.0.0.1:9', keyVariable: 'K', maxTokens: 9 };

let directory: string;
beforeAll(async () => {
  // Where no package can be found.
  directory = mkdtempSync(join(tmpdir(), 'without-sdk-'));
  const options = {
    entryPoints: [SOURCE],
    bundle: true,
    platform: 'node' as const,
    external: ['@anthropic-ai/sdk'],
  };
  await build({ ...options, format: 'esm', outfile: join(directory, 'reviewer.mjs') });
  await build({
    ...options,
    format: 'cjs',
    supported: { 'dynamic-import': false },
    outfile: join(directory, 'reviewer.cjs'),
  });
});
afterAll(() => {
  rmSync(directory, { recursive: true, force: true });
});

function reviewWith(file: string, settings: unknown): unknown {
  const script = join(directory, 'script.mjs');
  const request = { line: undefined, text: 'ls', reach: 'network', taints: [] };
  writeFileSync(
    script,
    `import { reviewerOf } from './${file}';
     const reviewer = reviewerOf(${JSON.stringify(settings)}, { K: 'x' }, 5000);
     console.log(JSON.stringify(await reviewer.review(${JSON.stringify(request)})));`,
  );
  return JSON.parse(execFileSync(process.execPath, [script], { encoding: 'utf8' }));
}

describe('without the SDK', () => {
  it.each(['reviewer.mjs', 'reviewer.cjs'])('%s reviews by a program', (file) => {
    expect(reviewWith(file, COMMAND)).toEqual({ outcome: 'clear' });
  });

  it.each(['reviewer.mjs', 'reviewer.cjs'])('%s says about a model that it is missing', (file) => {
    expect(reviewWith(file, MODEL)).toEqual({
      outcome: 'unclear',
      reason: 'the model gave no answer: the package @anthropic-ai/sdk is not installed beside sandbox-run',
    });
  });
});
