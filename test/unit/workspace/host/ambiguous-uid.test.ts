import { describe, expect, it } from 'vitest';
import { ambiguousUid } from '../../../../src/confine/probe.ts';

const host = (map: string) => (path: string) => (path.endsWith('uid_map') ? map : '65534\n');

describe('the user that everybody may be', () => {
  it('is nobody where everybody has an id', () => {
    expect(ambiguousUid(host('         0          0 4294967295\n'))).toBeUndefined();
  });
  it.each([
    ['of one user', '         0       1000          1\n'],
    ['of a container', '0 1000 1\n1 100000 65536\n'],
    ['without a map', ''],
  ])('is the overflow user in a namespace %s', (_, map) => {
    expect(ambiguousUid(host(map))).toBe(65534);
  });
  it('is nobody where the kernel knows no user namespaces', () => {
    const missing = () => {
      throw new Error('ENOENT');
    };
    expect(ambiguousUid(missing)).toBeUndefined();
  });
});
