import { describe, expect, it } from 'vitest';
import { SandboxError } from '../../../src/base/errors/sandbox-error.ts';
import { readOptions } from '../../../src/run/validation.ts';

const WRONG: readonly (readonly [keyof typeof readOptions, unknown])[] = [
  ...[
    ...[{ timeout: '1' }, { timeout: Number.NaN }, { timeout: 1e300 }, { idleTimeout: -1 }],
    ...[{ signal: {} }, { env: { A: 1 } }, { env: { 'A=B': 'x' } }, { env: { '': 'x' } }, { env: 'a' }],
    ...[{ cwd: 1 }, { input: {} }, { stdin: 'x' }, { stdio: [0] }, { onOutput: 'x' }, { combined: 1 }],
    ...[{ approved: 'yes' }, { approved: { fingerprint: 1 } }, { approved: { fingerprint: 'a', x: 1 } }],
    ...[{ taints: ['x'] }, { taints: 'x' }, { encoding: 'latin1' }, { escapes: true }, { background: 'x' }],
    ...[{ maxOutput: -1 }, { maxOutput: 0.5 }, { maxOutput: { head: 1 } }, { maxOutput: 2 ** 28 }],
    ...[{ maxOutput: { head: 1, tail: 1, x: 1 } }, { maxOutput: { head: 2 ** 27, tail: 1 } }],
    ...[{ spill: { maxBytes: -1 } }, { spill: { maxBytes: 1, path: 'x' } }, { spill: 'x' }],
    ...[{ pty: { cols: 0, rows: 1 } }, { pty: { cols: 1.5, rows: 1 } }, { pty: { cols: 1, rows: 1, x: 1 } }],
    ...[{ pty: '80x24' }, { tiemout: 1 }, null, [], 'x'],
  ].map((options) => ['run', options] as const),
  ...[{ input: 'x' }, { timeout: '1' }].map((options) => ['spawn', options] as const),
  ...[{ timeout: 1 }, { cwd: 1 }].map((options) => ['check', options] as const),
  ...[{ env: { A: undefined } }, { restore: 1 }, { x: 1 }].map((options) => ['session', options] as const),
  ...[{ env: { 'A;x': '1' } }, { env: { A: 'a\0b' } }, { approved: { fingerprint: 'f' } }, { cwd: '/' }].map(
    (options) => ['turn', options] as const,
  ),
  ...[
    ...[{ limits: { memory: -1 } }, { limits: { memory: 1.5 } }, { limits: { mem: 1 } }, { autonomy: 'x' }],
    ...[{ policy: 1 }, { session: {} }, { gate: 1 }, { backend: 'x' }, { readable: '/usr' }, { ask: 'x' }],
    ...[{ readable: [1] }, { principal: '' }, { workspace: 1 }, { policyFiles: 'no' }, { polciy: {} }],
  ].map((options) => ['sandbox', options] as const),
  ...[[], ['a', 1], undefined, null, 1, {}].map((command) => ['command', command] as const),
];

describe('options and commands of the library', () => {
  it.each(WRONG)('%s: %j is refused in one line that says what it must be', (kind, given) => {
    const read = readOptions[kind] as (given: unknown) => unknown;
    let refusal: unknown;
    try {
      read(given);
    } catch (error) {
      refusal = error;
    }
    expect(refusal).toBeInstanceOf(SandboxError);
    const { code, message } = refusal as SandboxError;
    expect(code).toBe('usage.invalid');
    expect(message).toMatch(/^[^\n]*( must be | has no option )[^\n]*$/);
    // The library's own words for it say too little of an option.
    expect(message).not.toMatch(/Invalid|Too (small|big)|Unrecognized|expected/);
  });

  it('are copies: what was validated is what is used', () => {
    const env = { A: 'x' };
    const command: [string, ...string[]] = ['true'];
    const read = readOptions.run({ env, timeout: 5 });
    const words = readOptions.command(command);
    env.A = 'y';
    command.push('more');
    expect(read).toEqual({ env: { A: 'x' }, timeout: 5 });
    expect(words).toEqual(['true']);
  });

  it('take any object for variables, and each of them', () => {
    expect(readOptions.sandbox({ env: process.env as Record<string, string> }).env).toEqual({
      ...process.env,
    });
    const odd = JSON.parse('{"__proto__":"x"}');
    expect(Object.entries(readOptions.run({ env: odd }).env ?? {})).toEqual([['__proto__', 'x']]);
    expect(() => readOptions.run({ env: JSON.parse('{"__proto__":1}') })).toThrow(/env must be/);
  });

  it('cannot throw what has no code', () => {
    const maxOutput = {
      get head(): number {
        throw new TypeError('not now');
      },
      tail: 1,
    };
    expect(() => readOptions.run({ maxOutput })).toThrow(SandboxError);
  });

  it('take what is allowed', () => {
    const signal = AbortSignal.abort();
    const onOutput = () => {};
    const options = { cwd: '/', env: { A: undefined }, spill: { maxBytes: Infinity }, signal, onOutput };
    expect(readOptions.run(options)).toEqual(options);
    expect(readOptions.run({ background: true, maxOutput: { head: 1, tail: 2 } })).toMatchObject({
      background: true,
    });
  });
});
