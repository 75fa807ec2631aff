import { describe, expect, it } from 'vitest';
import { approvalRequestMaker } from '../../../src/gate/index.ts';
import { profile } from '../confine/plan/fixtures.ts';

const make = approvalRequestMaker({
  policy: profile('workspace-write'),
  plan: undefined,
  env: {},
  given: () => new Set(),
  principal: 'p',
  session: undefined,
});
const fingerprintOf = (file: string, isOpen = false, once = 'a') =>
  make({
    command: 'bash x',
    cwd: '/w',
    decision: { verdict: 'ask', risk: 'medium', reach: 'local', reasons: [] },
    effects: {
      parts: [
        {
          source: 'bash x',
          executable: '/bin/sh',
          directories: ['/w'],
          files: () => [file],
          isOpen,
          unseen: () => (isOpen ? ['its input'] : []),
          ...{ removes: [], writes: [], overwrites: [], matches: [] },
          remarks: [],
        },
      ],
      ...{ reads: [], writes: [], executes: [], patterns: [], searches: [], flags: [], text: 'bash x' },
    },
    ...{ variables: {}, changed: [], details: [], once },
  }).fingerprint;

describe('the fingerprint of a request', () => {
  it('stays as long as nothing changes, whether a file is there or not', () => {
    expect(fingerprintOf('/bin/ls')).toBe(fingerprintOf('/bin/ls'));
    expect(fingerprintOf('/no/such/file')).toBe(fingerprintOf('/no/such/file'));
    expect(fingerprintOf('/bin/ls')).not.toBe(fingerprintOf('/bin/cat'));
  });

  it('never stays for a file that cannot be looked at', () => {
    const file = `/tmp/${'x'.repeat(300)}`;
    expect(fingerprintOf(file)).not.toBe(fingerprintOf(file));
  });

  it('of an open command is that of one request', () => {
    expect(fingerprintOf('/bin/ls', true, 'a')).toBe(fingerprintOf('/bin/ls', true, 'a'));
    expect(fingerprintOf('/bin/ls', true, 'a')).not.toBe(fingerprintOf('/bin/ls', true, 'b'));
    expect(fingerprintOf('/bin/ls', false, 'a')).toBe(fingerprintOf('/bin/ls', false, 'b'));
  });
});
