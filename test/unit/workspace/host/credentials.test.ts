import { describe, expect, it } from 'vitest';
import { effectOfKey } from '../../../../src/workspace/host/git/config-keys.ts';
import { withoutUserInfo } from '../../../../src/workspace/host/settings/carried.ts';

const SECRET = 'hunter2';

describe('an address that commands get', () => {
  it.each([
    ['https://me:hunter2@host/x', 'https://host/x'],
    ['https://hunter2@host/x', 'https://host/x'],
    ['https://me:p/hunter2@host/x', 'https://host/x'],
    ['https://me:p#hunter2@host', 'https://host'],
    ['https://me:p?hunter2@host', 'https://host'],
    ['https://me:hunter2\\x@host', 'https://host'],
    ['https:me:hunter2@host', 'https:host'],
    ['https:\\\\me:hunter2@host', 'https:\\\\host'],
    ['me:hunter2@proxy:3128', 'proxy:3128'],
    ['me:hunter2@[::1]:3128', '[::1]:3128'],
    ['-c http.proxy=me:hunter2@proxy fetch', '-c http.proxy=proxy fetch'],
    ['git+https://me:hunter2@host/x', 'git+https://host/x'],
    ['socks5h://me:hunter2@host:1080', 'socks5h://host:1080'],
    ['ssh://git:hunter2@host/x', 'ssh://git@host/x'],
  ])('%s has no password', (value, expected) => {
    expect(withoutUserInfo(value)).toBe(expected);
    expect(withoutUserInfo(value)).not.toContain(SECRET);
  });

  it.each([
    'https://host:8080/@scope/name',
    'https://host/@scope/name',
    'https://host:8080?by=a@b',
    'git@host:team/project.git',
    'ssh://git@host:22/x',
    'host:team/x',
    'http://localhost:4873/',
    'name@example.org',
    'gh:',
    'log --pretty=format:%h --author=a@b',
  ])('%s stays as it is', (value) => {
    expect(withoutUserInfo(value)).toBe(value);
  });
});

describe('an alias of git that commands get', () => {
  const carried = (value: string) => effectOfKey({ key: 'alias.x', value }).as === 'value';
  it.each([
    ['log --oneline', true],
    ['--no-pager log', true],
    ['clean -dfx', true],
    ['commit -c HEAD', true],
    ['!sh -c x', false],
    ['-c core.pager=./x log', false],
    ['--exec-path=./x log', false],
    ['difftool --extcmd ./x', false],
    ['difftool -x ./x', false],
    ['rebase --exec make', false],
    ['fetch --upload-pack ./x', false],
    ['grep --open-files-in-pager=./x y', false],
  ])('%s: %s', (value, expected) => {
    expect(carried(value)).toBe(expected);
  });
});
