import { describe, expect, it } from 'vitest';
import {
  type FirejailHost,
  firejailLauncher,
} from '../../../../../src/run/other-backends/firejail/firejail.ts';
import {
  BEST_HOST,
  planOf,
  policyOfRules,
  policyWith,
  rule,
  undemanding,
} from '../../../confine/plan/fixtures.ts';

const HOST: FirejailHost = {
  path: '/usr/bin/firejail',
  version: [0, 9, 72],
  isRoot: false,
  top: ['/dev', '/etc', '/home', '/opt', '/proc', '/run', '/sys', '/tmp', '/usr', '/work', '/swapfile'].map(
    (path) => ({
      path,
      isDirectory: path !== '/swapfile',
    }),
  ),
  canChangeRoot: false,
  isForeign: () => false,
};

const plan = (
  rules: Parameters<typeof policyOfRules>[0] = [rule('/usr', 'read'), rule('/etc/hosts', 'data')],
) => ({
  ...planOf({ policy: undemanding(policyOfRules(rules)), features: BEST_HOST, backend: 'firejail' }),
});
const linesOf = (host: Partial<FirejailHost> = {}, of = plan()) =>
  firejailLauncher(of, { ...HOST, ...host }).settings.split('\n');

describe('the settings', () => {
  it('do not change without notice', async () => {
    const launcher = firejailLauncher(plan(), HOST);
    const text = [
      launcher.arguments.join(' '),
      launcher.settings,
      ...launcher.conditional.map(({ path, settings }) => `if ${path}:\n${settings}`),
      `slot: ${launcher.slotSetting}`,
    ].join('\n');
    await expect(text).toMatchFileSnapshot('../../../../golden/firejail-settings.txt');
  });

  it('are for root without what root cannot have', () => {
    expect(linesOf()).toContain('noroot');
    expect(linesOf({ isRoot: true })).not.toContain('noroot');
  });

  it('have of each version what it knows', () => {
    expect(linesOf()).toContain('restrict-namespaces');
    expect(linesOf({ version: [0, 9, 70] })).not.toContain('restrict-namespaces');
    expect(linesOf({ version: [0, 9, 70] })).toContain('shell none');
    expect(linesOf()).not.toContain('shell none');
  });

  it('cover everything in / that is not granted', () => {
    const lines = linesOf();
    for (const path of ['/opt', '/sys', '/swapfile']) expect(lines).toContain(`blacklist ${path}`);
    expect(lines).toContain('whitelist /etc/hosts');
    for (const path of ['/usr', '/proc', '/dev', '/run', '/etc'])
      expect(lines).not.toContain(`blacklist ${path}`);
  });

  it('leave the network alone only where the policy does', () => {
    const open = planOf({
      policy: undemanding(policyWith({ mode: 'open', unixSockets: 'contained' })),
      features: BEST_HOST,
      backend: 'firejail',
    });
    expect(linesOf()).toContain('net none');
    expect(linesOf({}, open)).not.toContain('net none');
  });
});

describe('a path', () => {
  it.each(['/opt/plain-1.2_x', '/opt/with space', '/opt/ümlaut', '/opt/a=b:c@d+e'])(
    'like %s is told as it is',
    (path) => {
      expect(linesOf({}, plan([rule(path, 'read')]))).toContain(`read-only ${path}`);
    },
  );

  it.each([
    `/opt/${'{'}HOME}`,
    '/opt/a*',
    '/opt/a?b',
    '/opt/[ab]',
    '/opt/{a,b}',
    '/opt/a,b',
    '/opt/a#b',
    '/opt/line\nread-write /etc',
    '/opt/quo"te',
    "/opt/quo'te",
    '/opt/back\\slash',
    '/opt/two  spaces',
    '/opt/ends with space ',
    '/opt/ begins',
    '/opt/tab\tx',
    '/opt/\u202eabc',
    '/opt/a;b',
    '/opt/`id`',
    '/opt/a%b',
    '/',
  ])('like %j is refused, as it would mean something else', (path) => {
    expect(() => linesOf({}, plan([rule(path, 'read')]))).toThrow(
      expect.objectContaining({ code: 'backend.unavailable' }),
    );
  });
});
