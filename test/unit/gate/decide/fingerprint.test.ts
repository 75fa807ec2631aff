import { describe, expect, it } from 'vitest';
import { type FingerprintParts, fingerprint } from '../../../../src/gate/decide/approval-request.ts';

const PARTS: FingerprintParts = {
  command: 'git push',
  cwd: '/w',
  executables: [{ name: 'git', path: '/usr/bin/git', identity: '1:2:3' }],
  environment: ['A=1', '-B'],
  profile: 'workspace-write',
  confinement: ['no network'],
  policyVersion: '7',
};
const git = { name: 'git', path: '/usr/bin/git', identity: '1:2:3' };

describe('fingerprint', () => {
  it('is the SHA-256 of the parts, the same for the same', () => {
    expect(fingerprint(PARTS)).toMatch(/^[0-9a-f]{64}$/);
    expect(fingerprint(structuredClone(PARTS))).toBe(fingerprint(PARTS));
    expect(fingerprint({ ...PARTS, environment: ['-B', 'A=1'] })).toBe(fingerprint(PARTS));
  });

  const others: readonly (readonly [string, Partial<FingerprintParts>])[] = [
    ['another command', { command: 'git push ' }],
    ['the same words as an argument vector', { command: ['git', 'push'] }],
    ['a vector of one word that reads like the string', { command: ['git push'] }],
    ['another directory', { cwd: '/w/' }],
    ['another program file', { executables: [{ ...git, path: '/usr/local/bin/git' }] }],
    ['no program file', { executables: [{ ...git, path: undefined }] }],
    ['a path that reads like none', { executables: [{ ...git, path: 'null' }] }],
    ['a changed program file', { executables: [{ ...git, identity: '1:2:4' }] }],
    ['one program more', { executables: [git, git] }],
    ['another environment', { environment: ['A=1'] }],
    ['two variables in one', { environment: ['A=1,-B'] }],
    ['another profile', { profile: 'networked' }],
    ['another confinement', { confinement: [] }],
    ['another version of the policy', { policyVersion: '8' }],
    ['half a character', { cwd: '/w\ud800' }],
    ['another half', { cwd: '/w\ufffd' }],
  ];

  it.each(others)('differs for %s', (_, change) => {
    expect(fingerprint({ ...PARTS, ...change })).not.toBe(fingerprint(PARTS));
  });

  it('differs for all of them from each other', () => {
    const all = others.map(([, change]) => fingerprint({ ...PARTS, ...change }));
    expect(new Set(all).size).toBe(all.length);
  });

  it.each([
    ['words', { command: ['a', 'b c'] }, { command: ['a b', 'c'] }],
    ['quotes in words', { command: ['a","b'] }, { command: ['a', 'b'] }],
    ['directory and profile', { cwd: '/w","x', profile: 'y' }, { cwd: '/w', profile: 'x","y' }],
  ] as const)('nothing moves from one part to the next: %s', (_, one, other) => {
    expect(fingerprint({ ...PARTS, ...one })).not.toBe(fingerprint({ ...PARTS, ...other }));
  });
});
