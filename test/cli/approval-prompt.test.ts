import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { build } from 'esbuild';
import { execa } from 'execa';
import { beforeAll, describe, expect, it } from 'vitest';
import type { ApprovalRequest } from '../../src/model/index.ts';
import { makeStatePlace, sampleRequest } from '../support/approvals.ts';
import { CLI, PTY_DRIVER } from './support.ts';

const place = makeStatePlace();
const ADDON = fileURLToPath(new URL('../../build/Release/sandbox_run.node', import.meta.url));
const ASK = join(place.stateHome, 'ask.cjs');

beforeAll(async () => {
  const entry = fileURLToPath(new URL('../support/ask-on-terminal.ts', import.meta.url));
  await build({
    entryPoints: [entry],
    outfile: ASK,
    bundle: true,
    platform: 'node',
    format: 'cjs',
    target: 'node20',
    logLevel: 'error',
  });
});

type Step =
  | { readonly expect: string }
  | { readonly send: string }
  | { readonly cook: true }
  | { readonly pause: number }
  | { readonly insist: string; readonly until: string };

/** Types a word until it stands there: the question hears nothing at first. */
const choose = (word: string): readonly Step[] => [
  { insist: `\x15${word}`, until: `\\x08?${word}` },
  { send: '\r' },
];

async function onTerminal(argv: readonly string[], steps: readonly Step[]) {
  const env = {
    PATH: process.env.PATH,
    TERM: 'xterm',
    XDG_STATE_HOME: place.stateHome,
    HOME: place.stateHome,
  };
  const input = JSON.stringify({ argv, cwd: place.stateHome, env, size: [24, 80], steps });
  const { stdout } = await execa('python3', [PTY_DRIVER], { input });
  return JSON.parse(stdout) as {
    readonly output: string;
    readonly failed: Step | null;
    readonly status: number | null;
  };
}

const asking = (request: ApprovalRequest = sampleRequest(), timeoutMs = 60_000) => [
  process.execPath,
  ASK,
  JSON.stringify(request),
  String(timeoutMs),
  ADDON,
];
const quoted = (argv: readonly string[]) =>
  argv.map((word) => `'${word.replaceAll("'", `'\\''`)}'`).join(' ');
const QUESTION: Step = { expect: '\\[y\\]es once.*\\[n\\]o: ' };
const answer = (text: string): Step => ({ expect: `ANSWER ${text}` });

describe('the prompt on a terminal', () => {
  it('shows the request, and takes a yes', async () => {
    const talk = await onTerminal(asking(), [
      { expect: '\\n\\| git push origin main' },
      { expect: '\\n  In: /work/project' },
      QUESTION,
      ...choose('y'),
      answer('{"approved":true,"scope":"once","by":"terminal"}'),
    ]);
    expect(talk).toMatchObject({ failed: null, status: 0 });
  });

  it('keeps to the width of the terminal, and shows all', async () => {
    const command = `echo ${'x'.repeat(3_000)} \u202e\x1b]0;title\x07\nrm -r build`;
    const talk = await onTerminal(asking(sampleRequest({ command })), [
      QUESTION,
      { send: '\x03' },
      answer('.*denied'),
    ]);
    expect(talk).toMatchObject({ failed: null });
    const rows = talk.output.split(/\r?\n/);
    for (const row of rows.filter((text) => !text.startsWith('ANSWER')))
      expect(row.length).toBeLessThanOrEqual(80);
    expect(rows.join('').match(/x/g)?.length).toBeGreaterThanOrEqual(3_000);
    expect(talk.output).toContain('\\u{202e}\\u{1b}]0;title\\u{7}');
    expect(talk.output).not.toContain('\x1b');
  });

  it('Enter is a no', async () => {
    const talk = await onTerminal(asking(), [
      QUESTION,
      { insist: '\r', until: 'ANSWER {"approved":false,"reason":"denied"' },
    ]);
    expect(talk).toMatchObject({ failed: null, status: 0 });
  });

  it.each([
    ['Ctrl-C', '\x03'],
    ['Ctrl-D', '\x04'],
  ])('%s is a no', async (_, key) => {
    const talk = await onTerminal(asking(), [
      QUESTION,
      { send: key },
      answer('{"approved":false,"reason":"denied"'),
    ]);
    expect(talk).toMatchObject({ failed: null, status: 0 });
  });

  it('takes the keys again that another process gave back to the kernel', async () => {
    const talk = await onTerminal(asking(), [
      QUESTION,
      { cook: true },
      { pause: 2 },
      // To the kernel it would be a signal, which nobody here answers.
      { send: '\x03' },
      answer('{"approved":false,"reason":"denied"'),
    ]);
    expect(talk).toMatchObject({ failed: null, status: 0 });
  });

  it('always has to be confirmed', async () => {
    const talk = await onTerminal(asking(), [
      QUESTION,
      ...choose('a'),
      { expect: 'until it is revoked' },
      { expect: '\\[y\\]es  \\[n\\]o: ' },
      ...choose('y'),
      answer('{"approved":true,"scope":"always"'),
    ]);
    expect(talk).toMatchObject({ failed: null, status: 0 });
  });

  it('the session is offered where there is one', async () => {
    const talk = await onTerminal(asking(sampleRequest({ session: 's-1' })), [
      QUESTION,
      ...choose('s'),
      { expect: 'in the session s-1' },
      { expect: '\\[y\\]es  \\[n\\]o: ' },
      ...choose('y'),
      answer('{"approved":true,"scope":"session"'),
    ]);
    expect(talk).toMatchObject({ failed: null, status: 0 });
  });

  it('what was typed before it came does not answer', async () => {
    const program = `echo before; read -t 0.001 nothing; ${quoted(asking())}`;
    const talk = await onTerminal(
      ['bash', '-c', program],
      [{ send: 'y\ry\ry' }, { expect: 'before' }, QUESTION, ...choose('n'), answer('.*denied')],
    );
    expect(talk).toMatchObject({ failed: null, status: 0 });
  });

  it('expires', async () => {
    const talk = await onTerminal(asking(sampleRequest(), 1_500), [QUESTION, answer('.*expired')]);
    expect(talk).toMatchObject({ failed: null, status: 0 });
  });

  it('leaves standard input to the command, and the terminal as it was', async () => {
    const program = `stty -a > before; printf 'for the command\\n' > input; { ${quoted(asking())}; cat; } < input; stty -a > after; cmp before after && echo the""same`;
    const talk = await onTerminal(
      ['bash', '-c', program],
      [QUESTION, ...choose('y'), answer('.*true'), { expect: 'for the command' }, { expect: 'thesame' }],
    );
    expect(talk).toMatchObject({ failed: null, status: 0 });
  });

  it('leaves the terminal as it was when it is ended meanwhile', async () => {
    const script = [
      `stty -a > before; ${quoted(asking())} < /dev/tty & pid=$!`,
      'until stty -a < /dev/tty | grep -q -- -icanon; do sleep 0.02; done; kill $pid; wait',
      'stty -a > after; cmp before after && echo the""same',
    ].join('\n');
    const talk = await onTerminal(['bash', '-c', script], [{ expect: 'thesame' }]);
    expect(talk).toMatchObject({ failed: null, status: 0 });
  });

  it('does not ask from the background', async () => {
    const program = `set -m; ${quoted(asking())} & wait`;
    const talk = await onTerminal(
      ['bash', '-c', program],
      [answer('{"approved":false,"reason":"failed",.*in the background')],
    );
    expect(talk).toMatchObject({ failed: null, status: 0 });
    expect(talk.output).not.toContain('[y]es');
  });

  it('does not ask where there is no terminal', async () => {
    const [program = '', ...args] = asking();
    const { stdout } = await execa('setsid', ['-w', program, ...args], { stdin: 'ignore' });
    expect(stdout).toContain('"reason":"nobody"');
  });

  it('two commands of one job ask one after the other', async () => {
    const [one, two] = ['first', 'second'].map((command) => quoted(asking(sampleRequest({ command }))));
    const talk = await onTerminal(
      ['bash', '-c', `${one} < /dev/tty & ${two} < /dev/tty; wait`],
      [
        ...[QUESTION, ...choose('y'), answer('.*true'), QUESTION],
        // When the first one ends it sets the terminal back: for a moment that echoes what nobody hears yet.
        { insist: '\x15n\r', until: 'ANSWER .*denied' },
      ],
    );
    expect(talk).toMatchObject({ failed: null, status: 0 });
    const [before = '', after = ''] = talk.output.split(/ANSWER .*true/);
    expect(before.match(/\[y\]es once/g)).toHaveLength(1);
    expect(after.match(/\[y\]es once/g)).toHaveLength(1);
  });
});

describe('approvals watch on a terminal', () => {
  const WATCH = [process.execPath, CLI, 'approvals', 'watch'];

  it('asks about what waits, and what comes, until Ctrl-C', async () => {
    const { approvals: store } = await place.open();
    const expiresAt = Date.now() + 60_000;
    const ids = [
      await store.post(sampleRequest({ command: 'number one' }), expiresAt),
      await store.post(sampleRequest({ command: 'number two' }), expiresAt + 1),
    ];
    const talk = await onTerminal(WATCH, [
      { expect: '\\| number' },
      QUESTION,
      ...choose('y'),
      { expect: '\\| number' },
      QUESTION,
      { send: '\x03' },
    ]);
    expect(talk).toMatchObject({ failed: null, status: 0 });
    const answers = await Promise.all(ids.map(async (id) => store.take(id)));
    expect(answers).toContainEqual({ approved: true, scope: 'once', by: 'watch' });
    expect(answers).toContainEqual({ approved: false, reason: 'denied', by: 'watch' });
  });

  it('does not ask about what was answered elsewhere meanwhile', async () => {
    const { approvals: store } = await place.open();
    for (const { id } of await store.list('pending')) await store.withdraw(id);
    const expiresAt = Date.now() + 60_000;
    const first = await store.post(sampleRequest({ command: 'number one' }), expiresAt);
    // Without the terminal: at its end Node sets a terminal back to how it found it, which is raw here.
    const approve = `${quoted([process.execPath, CLI, 'approvals', 'approve'])} ${first} < /dev/null > /dev/null 2>&1`;
    const isRaw = 'stty -a < /dev/tty | grep -q -- -icanon';
    const script = [
      `${quoted(WATCH)} < /dev/tty & pid=$!`,
      `until ${isRaw}; do sleep 0.02; done; ${approve}`,
      `while ${isRaw}; do sleep 0.02; done; kill $pid; wait $pid; echo "ended $?"`,
    ].join('\n');
    const talk = await onTerminal(
      ['bash', '-c', script],
      [QUESTION, { expect: '--- withdrawn' }, { expect: 'ended 0' }],
    );
    expect(talk).toMatchObject({ failed: null, status: 0 });
    expect(await store.take(first)).toMatchObject({ approved: true, by: 'command line' });
  });
});
