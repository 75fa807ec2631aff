import { describe, expect, it } from 'vitest';
import { ERROR_CODES, type ErrorCode } from '../../../src/base/errors/codes.ts';
import { SandboxError } from '../../../src/base/errors/sandbox-error.ts';

const CODES = Object.keys(ERROR_CODES) as ErrorCode[];

describe.each(CODES)('%s', (code) => {
  it('is named area.problem and says what it means in one sentence', () => {
    expect(code).toMatch(/^[a-z]+\.[a-z]+(_[a-z]+)*$/);
    expect(ERROR_CODES[code].meaning).toMatch(/^[A-Z][^\n]*\.$/);
  });

  it('exits like a shell: 125 the launcher, 126 refused, 127 not found; 123 used too much', () => {
    expect([123, 125, 126, 127]).toContain(ERROR_CODES[code].exitStatus);
    expect(ERROR_CODES[code].exitStatus === 123).toBe(code === 'limit.exceeded');
    expect(ERROR_CODES[code].exitStatus === 127).toBe(code === 'program.not_found');
    expect(new SandboxError(code, 'text').exitStatus).toBe(ERROR_CODES[code].exitStatus);
  });
});

describe('SandboxError', () => {
  it('is an error with a stable code, a message and a cause', () => {
    const cause = new Error('why');
    const error = new SandboxError('policy.invalid', 'what is wrong', { cause });
    expect(error).toBeInstanceOf(Error);
    expect(error).toMatchObject({
      name: 'SandboxError',
      code: 'policy.invalid',
      message: 'what is wrong',
      cause,
    });
    expect(String(error)).toBe('SandboxError: what is wrong');
  });

  it('says in its message what mends it, where a command does', () => {
    const error = new SandboxError('addon.unavailable', 'what is missing', { remedy: 'a command' });
    expect(error).toMatchObject({
      message: 'what is missing; to mend it: a command',
      problem: 'what is missing',
      remedy: 'a command',
    });
    expect(error).not.toHaveProperty('cause');
  });
});
