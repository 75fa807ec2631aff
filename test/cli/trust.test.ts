import { cpSync, mkdirSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { execa } from 'execa';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { HOST } from '../support/tiers.ts';
import { CLI, cli, expectOneLine, makePlace, type Place, PTY_DRIVER } from './support.ts';

type Step =
  | { readonly expect: string }
  | { readonly send: string }
  | { readonly insist: string; readonly until: string };

describe('a file of the workspace that asks for more', () => {
  let place: Place;
  let file: string;
  beforeEach(() => {
    place = makePlace();
    file = join(place.workspace, '.sandbox-run.toml');
    mkdirSync(join(place.root, 'beside'));
    mkdirSync(join(place.root, 'home'));
    writeFileSync(file, ASKS);
  });
  afterEach(() => place.dispose());

  const ASKS =
    '[filesystem]\nwrite = ["../beside"]\nhide = ["hidden.txt"]\n[limits]\ntimeout_seconds = 300\n';
  const records = () => join(place.env.HOME ?? '', '.local/state/sandbox-run/trust');

  /** Types on a terminal of its own. */
  async function onTerminal(steps: readonly Step[], args: readonly string[] = ['trust']) {
    const argv = [process.execPath, CLI, ...args];
    const input = JSON.stringify({ argv, cwd: place.workspace, env: place.env, size: [40, 200], steps });
    const { stdout } = await execa('python3', [PTY_DRIVER], { input });
    return JSON.parse(stdout) as { output: string; failed: Step | null; status: number | null };
  }
  const trust = () =>
    onTerminal([{ expect: 'Enter for no' }, { insist: 'yes\r', until: 'trusted as it was shown' }]);
  const write = () => cli(place, ['-c', 'echo x > ../beside/made']);
  const value = async (key: string) => {
    const { stdout } = await cli(place, ['policy', 'show']);
    return stdout.split('\n').filter((line) => line.startsWith(key));
  };

  it('takes away and gives nothing, and one line says so', async () => {
    // Without namespaces nothing hides what is there, and no command would run.
    if (HOST.namespaces) writeFileSync(join(place.workspace, 'hidden.txt'), 'secret');
    const command = HOST.namespaces ? 'cat hidden.txt; echo ran' : 'echo ran';
    const { exitCode, stderr, stdout } = await cli(place, ['-c', command]);
    expect({ exitCode, stdout }).toEqual({ exitCode: 0, stdout: 'ran\n' });
    expectOneLine(stderr);
    expect(stderr).toContain('.sandbox-run.toml was not trusted: 2 things that it asks for do not hold');
    expect(stderr).toContain('sandbox-run trust');
    expect((await write()).exitCode).not.toBe(0);
    expect(await value('limits.timeout_seconds')).toEqual(['limits.timeout_seconds = 60']);
  });

  it.runIf(!HOST.namespaces)(
    'is refused once it is trusted: commands could change it (no namespaces)',
    async () => {
      expect(await trust()).toMatchObject({ failed: null, status: 0 });
      const { exitCode, stderr } = await write();
      expect(exitCode).toBe(125);
      expectOneLine(stderr);
      expect(stderr).toContain('commands could change the policy');
      expect((await cli(place, ['untrust'])).exitCode).toBe(0);
      expect(await cli(place, ['-c', 'echo ran'])).toMatchObject({ exitCode: 0, stdout: 'ran\n' });
    },
  );

  it('is rated by what it opens: keys, credentials and all of a home are of high risk', async () => {
    const home = join(place.root, 'home');
    mkdirSync(join(home, '.ssh'));
    writeFileSync(join(home, 'notes'), 'nothing\n');
    writeFileSync(join(home, 'copy'), `-----BEGIN OPENSSH PRIVATE KEY-----\nx\n`);
    symlinkSync('.ssh', join(home, 'link'));
    const secret = ['~/.ssh', '~/.ssh/config', '~/.netrc', '~/copy', '~/link', '~', '~/.config/gh'];
    writeFileSync(
      file,
      `[filesystem]\nread = ${JSON.stringify([...secret, '~/notes', '~/.ssh/known_hosts'])}\n`,
    );
    const { output } = await onTerminal([
      { expect: 'Enter for no' },
      { insist: '\r', until: 'nothing is trusted' },
    ]);
    expect(output).toContain(`(${secret.length} of high risk, 2 of medium risk)`);
    expect(output).toMatch(
      /high\s+\| commands read and execute this path \(it looks like a secret\): [^\n]*\.ssh"/,
    );
    expect(output).toMatch(/medium\s+\| commands read and execute this path: [^\n]*notes"/);
  });

  it.runIf(HOST.namespaces)('holds once a person has said yes, worst first, for this workspace', async () => {
    const { failed, output, status } = await trust();
    expect({ failed, status }).toEqual({ failed: null, status: 0 });
    expect(output).toMatch(
      /high\s+\| commands change and delete.*filesystem\.write[\s\S]*low\s+\| commands may run/,
    );
    expect(output).toContain('(1 of high risk, 1 of low risk)');
    const { exitCode, stderr } = await write();
    expect({ exitCode, stderr }).toEqual({ exitCode: 0, stderr: '' });
    expect(readFileSync(join(place.root, 'beside/made'), 'utf8')).toBe('x\n');
    expect(await value('limits.timeout_seconds')).toEqual(['limits.timeout_seconds = 300']);
    expect((await cli(place, ['trust', '--list'])).stdout).toContain(place.workspace);
    expect((await cli(place, ['untrust'])).exitCode).toBe(0);
    expect(await value('limits.timeout_seconds')).toEqual(['limits.timeout_seconds = 60']);
    expectOneLine((await cli(place, ['untrust'])).stderr);
  });

  it.skipIf(!HOST.namespaces)(
    'takes no way back away: what is lost is undone, and asked about where the file lets commands write',
    async () => {
      await trust();
      const env = { XDG_CONFIG_HOME: join(place.root, 'no-config') };
      writeFileSync(join(place.workspace, 'notes'), 'mine');
      writeFileSync(join(place.root, 'beside/theirs'), 'theirs');
      const { exitCode, stderr } = await cli(place, ['-c', 'rm notes; echo x > ../beside/made'], { env });
      expect({ exitCode, stderr }).toEqual({
        exitCode: 0,
        stderr: 'sandbox-run: 1 file gone: sandbox-run undo\n',
      });
      expect(readFileSync(join(place.root, 'beside/made'), 'utf8')).toBe('x\n');
      expect((await cli(place, ['undo'], { env })).exitCode).toBe(0);
      expect(readFileSync(join(place.workspace, 'notes'), 'utf8')).toBe('mine');
      expect((await cli(place, ['-c', 'rm notes ../beside/theirs'], { env })).exitCode).toBe(126);
    },
  );

  it('does not replace what the user’s own policy says', async () => {
    const config = join(place.root, 'config');
    mkdirSync(join(config, 'sandbox-run'), { recursive: true });
    writeFileSync(join(config, 'sandbox-run/policy.toml'), '[limits]\ntimeout_seconds = 30\n', {
      mode: 0o600,
    });
    await trust();
    const shown = await cli(place, ['policy', 'show'], { env: { XDG_CONFIG_HOME: config } });
    expect(shown.stdout).toContain('limits.timeout_seconds = 30\n');
  });

  it.runIf(HOST.namespaces)(
    'that changed, as by a pull request, holds without it, with the size of the difference',
    async () => {
      await trust();
      writeFileSync(file, `${ASKS}processes = 5000\n`);
      const { stderr, exitCode } = await write();
      expect(exitCode).not.toBe(0);
      expect(stderr).toContain('changed since it was trusted (+1 -0 lines): 3 things');
      writeFileSync(file, ASKS);
      expect((await write()).exitCode).toBe(0);
    },
  );

  it.runIf(HOST.namespaces)('that is swapped while a person looks at it is not what is trusted', async () => {
    // The program asks, another file comes, and the answer is about the one that was shown.
    const argv = ['bash', '-c', `"$0" "$@"; cp "${file}.shown" "${file}"`, process.execPath, CLI, 'trust'];
    writeFileSync(`${file}.shown`, ASKS);
    const input = JSON.stringify({
      ...{ argv, cwd: place.workspace, env: place.env, size: [40, 200] },
      steps: [
        { expect: 'Enter for no' },
        { create: file },
        { insist: 'yes\r', until: 'trusted as it was shown' },
      ],
    });
    const { stdout } = await execa('python3', [PTY_DRIVER], { input });
    expect(JSON.parse(stdout)).toMatchObject({ failed: null });
    writeFileSync(file, `${ASKS}processes = 5000\n`);
    expect((await write()).exitCode).not.toBe(0);
    writeFileSync(file, ASKS);
    expect((await write()).exitCode).toBe(0);
  });

  it('is not trusted in a copy of the workspace, nor in another directory at its path', async () => {
    await trust();
    const copy = join(place.root, 'copy');
    cpSync(place.workspace, copy, { recursive: true });
    const there = await cli(place, ['-c', 'echo x > ../beside/made'], { cwd: copy });
    expect(there.exitCode).not.toBe(0);
    rmSync(place.workspace, { recursive: true });
    cpSync(copy, place.workspace, { recursive: true });
    expect((await write()).exitCode).not.toBe(0);
  });

  it('is trusted by nobody but a person: no terminal, a piped yes, a no', async () => {
    const piped = await execa('setsid', ['--wait', process.execPath, CLI, 'trust'], {
      ...{
        cwd: place.workspace,
        env: place.env,
        extendEnv: false,
        reject: false,
        input: 'yes\n',
        stripFinalNewline: false,
      },
    });
    expect(piped.exitCode).toBe(125);
    expectOneLine(piped.stderr);
    expect(piped.stderr).toContain('without a person');
    const no = await onTerminal([{ expect: 'Enter for no' }, { insist: '\r', until: 'nothing is trusted' }]);
    expect(no).toMatchObject({ failed: null, status: 1 });
    expect(await value('limits.timeout_seconds')).toEqual(['limits.timeout_seconds = 60']);
  });

  it('is not trusted from inside a sandbox, also on a terminal', async () => {
    const command = ['--ro', CLI, '--ro', process.execPath, '--', process.execPath, CLI, 'trust'];
    const { output, status } = await onTerminal([], command);
    expect(output).not.toContain('trusted as it was shown');
    expect(status).not.toBe(0);
    expect((await write()).exitCode).not.toBe(0);
  });

  it('cannot be written by a command, nor can a record', async () => {
    await cli(place, [
      '-c',
      'echo "[limits]" > .sandbox-run.toml; mv .sandbox-run.toml a; rm -f .sandbox-run.toml',
    ]);
    expect(readFileSync(file, 'utf8')).toBe(ASKS);
    await trust();
    const [record = ''] = readdirSync(records());
    const path = join(records(), record);
    const before = readFileSync(path, 'utf8');
    await cli(place, ['--autonomy', 'autonomous', '-c', `echo {} > '${path}'; rm -rf '${records()}'; true`]);
    expect(readFileSync(path, 'utf8')).toBe(before);
  });

  it('that is a link is refused as before', async () => {
    await trust();
    rmSync(file);
    writeFileSync(join(place.root, 'elsewhere.toml'), ASKS);
    symlinkSync(join(place.root, 'elsewhere.toml'), file);
    const { exitCode, stderr } = await write();
    expect(exitCode).toBe(125);
    expectOneLine(stderr);
  });

  it.each([
    '[unsafe]\nunjudged_commands = true\n',
    '[commands]\npermit_dangerous = ["docker"]\n',
    '[network]\nmode = "open"\n',
    '[audit]\nenabled = false\n',
    '[approval]\nask = "nobody"\n',
    '[workspace]\nundo = false\n',
    '[environment]\npass = ["SECRET"]\n',
    'profile = "networked"\n',
    'nonsense = 1\n',
  ])('may never ask for %j', async (text) => {
    writeFileSync(file, text);
    const { exitCode, stderr } = await cli(place, ['true']);
    expect(exitCode).toBe(125);
    expectOneLine(stderr);
    expect((await cli(place, ['trust'])).exitCode).toBe(125);
  });
});
