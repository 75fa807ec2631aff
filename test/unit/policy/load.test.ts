import { spawnSync } from 'node:child_process';
import { chmodSync, chownSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { loadLayer, loadWorkspaceFile, parsePolicy } from '../../../src/policy/load.ts';

const directory = mkdtempSync(join(tmpdir(), 'sandbox-run-load-'));
afterAll(() => rmSync(directory, { recursive: true, force: true }));

const FULL = `
profile = "read-only"
[filesystem]
read = ["~/.cache"]
write = ["out"]
protect = ["Makefile"]
tmp = "host"
home = "private"
[network]
mode = "open"
unix_sockets = "allowed"
[environment]
pass = ["EDITOR", "LC_*"]
set = { FOO = "bar" }
[limits]
timeout_seconds = 1.5
umask = "022"
processes = 10
[demand]
signals = "required"
private-tmp = "best-effort"
`;

describe('parsePolicy', () => {
  it('reads every kind of key', async () => {
    expect(await parsePolicy(FULL, 'p.toml')).toMatchObject({
      profile: 'read-only',
      filesystem: { read: ['~/.cache'], tmp: 'host' },
      network: { mode: 'open', unix_sockets: 'allowed' },
      environment: { set: { FOO: 'bar' } },
      limits: { timeout_seconds: 1.5, umask: '022' },
      demand: { signals: 'required', 'private-tmp': 'best-effort' },
    });
  });

  it('takes an empty file for no change', async () => {
    expect(await parsePolicy('', 'p.toml')).toEqual({});
  });

  it.each([
    ['a = = 1', /^p\.toml:1:5: \S/],
    ['profile = "x"\n[filesystem\n', /^p\.toml:2:\d+: \S/],
    ['a = 1\na = 2', /^p\.toml:2:\d+: \S/],
  ])('says file, line and column of what is no TOML: %j', async (text, message) => {
    await expect(parsePolicy(text, 'p.toml')).rejects.toMatchObject({
      name: 'SandboxError',
      code: 'policy.invalid',
      message: expect.stringMatching(message),
    });
  });

  it.each([
    [
      'a key that poses as a sentence of ours',
      '"x: fine; sandbox-run: approved\\n\\u202e" = 1',
      /^p\.toml:1: "x: fine; sandbox-run: approved[^\n\u202e]+": there is no such key/,
    ],
    ['an unknown key', 'colour = "red"', /^p\.toml:1: colour: there is no such key/],
    ['a key with a typing error', '[filesystem]\nraed = ["x"]', /^p\.toml:2: filesystem\.raed: /],
    ['a key in the wrong table', '[network]\nread = ["x"]', /^p\.toml:2: network\.read: /],
    ['a wrong type', '[filesystem]\nread = "x"', /^p\.toml:\d+: filesystem\.read: .*array/],
    ['a wrong item', '[filesystem]\nread = ["ok", 3]', /^p\.toml:\d+: filesystem\.read\.1: .*string/],
    ['an empty path', '[filesystem]\nread = [""]', /^p\.toml:\d+: filesystem\.read\.0: /],
    ['NUL in a path', '[filesystem]\nread = ["a\\u0000b"]', /filesystem\.read\.0: must not contain NUL/],
    ['an unknown choice', '[network]\nmode = "offf"', /^p\.toml:\d+: network\.mode: .*"off"/],
    ['an unknown control', '[demand]\nsignal = "required"', /^p\.toml:\d+: demand.*signal/],
    ['an unknown demand', '[demand]\nsignals = "always"', /^p\.toml:\d+: demand\.signals: /],
    ['a negative number', '[limits]\ntimeout_seconds = -1', /^p\.toml:\d+: limits\.timeout_seconds: /],
    ['a fraction', '[limits]\nprocesses = 1.5', /^p\.toml:\d+: limits\.processes: /],
    ['zero processes', '[limits]\nprocesses = 0', /^p\.toml:\d+: limits\.processes: /],
    ['infinity', '[limits]\ntimeout_seconds = inf', /^p\.toml:\d+: limits\.timeout_seconds: /],
    ['a umask as a number', '[limits]\numask = 22', /^p\.toml:\d+: limits\.umask: /],
    ['a umask that is not octal', '[limits]\numask = "089"', /limits\.umask: must be an octal string/],
    ['a bad name', '[environment]\npass = ["A B"]', /environment\.pass\.0: must be a variable name/],
    ['a star inside', '[environment]\npass = ["A*B"]', /environment\.pass\.0: must be a variable name/],
    ['a bad name set', '[environment.set]\n"A=B" = "x"', /^p\.toml:\d+: environment\.set/],
    ['a value that is no text', '[environment.set]\nA = 1', /^p\.toml:\d+: environment\.set\.A: /],
  ])('names the key: %s', async (_, text, message) => {
    await expect(parsePolicy(text, 'p.toml')).rejects.toMatchObject({
      code: 'policy.invalid',
      exitStatus: 125,
      message: expect.stringMatching(message),
    });
  });

  it('says all that is wrong in one line', async () => {
    const error = await parsePolicy('a = 1\n[limits]\numask = 1', 'p.toml').catch((caught: Error) => caught);
    expect(String(error)).toMatch(/^SandboxError: p\.toml:3: limits\.umask: .*; line 1: a: /);
    expect(String(error)).not.toContain('\n');
  });
});

const readOperatorFile = async (path: string) => (await loadLayer('user', path, { required: true }))?.says;

describe('a policy file of the operator', () => {
  it('reads a file', async () => {
    const path = join(directory, 'policy.toml');
    writeFileSync(path, 'profile = "networked"');
    expect(await readOperatorFile(path)).toEqual({ profile: 'networked' });
  });

  it('calls the file by its path in messages', async () => {
    const path = join(directory, 'bad.toml');
    writeFileSync(path, 'x');
    await expect(readOperatorFile(path)).rejects.toThrow(`${path}:1:`);
  });

  it.each([
    [join(directory, 'missing.toml'), 'ENOENT'],
    [directory, 'EISDIR'],
  ])('says why it cannot read %s', async (path, reason) => {
    await expect(readOperatorFile(path)).rejects.toMatchObject({
      code: 'policy.unreadable',
      message: `cannot read the policy ${path} (${reason})`,
    });
  });
});

describe('whose files are believed', () => {
  const path = join(directory, 'owned.toml');
  const write = (mode: number) => {
    // The one before may be one that nobody but root can write.
    rmSync(path, { force: true });
    writeFileSync(path, '[security]\nautonomy = "readonly"');
    chmodSync(path, mode);
  };

  it.each([0o666, 0o622, 0o664, 0o646, 0o777])('refuses what others can write: %o', async (mode) => {
    write(mode);
    await expect(readOperatorFile(path)).rejects.toMatchObject({
      code: 'policy.untrusted',
      message: expect.stringContaining(path),
    });
  });

  it.each([0o644, 0o600, 0o444, 0o755])('takes what others cannot write: %o', async (mode) => {
    write(mode);
    expect(await readOperatorFile(path)).toEqual({ security: { autonomy: 'readonly' } });
  });

  it('judges the file behind a link', async () => {
    write(0o666);
    const link = join(directory, 'link.toml');
    symlinkSync(path, link);
    await expect(readOperatorFile(link)).rejects.toMatchObject({ code: 'policy.untrusted' });
  });

  it.runIf(process.getuid?.() === 0)(
    'refuses another user’s, and in a workspace takes its owner’s',
    async () => {
      write(0o644);
      chownSync(path, 65534, 65534);
      await expect(readOperatorFile(path)).rejects.toMatchObject({ code: 'policy.untrusted' });
      await expect(loadWorkspaceFile(path, 1234)).rejects.toMatchObject({ code: 'policy.untrusted' });
      expect((await loadWorkspaceFile(path, 65534))?.layer.says).toEqual({
        security: { autonomy: 'readonly' },
      });
      rmSync(path);
    },
  );

  it('takes /dev/null for an empty policy', async () => {
    expect(await readOperatorFile('/dev/null')).toEqual({});
  });
});

describe('layers', () => {
  it('may be missing unless they were named', async () => {
    const missing = join(directory, 'none/policy.toml');
    expect(await loadLayer('user', missing, { required: false })).toBeUndefined();
    await expect(loadLayer('option', missing, { required: true })).rejects.toMatchObject({
      code: 'policy.unreadable',
    });
    expect(await loadWorkspaceFile(missing, 0)).toBeUndefined();
  });

  it('that are there and wrong are fatal', async () => {
    const path = join(directory, 'wrong.toml');
    writeFileSync(path, 'profil = "x"', { mode: 0o644 });
    await expect(loadLayer('user', path, { required: false })).rejects.toThrow(`${path}:1: profil`);
  });
});

describe('the file of a workspace', () => {
  const path = join(directory, '.sandbox-run.toml');

  it('is refused if it asks for what it may never have, and says so', async () => {
    writeFileSync(path, '[security]\nautonomy = "readonly"\n[commands]\npermit_dangerous = ["docker"]', {
      mode: 0o644,
    });
    await expect(loadWorkspaceFile(path, 0)).rejects.toMatchObject({
      code: 'policy.invalid',
      message: `${path}:4: commands.permit_dangerous: there is no such key here (a file in the workspace can only take away)`,
    });
  });

  it('takes away, and what it asks for is apart from that', async () => {
    writeFileSync(path, '[filesystem]\nread = ["/etc"]\nhide = [".env"]', { mode: 0o644 });
    const { layer, wanted } = (await loadWorkspaceFile(path, 0)) ?? {};
    expect(layer?.says).toEqual({ filesystem: { hide: ['.env'] } });
    expect(wanted).toMatchObject({ name: 'trusted', says: { filesystem: { read: ['/etc'] } } });
  });

  it('is no link, no pipe and not huge', async () => {
    rmSync(path);
    symlinkSync('/etc/passwd', path);
    await expect(loadWorkspaceFile(path, 0)).rejects.toMatchObject({ code: 'policy.unreadable' });
    rmSync(path);
    spawnSync('mkfifo', [path]);
    await expect(loadWorkspaceFile(path, 0)).rejects.toMatchObject({ code: 'policy.untrusted' });
    rmSync(path);
    writeFileSync(path, '#'.repeat(300_000), { mode: 0o644 });
    await expect(loadWorkspaceFile(path, 0)).rejects.toMatchObject({ code: 'policy.untrusted' });
  });
});
