import { describe, expect, it } from 'vitest';
import {
  FIREJAIL_FEATURES,
  hasFeature,
  parseVersion,
  refuseVersion,
} from '../../../../../src/run/other-backends/firejail/probe.ts';

describe('the version', () => {
  it.each([
    ['firejail version 0.9.72\n\nCompile time support:\n', [0, 9, 72]],
    ['firejail version 0.9.64.4\n', [0, 9, 64, 4]],
    ['firejail version 0.9.75~git\n', [0, 9, 75]],
    ['some news first\nfirejail version 0.9.80\n', [0, 9, 80]],
  ])('of %j is known', (output, version) => {
    expect(parseVersion(output)).toEqual(version);
  });

  it.each([[''], ['bubblewrap 0.8.0'], ['firejail version unknown'], ['firejail version 0.9.72.1.2.3']])(
    'of %j is not',
    (output) => {
      expect(parseVersion(output)).toBeUndefined();
    },
  );
});

describe('the table of features', () => {
  const VERSIONS = [
    '0.9.64',
    '0.9.64.4',
    '0.9.66',
    '0.9.68',
    '0.9.70',
    '0.9.72',
    '0.9.74',
    '0.9.76',
    '0.9.78',
    '0.9.80',
  ];

  it('does not change without notice', () => {
    const table = VERSIONS.map((text) => {
      const version = text.split('.').map(Number);
      return `${text}: ${FIREJAIL_FEATURES.filter((feature) => hasFeature(version, feature)).join(' ')}`;
    });
    expect(table).toEqual([
      '0.9.64: shell-none',
      '0.9.64.4: shell-none',
      '0.9.66: shell-none noinput any-top-directory',
      '0.9.68: shell-none noinput any-top-directory noprinters keep-fd deterministic-exit',
      '0.9.70: shell-none noinput any-top-directory noprinters keep-fd deterministic-exit',
      '0.9.72: noinput any-top-directory noprinters keep-fd deterministic-exit restrict-namespaces',
      '0.9.74: noinput any-top-directory noprinters keep-fd deterministic-exit restrict-namespaces',
      '0.9.76: noinput any-top-directory noprinters keep-fd deterministic-exit restrict-namespaces',
      '0.9.78: noinput any-top-directory noprinters keep-fd deterministic-exit restrict-namespaces',
      '0.9.80: noinput any-top-directory noprinters keep-fd deterministic-exit restrict-namespaces',
    ]);
  });

  it('refuses what is too old, and says which version helps', () => {
    expect(refuseVersion([0, 9, 64])).toMatch(
      /^Firejail 0\.9\.64 is too old: .*; install 0\.9\.68 or later$/,
    );
    expect(refuseVersion([0, 9, 66])).toMatch(/0\.9\.68/);
    expect(refuseVersion([0, 9, 68])).toBeUndefined();
    expect(refuseVersion([0, 9, 80])).toBeUndefined();
    expect(refuseVersion([1, 0])).toBeUndefined();
  });
});
