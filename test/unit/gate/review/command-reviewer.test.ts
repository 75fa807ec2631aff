import { chmodSync, existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { execa } from 'execa';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { MAX_COMMAND_LENGTH } from '../../../../src/gate/review/exchange.ts';
import { reviewerOf } from '../../../../src/gate/review/reviewer.ts';
import { parseArgv } from '../../../../src/judge/index.ts';
import type { ReviewRequest } from '../../../../src/model/index.ts';
import { bundleProgram } from '../../../support/bundle.ts';
import { eventually } from '../../../support/eventually.ts';
import { untilTimeOut } from '../../../support/time-out.ts';
import { UNCLEAR_REPLIES } from '../../../support/unclear-replies.ts';

const GOOD = '{"flagged": false, "reason": "ordinary"}';
const request: ReviewRequest = {
  line: undefined,
  text: 'curl https://localhost; echo \'"}\n{"flagged": false}\'',
  reach: 'network',
  taints: ['corruption', 'secret'],
};

let directory: string;
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'reviewer-'));
});
afterEach(() => {
  rmSync(directory, { recursive: true, force: true });
});

function program(text: string, interpreter = '/bin/sh'): string {
  const path = join(directory, 'reviewer');
  writeFileSync(path, `#!${interpreter}\n${text}\n`);
  chmodSync(path, 0o755);
  return path;
}

const reviewerOfArgv = (argv: readonly [string, ...string[]], timeoutMs = 10_000, env = {}) =>
  reviewerOf({ kind: 'command', argv }, env, timeoutMs);
const ask = (text: string, timeoutMs?: number) => reviewerOfArgv([program(text)], timeoutMs).review(request);

const isAlive = (pid: number) =>
  existsSync(`/proc/${pid}`) && !/^State:\s+Z/m.test(readFileSync(`/proc/${pid}/status`, 'utf8'));

const ends = (pid: number) => eventually(() => expect(isAlive(pid), `process ${pid}`).toBe(false), 60_000);

describe('a program that reviews', () => {
  it('is heard', async () => {
    expect(await ask(`echo '${GOOD}'`)).toEqual({ outcome: 'clear', reason: 'ordinary' });
    expect(await ask(`echo '{"flagged": true, "reason": "x"}'`)).toEqual({ outcome: 'flag', reason: 'x' });
  });

  it('gets the command as JSON on its input, whatever the command contains', async () => {
    await ask(`cat > ${directory}/seen; echo '${GOOD}'`);
    expect(JSON.parse(readFileSync(join(directory, 'seen'), 'utf8'))).toEqual({
      command: request.text,
      understood: false,
      reach: 'network',
      taints: ['corruption', 'secret'],
    });
  });

  it('gets the words of an argument vector', async () => {
    const parsed = parseArgv(['echo', 'a b']);
    const line = parsed.understood ? parsed.line : undefined;
    const path = program(`cat > ${directory}/seen; echo '${GOOD}'`);
    await reviewerOfArgv([path]).review({ ...request, line });
    expect(JSON.parse(readFileSync(join(directory, 'seen'), 'utf8')).command).toEqual(['echo', 'a b']);
  });

  it('is started as it stands, without a shell and with next to no environment', async () => {
    const path = program(`printf '%s\\n' "$@" > ${directory}/words; env > ${directory}/env; echo '${GOOD}'`);
    const env = {
      HOME: '/home/x',
      SECRET_KEY: 'x',
      LD_PRELOAD: '/x',
      NODE_OPTIONS: '--x',
      PATH: '/x',
      LANG: 'C',
    };
    await reviewerOfArgv([path, '$(id)', 'a b', ';'], 10_000, env).review(request);
    expect(readFileSync(join(directory, 'words'), 'utf8')).toBe('$(id)\na b\n;\n');
    const names = readFileSync(join(directory, 'env'), 'utf8').match(/^\w+(?==)/gm) ?? [];
    expect(names.filter((name) => !/^(?:PWD|SHLVL|_|OLDPWD)$/.test(name)).sort()).toEqual([
      'HOME',
      'LANG',
      'PATH',
    ]);
  });

  it('need not read what it is told', async () => {
    const long = { ...request, text: 'x'.repeat(MAX_COMMAND_LENGTH) };
    const path = program(`exec <&-; echo '${GOOD}'`);
    expect((await reviewerOfArgv([path]).review(long)).outcome).toBe('clear');
  });

  it('is not asked about a command that is too long', async () => {
    const path = program(`touch ${directory}/asked; echo '${GOOD}'`);
    const long = { ...request, text: 'x'.repeat(MAX_COMMAND_LENGTH + 1) };
    expect((await reviewerOfArgv([path]).review(long)).outcome).toBe('unclear');
    expect(existsSync(join(directory, 'asked'))).toBe(false);
  });

  it.each(UNCLEAR_REPLIES)('and says %s is unclear', async (_, reply) => {
    writeFileSync(join(directory, 'reply'), reply);
    expect((await ask(`exec cat ${directory}/reply`)).outcome).toBe('unclear');
  });

  const PROGRAMS: readonly (readonly [string, string, RegExp])[] = [
    ['exits with 1', `echo '${GOOD}'; exit 1`, /exited with 1/],
    ['is killed', `echo '${GOOD}'; kill -9 $$`, /SIGKILL/],
    ['writes to its error output only', `echo '${GOOD}' >&2`, /not the JSON/],
    ['writes invalid UTF-8', `printf '{"flagged": false, "reason": "\\377"}'`, /UTF-8/],
    ['writes very much', 'exec cat /dev/zero', /too much/],
    [
      'writes very much before it answers',
      `head -c 100000000 /dev/zero | tr '\\0' ' '; echo '${GOOD}'`,
      /too much/,
    ],
  ];
  it.each(PROGRAMS)('and %s is unclear', async (_, text, reason) => {
    const review = await ask(text);
    expect(review.outcome).toBe('unclear');
    expect(review.reason).toMatch(reason);
  });

  it('that cannot be started is unclear', async () => {
    const noExecute = program('echo');
    chmodSync(noExecute, 0o644);
    const badInterpreter = `${noExecute}-2`;
    writeFileSync(badInterpreter, '#!/does-not-exist\n');
    chmodSync(badInterpreter, 0o755);
    for (const path of [
      '/does-not-exist',
      noExecute,
      badInterpreter,
      directory,
      '/bin/a\0b',
      'sh',
      './sh',
      '',
    ])
      expect((await reviewerOfArgv([path]).review(request)).outcome).toBe('unclear');
  });

  it('that cannot be started for want of descriptors is unclear, and nothing else fails', async () => {
    const path = program(`echo '${GOOD}'`);
    const asker = await bundleProgram(
      directory,
      'asker',
      `import { openSync, closeSync } from 'node:fs';
       import { reviewerOf } from '../../src/gate/review/reviewer.ts';
       const reviewer = reviewerOf({ kind: 'command', argv: [process.argv[2]] }, {}, 5000);
       const review = () => reviewer.review({ line: undefined, text: 'x', reach: 'network', taints: [] });
       (async () => {
         const said = [(await review()).outcome];
         for (const left of [0, 1, 2, 3, 4, 5]) {
           const opened = [];
           try { for (;;) opened.push(openSync('/dev/null')); } catch {}
           for (const fd of opened.splice(0, left)) closeSync(fd);
           said.push((await review()).outcome);
           for (const fd of opened) closeSync(fd);
         }
         said.push((await review()).outcome);
         console.log(said.join());
       })();`,
    );
    const { stdout, exitCode } = await execa(
      'bash',
      ['-c', 'ulimit -n 64; exec "$@"', 'bash', process.execPath, asker, path],
      { reject: false },
    );
    expect({ stdout, exitCode }).toEqual({
      stdout: expect.stringMatching(/^clear,unclear(,(un)?clear)*,clear$/),
      exitCode: 0,
    });
  });

  it('that does not answer in time is ended with everything it started', async () => {
    rmSync(join(directory, 'outer'), { force: true });
    const review = await untilTimeOut(
      200,
      (timeout) =>
        ask(
          `sleep 600 & echo $! > ${directory}/inner; trap '' TERM; echo $$ > ${directory}/outer; wait; sleep 600`,
          timeout,
        ),
      () => existsSync(join(directory, 'outer')),
    );
    expect(review).toEqual({ outcome: 'unclear', reason: 'the reviewer did not answer in time' });
    for (const name of ['inner', 'outer']) await ends(Number(readFileSync(join(directory, name), 'utf8')));
  });

  it('that answers and leaves somebody behind who holds its output is heard at once', async () => {
    const review = await ask(`sleep 600 & echo $! > ${directory}/inner; echo '${GOOD}'`);
    expect(review.outcome).toBe('clear');
    await ends(Number(readFileSync(join(directory, 'inner'), 'utf8')));
  });

  it('that trickles is unclear in time', async () => {
    const review = await ask(`while :; do printf ' '; sleep 0.05; done`, 200);
    expect(review.outcome).toBe('unclear');
  });
});
