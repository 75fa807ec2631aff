import { chmodSync, mkdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, afterEach, describe, expect, it } from 'vitest';
import { cli, expectOneLine, makePlace } from './support.ts';

const place = makePlace();
const configuration = join(place.root, 'own-config');
const userFile = join(configuration, 'sandbox-run/policy.toml');
const workspaceFile = join(place.workspace, '.sandbox-run.toml');
const env = { XDG_CONFIG_HOME: configuration };
const policy = (...args: readonly string[]) => cli(place, ['policy', ...args], { env });

function write(path: string, text: string, mode = 0o644): string {
  mkdirSync(join(path, '..'), { recursive: true });
  writeFileSync(path, text);
  chmodSync(path, mode);
  return path;
}

afterEach(() => {
  for (const path of [configuration, workspaceFile]) rmSync(path, { recursive: true, force: true });
});
afterAll(() => place.dispose());

describe('policy show', () => {
  it('shows the built-in policy', async () => {
    const { stdout, exitCode, stderr } = await policy('show');
    expect({ exitCode, stderr }).toEqual({ exitCode: 0, stderr: '' });
    expect(stdout).toContain('security.autonomy = "contained"\n');
    expect(stdout).toContain('# Nothing is weaker than the default policy.');
  });

  it('says in one line what is protected everywhere, and lists it with -v', async () => {
    write(userFile, '[filesystem]\nprotect = ["mine"]\n');
    const protectedIn = (text: string) => [...text.matchAll(/^filesystem\.protect \+= "(.*)"$/gm)];
    const short = (await policy('show')).stdout;
    expect(protectedIn(short).map(([, path]) => path)).toEqual(['mine']);
    const count = Number(/^# filesystem\.protect has (\d+) built-in paths, such as /m.exec(short)?.[1]);
    expect(count).toBeGreaterThan(100);
    const long = (await policy('show', '-v')).stdout;
    expect(protectedIn(long)).toHaveLength(count + 1);
    expect(long).not.toContain('built-in paths');
  });

  it('explains where every value comes from', async () => {
    write(userFile, '[limits]\ntimeout_seconds = 5\n[environment]\npass = ["EDITOR"]\n');
    const named = write(join(place.root, 'named.toml'), '[network]\nmode = "open"\n');
    write(workspaceFile, '\n[security]\nautonomy = "readonly"\n');
    const { stdout } = await policy('show', '--explain', '--policy', named);
    const source = (key: string) =>
      new RegExp(`^${key.replace(/[.+]/g, '\\$&')} .*# (.*)$`, 'm').exec(stdout)?.[1];
    expect(source('limits.timeout_seconds')).toBe(`user: ${userFile}:2`);
    expect(source('environment.pass += "EDITOR"')).toBe(`user: ${userFile}:4`);
    expect(source('network.mode')).toBe(`option: ${named}:2`);
    expect(source('security.autonomy')).toBe(`workspace: ${workspaceFile}:3`);
    expect(source('filesystem.tmp')).toBe('built-in profile');
    expect(stdout).toContain('#   network.mode: the network of the host can be reached');
    expect(stdout).toMatch(/^# {3}budget +Refuses/m);
  });

  it('adds up what several files say, and says whose each item is', async () => {
    write(userFile, '[filesystem]\nsecret = [\n"/srv/one",\n"/srv/two"]\n');
    const named = write(join(place.root, 'adds.toml'), '[filesystem]\nsecret = ["/srv/three"]\n');
    const { stdout } = await policy('show', '--explain', '--policy', named);
    const secrets = [...stdout.matchAll(/^filesystem\.secret (\+=) "(.*?)" .*# (.*)$/gm)];
    expect(secrets.map(([, ...shown]) => shown)).toEqual([
      ['+=', '/srv/one', `user: ${userFile}:3`],
      ['+=', '/srv/two', `user: ${userFile}:4`],
      ['+=', '/srv/three', `option: ${named}:2`],
    ]);
  });

  it('has it as JSON', async () => {
    const { stdout } = await policy('show', '--explain', '--json', '--profile', 'strict-nine');
    const shown = JSON.parse(stdout);
    expect(shown.workspace).toBe(place.workspace);
    expect(shown.values).toContainEqual({
      key: 'profile',
      value: 'strict-nine',
      item: false,
      source: { layer: expect.any(String) },
    });
  });
});

describe('a plug-in of the user', () => {
  const plugin = (name: string, allowed: boolean) =>
    write(join(place.root, name), `export const before_tool_use = () => ({ allowed: ${allowed} });\n`);
  const naming = (path: string) => `[[hooks.plugins]]\npath = ${JSON.stringify(path)}\n`;

  it('is asked as well where the named policy has one of its own', async () => {
    const named = write(join(place.root, 'agrees.toml'), naming(plugin('agrees.mjs', true)));
    const check = () => cli(place, ['check', '--policy', named, '--', 'ls'], { env });
    expect(await check()).toMatchObject({ exitCode: 0 });
    write(userFile, naming(plugin('refuses.mjs', false)));
    const refused = await check();
    expect(refused.exitCode).toBe(126);
    expect(refused.stdout).toContain('the hook refuses.mjs refuses the command');
  });
});

describe('policy init', () => {
  it('writes the user’s file, valid, once, and not for others to write', async () => {
    const made = await policy('init');
    expect(made).toMatchObject({ exitCode: 0, stderr: '' });
    expect(made.stdout).toContain(userFile);
    expect(statSync(userFile).mode & 0o022).toBe(0);
    expect(await policy('validate')).toMatchObject({ exitCode: 0, stdout: `${userFile}: valid\n` });
    const again = await policy('init');
    expect(again.exitCode).toBe(125);
    expectOneLine(again.stderr);
  });

  it('is valid with every comment taken away, and has every key', async () => {
    const file = join(place.root, 'template.toml');
    await policy('init', file);
    const text = readFileSync(file, 'utf8');
    write(file, text.replace(/^# (\S+ = )/gm, '$1'));
    expect(await policy('validate', file)).toMatchObject({ exitCode: 0, stderr: '' });
    const { properties } = JSON.parse((await policy('schema')).stdout);
    for (const [table, node] of Object.entries<{ properties?: object }>(properties)) {
      for (const key of Object.keys(node.properties ?? {}))
        expect(text).toMatch(new RegExp(`^# ${key} = `, 'm'));
      if (node.properties === undefined) expect(text).toMatch(new RegExp(`^# ${table} = `, 'm'));
    }
  });
});

describe('policy validate', () => {
  it('says what is wrong with file, line and key', async () => {
    write(userFile, '[security]\n\nautonomy = "full"\n');
    for (const result of [await policy('validate'), await policy('validate', userFile)]) {
      expect(result).toMatchObject({ exitCode: 125, stdout: '' });
      expectOneLine(result.stderr);
      expect(result.stderr).toContain(`${userFile}:3: security.autonomy: `);
    }
  });

  it('takes a workspace’s file for what it is', async () => {
    write(workspaceFile, '[unsafe]\nunjudged_commands = true\n');
    const result = await policy('validate', workspaceFile);
    expect(result.exitCode).toBe(125);
    expect(result.stderr).toContain('can only take away');
    for (const file of ['[filesystem]\nprotect = ["x"]\n', '[security]\nautonomy = "contained"\n']) {
      write(workspaceFile, file);
      expect((await policy('validate', workspaceFile)).exitCode).toBe(0);
    }
    write(workspaceFile, '[security]\nautonomy = "autonomous"\n');
    const free = await policy('validate', workspaceFile);
    expect(free).toMatchObject({ exitCode: 125, stdout: '' });
    expectOneLine(free.stderr);
    expect(free.stderr).toContain(`${workspaceFile}:2: security.autonomy: `);
  });

  it('runs the examples of rules', async () => {
    const rule = '[[commands.rules]]\nprogram = "git"\nverdict = "deny"\nmatch = ["git x",\n"hg x"]\n';
    const result = await policy('validate', write(join(place.root, 'rules.toml'), rule));
    expect(result.exitCode).toBe(125);
    expect(result.stderr).toContain('rules.toml:5: commands.rules.0.match.1: ');
  });
});

describe('policy explain-program', () => {
  it('shows the row of a program, and of a verb of it', async () => {
    const { stdout, exitCode, stderr } = await policy('explain-program', '/usr/bin/git');
    expect({ exitCode, stderr }).toEqual({ exitCode: 0, stderr: '' });
    expect(stdout).toMatch(/^git: risk medium, network unknown, runs commands that stand in its words\n/);
    expect(stdout).toContain('  push: risk medium, uses the network, can change something elsewhere\n');
    const verb = await policy('explain-program', 'git', 'stash', 'drop');
    expect(verb.stdout).toMatch(/^git stash drop: risk medium, .*can lose what version control/);
  });

  it('says of others what is assumed of them, and lists those that it has', async () => {
    const { stdout, exitCode } = await policy('explain-program', 'no-such-program');
    expect(exitCode).toBe(0);
    expect(stdout).toMatch(/^no-such-program: risk medium, network unknown\n {2}not in the table:/);
    expect((await policy('explain-program')).stdout.split('\n')).toContain('cargo');
  });
});

describe('policy schema', () => {
  it('is as recorded', async () => {
    const { stdout } = await policy('schema');
    await expect(stdout).toMatchFileSnapshot('../golden/policy-schema.json');
  });
});

describe('a policy that is wrong', () => {
  it.each([
    [
      'a typing error in the user’s file',
      () => write(userFile, 'profil = "x"\n'),
      /policy\.toml:1: profil: /,
    ],
    ['a user’s file that others can write', () => write(userFile, '', 0o666), /chmod go-w/],
    [
      'a workspace that helps itself',
      () => write(workspaceFile, '[network]\nmode = "open"\n'),
      /network\.mode/,
    ],
    [
      'a workspace that wants nothing asked',
      () => write(workspaceFile, '\n[security]\nautonomy = "autonomous"\n'),
      /\.sandbox-run\.toml:3: security\.autonomy: /,
    ],
  ])('keeps everything from running: %s', async (_, make, message) => {
    make();
    for (const args of [
      ['--', 'true'],
      ['check', 'true'],
      ['policy', 'show'],
    ]) {
      const result = await cli(place, args, { env });
      expect(result).toMatchObject({ exitCode: 125, stdout: '' });
      expectOneLine(result.stderr);
      expect(result.stderr).toMatch(message);
    }
  });
});

describe('the policy of a run', () => {
  it('takes its workspace from the policy', async () => {
    const elsewhere = join(place.root, 'elsewhere');
    mkdirSync(elsewhere);
    write(userFile, `[security]\nworkspace_dir = "${elsewhere}"\n`);
    expect((await cli(place, ['pwd'], { env })).stdout).toBe(`${elsewhere}\n`);
    expect((await cli(place, ['--workspace', '.', 'pwd'], { env })).stdout).toBe(`${place.workspace}\n`);
  });

  it('refuses by rules and the budget', async () => {
    write(userFile, '[[commands.rules]]\nprogram = "ls"\nverdict = "deny"\nreason = "no looking"\n');
    expect(await cli(place, ['ls'], { env })).toMatchObject({
      exitCode: 126,
      stderr: 'sandbox-run: refused by the policy: no looking\n',
    });
    write(userFile, '[security]\nmax_actions_per_hour = 2\n');
    const one = () => cli(place, ['ls'], { env });
    expect([(await one()).exitCode, (await one()).exitCode, (await one()).exitCode]).toEqual([0, 0, 126]);
    write(userFile, '[security]\nmax_actions_per_hour = 0\n');
    expect((await cli(place, ['ls'], { env })).exitCode).toBe(126);
  });

  it('is not what doctor asks about', async () => {
    const before = await cli(place, ['doctor', '--json'], { env });
    write(userFile, '[security]\nautonomy = "readonly"\n[filesystem]\nread = ["/no/such/place"]\n');
    const after = await cli(place, ['doctor', '--json'], { env });
    expect(after.exitCode).toBe(before.exitCode);
    expect(JSON.parse(after.stdout).ok).toBe(JSON.parse(before.stdout).ok);
  });

  it('is narrowed by the workspace', async () => {
    write(workspaceFile, '[security]\nautonomy = "readonly"\n');
    const result = await cli(place, ['--autonomy', 'autonomous', 'touch', 'made'], { env });
    expect(result.exitCode).toBe(126);
    expect(result.stderr).toContain('readonly');
  });
});
