import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import type { Terminal } from '../../../../src/gate/approvals/terminal.ts';
import { askOn } from '../../../../src/gate/approvals/terminal-approver.ts';
import type { ApprovalAnswer, ApprovalRequest, Command } from '../../../../src/model/index.ts';
import { sampleRequest } from '../../../support/approvals.ts';

beforeEach(() => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance'] });
});
afterEach(() => {
  vi.useRealTimers();
});

function fakeTerminal() {
  let listener: (text: string | undefined) => void = () => {};
  const seen = { output: '', drained: 0, closed: 0 };
  const terminal: Terminal = {
    columns: 80,
    write(text) {
      seen.output += text;
    },
    drain() {
      seen.drained += 1;
    },
    onInput(given) {
      listener = given;
    },
    close() {
      seen.closed += 1;
    },
  };
  return { terminal, seen, type: (text: string | undefined) => listener(text) };
}

function ask(session?: string, changes: Partial<ApprovalRequest> = {}) {
  const fake = fakeTerminal();
  const over = new AbortController();
  const state: { answer: ApprovalAnswer | undefined; interrupted: boolean } = {
    answer: undefined,
    interrupted: false,
  };
  const answered = askOn(fake.terminal, sampleRequest({ session, ...changes }), {
    end: performance.now() + 60_000,
    signal: over.signal,
    onInterrupt: () => {
      state.interrupted = true;
    },
  }).then((answer) => {
    state.answer = answer;
    return answer;
  });
  return { ...fake, over, state, answered };
}

/** Asks, and waits until keys count. */
function askAndListen(session?: string) {
  const asking = ask(session);
  vi.advanceTimersByTime(300);
  return asking;
}

const yes = (scope: string) => ({ approved: true, scope, by: 'terminal' });
const DENIED = { approved: false, reason: 'denied', by: 'terminal' };

describe('a question on a terminal', () => {
  it.each([
    ['y\r', yes('once')],
    ['yes\r', yes('once')],
    ['YES\n', yes('once')],
    [' yes \r', yes('once')],
    ['x\x7fy\r', yes('once')],
    ['xyz\x15y\r', yes('once')],
    ['n\r', DENIED],
    ['no\r', DENIED],
    ['\r', DENIED],
    ['\x03', DENIED],
    ['\x04', DENIED],
    ['\x1c', DENIED],
    ['y\x03', DENIED],
  ])('%j is answered', async (text, answer) => {
    const { type, answered, seen } = askAndListen();
    type(text);
    expect(await answered).toEqual(answer);
    expect(seen.closed).toBe(1);
  });

  it('the end of the terminal is a no that nobody said', async () => {
    const { type, answered } = askAndListen();
    type(undefined);
    expect(await answered).toMatchObject({
      approved: false,
      reason: 'failed',
      detail: 'the terminal went away',
    });
  });

  it.each([
    'o',
    'once',
    'ye',
    'yy',
    'yess',
    'yés',
    's',
    'session',
    '1',
    'y; a',
    'd',
    'deny',
    'yes'.repeat(10),
  ])('%j is none of the choices, and is asked again', async (text) => {
    const { type, seen, answered, state } = askAndListen();
    type(`${text}\r`);
    expect(seen.output).toContain('Please type y, a or n, or m to see more: ');
    await Promise.resolve();
    expect(state.answer).toBeUndefined();
    vi.advanceTimersByTime(300);
    type('\r');
    expect(await answered).toEqual(DENIED);
  });

  it.each([
    ['a', 'always', undefined],
    ['always', 'always', undefined],
    ['s', 'session', 'my-session'],
  ] as const)('%j has to be confirmed', async (text, scope, session) => {
    const { type, seen, answered } = askAndListen(session);
    type(`${text}\r`);
    expect(seen.output).toMatch(/\[y\]es {2}\[n\]o: $/);
    if (session !== undefined)
      expect(seen.output.replace(/\s+/g, ' ')).toContain(`in the session ${session} of uid:1000`);
    vi.advanceTimersByTime(300);
    type('yes\r');
    expect(await answered).toEqual(yes(scope));
  });

  it.each(['', 'a', 'always', 'once', 'no', 'n', 'm'])('%j does not confirm', async (text) => {
    const { type, answered } = askAndListen();
    type('always\r');
    vi.advanceTimersByTime(300);
    type(`${text}\r`);
    expect(await answered).toEqual(DENIED);
  });

  it('one paste does not answer and confirm', async () => {
    const { type, state, answered } = askAndListen();
    type('always\ryes\r');
    await Promise.resolve();
    expect(state.answer).toBeUndefined();
    vi.advanceTimersByTime(300);
    type('\r');
    expect(await answered).toEqual(DENIED);
  });

  it('what is typed before somebody can have read it is not heard, Ctrl-C excepted', async () => {
    const { type, seen, state, answered } = ask();
    vi.advanceTimersByTime(299);
    type('y\r');
    await Promise.resolve();
    expect(state.answer).toBeUndefined();
    expect(seen.drained).toBe(0);
    vi.advanceTimersByTime(1);
    expect(seen.drained).toBe(1);
    type('\r');
    expect(await answered).toEqual(DENIED);
    const other = ask();
    other.type('\x03');
    expect(await other.answered).toEqual(DENIED);
    expect(other.state.interrupted).toBe(true);
  });

  it.each([
    ['an arrow key', ['\x1b[A', 'y\r']],
    ['a report of the terminal', ['\x1b]lyes\r']],
    ['a report in pieces', ['\x1b', ']l', 'yes', '\r']],
    ['a paste', ['\x1b[200~yes\x1b[201~\r']],
    ['an escape behind a word', ['yes\x1b[A\r']],
    ['an escape that was rubbed out', ['\x1b\x15\x7f\x7fyes\r']],
  ])('%s is no answer, and asked again', async (_, pieces) => {
    const { type, seen, state, answered } = askAndListen();
    for (const piece of pieces) type(piece);
    await Promise.resolve();
    expect(state.answer).toBeUndefined();
    expect(seen.output).toContain('Please type');
    // A second line of the same is not heard.
    type('y\r');
    vi.advanceTimersByTime(300);
    type('\r');
    expect(await answered).toEqual(DENIED);
  });

  it('an escape does not confirm', async () => {
    const { type, answered } = askAndListen();
    type('always\r');
    vi.advanceTimersByTime(300);
    type('\x1b[Ayes\r');
    expect(await answered).toEqual(DENIED);
  });

  it('expires', async () => {
    const { answered, seen } = ask();
    vi.advanceTimersByTime(60_000);
    expect(await answered).toMatchObject({ approved: false, reason: 'expired' });
    expect(seen.output).toMatch(/--- expired ---\n$/);
    expect(seen.closed).toBe(1);
  });

  it('ends when nobody waits any more', async () => {
    const { answered, over, seen } = ask();
    over.abort();
    expect(await answered).toMatchObject({ approved: false, reason: 'failed' });
    expect(seen.closed).toBe(1);
  });

  it('that cannot be shown is a no', async () => {
    const { terminal } = fakeTerminal();
    const broken: Terminal = {
      ...terminal,
      write() {
        throw new Error('EIO');
      },
    };
    const options = { end: 60_000, signal: undefined, onInterrupt: undefined };
    expect(await askOn(broken, sampleRequest(), options)).toMatchObject({
      approved: false,
      reason: 'failed',
    });
  });

  it.each<[Command, string]>([
    ['ls -l', '| ls -l\n'],
    [['rm', 'a b'], "| rm 'a b'\n"],
    ['ls\nrm -r x', '| ls\n| rm -r x\n'],
  ])('is short, and begins with the command: %j', (command, shown) => {
    const { seen } = ask(undefined, { command, environment: [] });
    expect(seen.output).toBe(
      `\n${shown}  git push sends data\n  In: /work/project\n[y]es once  [a]lways  [n]o: `,
    );
  });

  it('says nothing more to those who have answered, and why there is no answer to others', async () => {
    for (const [text, last] of [
      ['y\r', 'y\n'],
      ['n\r', 'n\n'],
      ['\x04', '\n'],
    ] as const) {
      const { type, seen, answered } = askAndListen();
      seen.output = '';
      type(text);
      await answered;
      expect(seen.output).toBe(last);
    }
  });

  it('of a long command says so again where the answer is typed', () => {
    const { seen } = ask(undefined, { command: 'ls\n'.repeat(20) });
    expect(seen.output).toMatch(/\n {2}The command stands above: 21 lines, 60 characters\.\n\[y\]es once/);
  });

  it('shows everything when it is asked to, and goes on asking', async () => {
    const { type, seen, answered } = askAndListen();
    expect(seen.output).not.toContain('Profile: workspace-write');
    for (const word of ['m', 'more']) {
      seen.output = '';
      type(`${word}\r`);
      expect(seen.output).toContain('\n  Profile: workspace-write\n');
      expect(seen.output).toMatch(/\n\[y\]es once [^\n]*$/);
      vi.advanceTimersByTime(300);
    }
    type('y\r');
    expect(await answered).toEqual(yes('once'));
  });

  it('says which keys there are', () => {
    const { type, seen } = askAndListen('s');
    type('q\r');
    expect(seen.output).toContain('Please type y, s, a or n, or m to see more: ');
  });

  it('offers the session only where there is one', () => {
    expect(ask().seen.output).not.toContain('ession');
    expect(ask('s').seen.output).toContain('[y]es once  [s]ession  [a]lways  [n]o: ');
  });
});
