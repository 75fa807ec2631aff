import { constants } from 'node:os';
import { describe, expect, it } from 'vitest';
import { describeFailure } from '../../../src/run/launch/failure.ts';

const failure = (stage: string, errno: keyof typeof constants.errno | undefined, path = '') => ({
  stage,
  errno: errno === undefined ? 0 : constants.errno[errno],
  path,
});

describe('describeFailure', () => {
  it.each([
    ['exec', 'ENOENT', '/p', 'program.not_executable', /^\/p exists, but it or its interpreter is not there/],
    [
      'exec',
      'EACCES',
      '/p',
      'program.not_executable',
      /^\/p may not be executed in the sandbox; .*the option readable/,
    ],
    ['exec', 'ENOEXEC', '/p', 'program.not_executable', /^\/p is not a program.*#!/],
    ['exec', 'E2BIG', '/p', 'program.not_executable', /^\/p .*arguments and environment are too long/],
    ['exec', 'ENOMEM', '/p', 'program.not_executable', /^\/p cannot be executed \(ENOMEM\)/],
    [
      'cwd',
      'EACCES',
      '/c',
      'cwd.unusable',
      /\/c cannot be entered in the sandbox \(EACCES\); .*the option readable or the option writable/,
    ],
    [
      'cwd',
      'ENOENT',
      '/c',
      'cwd.unusable',
      /\/c does not exist in the sandbox; make it, or, .* the option readable/,
    ],
    ['cwd', 'ENOTDIR', '/c', 'cwd.unusable', /^the working directory \/c is not a directory$/],
    [
      'landlock.open',
      'ENOENT',
      '/x',
      'policy.path_missing',
      /^\/x, which the policy names, cannot be opened/,
    ],
    ['view.open', 'ENOENT', '/x', 'policy.path_missing', /^\/x, which the policy names, cannot be opened/],
    ['landlock.open', 'ELOOP', '/x', 'confinement.failed', /^\/x, .* became a symbolic link since/],
    ['view.open', 'EACCES', '/x', 'confinement.failed', /cannot be opened \(EACCES\)/],
    ['private_directory', 'EROFS', '/t', 'confinement.failed', /in \/t \(EROFS\); set TMPDIR/],
    ['private_file', 'ENOSPC', '/t/f', 'confinement.failed', /in \/t\/f \(ENOSPC\)/],
    ['seccomp', 'EINVAL', '', 'launch.failed', /step seccomp failed with EINVAL; nothing was run$/],
    [
      'landlock.restrict_self',
      'E2BIG',
      '',
      'launch.failed',
      /step landlock\.restrict_self failed with E2BIG/,
    ],
    [
      'view.build',
      'EPERM',
      '/v',
      'launch.failed',
      /step view\.build failed with EPERM at \/v; nothing was run \(the cause may be an outer sandbox/,
    ],
  ] as const)('%s with %s', (stage, errno, path, code, message) => {
    const described = describeFailure(failure(stage, errno, path));
    expect(described).toEqual({
      code,
      message: expect.stringMatching(message),
      stage,
      errno,
      path: path === '' ? undefined : path,
    });
    expect(described.message).not.toMatch(/undefined|\n/);
  });

  it('speaks no errno where there is none', () => {
    const described = describeFailure(failure('parent_gone', undefined));
    expect(described).toMatchObject({ code: 'launch.failed', errno: undefined });
    expect(described.message).toContain('no errno');
  });
});
