import { describe, expect, it } from 'vitest';
import { findFirejail } from '../../../../../src/run/other-backends/firejail/probe.ts';

const GOOD = { uid: 0, mode: 0o104755, isFile: () => true };
const DIRECTORY = { uid: 0, mode: 0o40755, isFile: () => false };
type Entry = typeof GOOD;

function find(change: Readonly<Record<string, Partial<Entry>>> = {}, installed = ['/usr/bin/firejail']) {
  return findFirejail(
    (path) => ({ ...(installed.includes(path) ? GOOD : DIRECTORY), ...change[path] }),
    (path) => (installed.includes(path) ? path : undefined),
  );
}

describe('Firejail', () => {
  it('is taken from its usual places, and only there', () => {
    expect(find()).toEqual({ path: '/usr/bin/firejail' });
    expect(find({}, ['/usr/local/bin/firejail'])).toEqual({ path: '/usr/local/bin/firejail' });
    expect(find({}, ['/home/me/bin/firejail'])).toMatchObject({
      reason: expect.stringContaining('not installed'),
    });
  });

  it.each([
    ['without its set-uid bit', { '/usr/bin/firejail': { mode: 0o100755 } }, /chmod u\+s/],
    ['of another user', { '/usr/bin/firejail': { uid: 1000 } }, /not a program of root/],
    ['that is no file', { '/usr/bin/firejail': { isFile: () => false } }, /not a program of root/],
    ['that others can write', { '/usr/bin/firejail': { mode: 0o104777 } }, /others than root can change/],
    ['in a directory that others can write', { '/usr/bin': { mode: 0o40777 } }, /can change \/usr\/bin,/],
    ['in a directory of another user', { '/usr': { uid: 5 } }, /can change \/usr,/],
  ])('%s is not trusted, and one sentence says what to do', (_, change, reason) => {
    expect(find(change)).toMatchObject({ reason: expect.stringMatching(reason) });
  });
});
