import { describe, expect, it } from 'vitest';
import { hasOwnRoot } from '../../../src/cli/sh/inside.ts';
import { readShellSettings } from '../../../src/cli/sh/settings.ts';

describe('the settings of sandbox-sh', () => {
  it('are none but the real shell for commands, where the environment says nothing', () => {
    expect(readShellSettings({ PATH: '/bin', SHELL: '/usr/bin/sandbox-sh' })).toEqual({
      sandbox: { env: { SHELL: '/bin/bash' } },
      policy: undefined,
      quiet: false,
    });
  });

  it('come from the environment', () => {
    expect(
      readShellSettings({
        SANDBOX_SH_WORKSPACE: '/w',
        SANDBOX_SH_POLICY: '/p.toml',
        SANDBOX_SH_PROFILE: 'read-only',
        SANDBOX_SH_ASK: 'nobody',
        SANDBOX_SH_SESSION: 's',
        SANDBOX_SH_QUIET: '1',
      }),
    ).toEqual({
      sandbox: {
        workspace: '/w',
        policy: '/p.toml',
        profile: 'read-only',
        ask: 'nobody',
        session: 's',
        env: { SHELL: '/bin/bash' },
      },
      policy: '/p.toml',
      quiet: true,
    });
  });

  it.each<[string, string, RegExp]>([
    ['SANDBOX_SH_POLCIY', '/p.toml', /no setting SANDBOX_SH_POLCIY/],
    ['SANDBOX_SH_AUTONOMY', 'autonomous', /no setting SANDBOX_SH_AUTONOMY/],
    ['SANDBOX_SH_APPROVED', '1', /no setting SANDBOX_SH_APPROVED/],
    ['SANDBOX_SH_INSIDE', '1', /no setting SANDBOX_SH_INSIDE/],
    ['SANDBOX_SH_constructor', '1', /no setting/],
    ['SANDBOX_SH_WORKSPACE', 'work', /absolute path, not work/],
    ['SANDBOX_SH_POLICY', './evil.toml', /absolute path/],
    ['SANDBOX_SH_ASK', 'me', /terminal, queue, nobody, not me/],
    ['SANDBOX_SH_QUIET', 'yes', /1 or 0/],
  ])('%s=%s is refused', (name, value, expected) => {
    expect(() => readShellSettings({ [name]: value })).toThrow(expected);
  });
});

describe('the root of a view', () => {
  const OWN = '70 46 0:40 / / ro,nosuid,nodev,relatime - tmpfs sandbox-run rw,size=4096k,mode=755';

  it('is recognized', () => {
    expect(hasOwnRoot(`${OWN}\n72 70 254:0 /usr /usr ro - ext4 /dev/vda rw\n`)).toBe(true);
    expect(hasOwnRoot(OWN.replace('relatime -', 'relatime shared:1 master:2 -'))).toBe(true);
  });

  it.each([
    ['of a host', '22 1 254:0 / / rw,relatime - ext4 /dev/vda rw'],
    ['of another tmpfs', OWN.replace('sandbox-run', 'tmpfs')],
    ['that can be written', OWN.replace(' ro,', ' rw,')],
    ['with something on top of it', `${OWN}\n80 70 254:0 / / rw,relatime - ext4 /dev/vda rw`],
    ['that is mounted elsewhere', OWN.replace(' / / ', ' / /tmp/x ')],
    ['that is part of a file system', OWN.replace(' / / ', ' /sub / ')],
    ['that is only named so in a path', '22 1 254:0 /sandbox-run / ro,x - ext4 tmpfs\\040sandbox-run rw'],
    ['of nothing', ''],
  ])('%s is none', (_, mountinfo) => {
    expect(hasOwnRoot(mountinfo)).toBe(false);
  });
});
