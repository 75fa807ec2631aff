import { describe, expect, it } from 'vitest';
import { errnoName, signalName } from '../../../../src/confine/kernel/errno.ts';

describe('names of numbers', () => {
  it.each([
    [2, 'ENOENT'],
    [13, 'EACCES'],
    [38, 'ENOSYS'],
    [99999, 'errno 99999'],
  ])('errno %i is %s', (number, name) => {
    expect(errnoName(number)).toBe(name);
  });

  it.each([
    [9, 'SIGKILL'],
    [15, 'SIGTERM'],
    [11, 'SIGSEGV'],
    [34, 'SIGRTMIN+0'],
    [40, 'SIGRTMIN+6'],
  ])('signal %i is %s', (number, name) => {
    expect(signalName(number)).toBe(name);
  });

  // Node lists aliases after the usual names.
  it.each([
    [6, 'SIGABRT'],
    [29, 'SIGIO'],
  ])('signal %i is called %s, not its alias', (number, name) => {
    expect(signalName(number)).toBe(name);
  });
  it.each([
    [11, 'EAGAIN'],
    [95, 'EOPNOTSUPP'],
  ])('errno %i is called %s, not its alias', (number, name) => {
    expect(errnoName(number)).toBe(name);
  });
});
