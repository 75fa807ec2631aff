import { mkdirSync, mkdtempSync, readFileSync, realpathSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import fc from 'fast-check';
import { parse } from 'smol-toml';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { INNOCENT_FILES, SECRET_FILES } from '../support/secret-corpus.ts';
import { HOST } from '../support/tiers.ts';
import { cli } from './support.ts';

const PATIENCE = 240_000;
type Lists = { readonly read?: readonly string[]; readonly write?: readonly string[] };
type Denied = {
  readonly object: string;
  readonly allow?: { readonly value: string; readonly policy: string };
  readonly notProposed?: string;
};

// Without namespaces nothing hides what is outside.
describe.runIf(HOST.namespaces && HOST.signalScope)('what is proposed, followed literally', () => {
  let root: string;
  let home: string;
  let outside: string;
  let workspace: string;
  beforeEach(() => {
    root = realpathSync(mkdtempSync('/var/tmp/proposals-'));
    [home, outside, workspace] = [join(root, 'home'), join(root, 'outside'), join(root, 'workspace')];
    for (const directory of [home, outside, workspace]) mkdirSync(directory);
  });
  afterEach(() => rmSync(root, { recursive: true, force: true }));

  const call = (...args: readonly string[]) =>
    cli(
      {
        workspace,
        env: {
          ...{ PATH: process.env.PATH ?? '', HOME: home, LC_ALL: 'C' },
          ...{ XDG_STATE_HOME: join(root, 'state'), XDG_CONFIG_HOME: join(root, 'config') },
        },
      },
      args,
      { input: '' },
    );
  const make = (beneath: string, files: Readonly<Record<string, string>>) => {
    for (const [path, content] of Object.entries(files)) {
      mkdirSync(join(beneath, path, '..'), { recursive: true });
      writeFileSync(join(beneath, path), content);
    }
  };
  const policyFile = (text: string) => {
    const path = join(root, 'policy.toml');
    writeFileSync(path, `${text}\n[unsafe]\nunjudged_commands = true\n`);
    return path;
  };
  /** What of these files a command can read under a policy. */
  const readable = async (text: string, paths: readonly string[]): Promise<readonly string[]> => {
    const list = join(workspace, 'list');
    writeFileSync(list, paths.join('\n'));
    const script =
      'while IFS= read -r path || [ -n "$path" ]; do { : < "$path"; } 2> /dev/null && printf "%s\\n" "$path"; done < list; true';
    const { stdout } = await call('--policy', policyFile(text), '-c', script);
    rmSync(list);
    return stdout.split('\n').filter((line) => line !== '');
  };
  const learned = async (paths: readonly string[]): Promise<string> => {
    const lines = paths.map((path) => `cat '${path}' > /dev/null || failed=1\n`);
    writeFileSync(join(workspace, 'run.sh'), ['failed=0\n', ...lines, 'exit $failed\n'].join(''));
    const output = join(workspace, 'learned.toml');
    rmSync(output, { force: true });
    await call('learn', '--yes', '--output', output, '-c', 'bash run.sh');
    const text = readFileSync(output, 'utf8');
    for (const name of ['run.sh', 'learned.toml']) rmSync(join(workspace, name));
    return text;
  };

  it('grants none of the files of credentials that a command reads, and what it works with', {
    timeout: PATIENCE,
  }, async () => {
    make(home, SECRET_FILES);
    make(outside, INNOCENT_FILES);
    const secrets = Object.keys(SECRET_FILES).map((name) => join(home, name));
    const innocents = Object.keys(INNOCENT_FILES).map((name) => join(outside, name));
    // At most 64 denials of one command are told, so the files are read by several.
    const batches = [];
    const all = [...secrets, ...innocents];
    for (let at = 0; at < all.length; at += 40) batches.push(all.slice(at, at + 40));
    const texts = [];
    for (const batch of batches) texts.push(await learned(batch));
    const lists = texts.map((text) => (parse(text) as { filesystem?: Lists }).filesystem?.read ?? []);
    const whole = `[filesystem]\nread = ${JSON.stringify([...new Set(lists.flat())])}\n`;
    // The home is the command's own, with copies of settings that hold no secret.
    const anyway = new Set(await readable('', secrets));
    const opened = await readable(whole, all);
    expect(opened.filter((path) => secrets.includes(path) && !anyway.has(path))).toEqual([]);
    expect(innocents.filter((path) => !opened.includes(path))).toEqual([]);
  });

  it('opens what was denied and nothing else, whatever lies where', { timeout: PATIENCE }, async () => {
    const names = ['a.txt', 'b.txt', 'c.json', 'd.conf', '.env', 'id_rsa', 'token', 'notes.md'] as const;
    const directory = fc.constantFrom('x', 'y', 'x/in', 'dd');
    const tree = fc.uniqueArray(fc.tuple(directory, fc.constantFrom(...names)), {
      ...{ minLength: 4, maxLength: 14, selector: ([at, name]) => `${at}/${name}` },
    });
    const isSecret = (path: string) => /(?:\.env|id_rsa|token)$/.test(path);
    await fc.assert(
      fc.asyncProperty(
        tree,
        fc.array(fc.boolean(), { minLength: 14, maxLength: 14 }),
        async (files, wanted) => {
          rmSync(outside, { recursive: true, force: true });
          const paths = files.map(([at, name]) => join(outside, at, name));
          for (const [at, name] of files)
            make(outside, {
              [`${at}/${name}`]: name === 'token' ? 'a8f5f167f44f4964e6c998dee827110c' : 'word\n',
            });
          const needs = paths.filter((_, index) => wanted[index]);
          if (needs.length === 0) return;
          const text = await learned(needs);
          const granted = (parse(text) as { filesystem?: Lists }).filesystem?.read ?? [];
          const opened = await readable(text, paths);
          expect(opened.filter(isSecret)).toEqual([]);
          expect(needs.filter((path) => !isSecret(path) && !opened.includes(path))).toEqual([]);
          // What else is open lies in a directory that stands for three files of it, and in which nothing secret is.
          const others = opened.filter((path) => !needs.includes(path));
          const around = others.map((path) => granted.find((grant) => path.startsWith(`${grant}/`)));
          expect(around.every((grant) => grant !== undefined)).toBe(true);
          for (const grant of around)
            expect(needs.filter((path) => path.startsWith(`${grant}/`)).length).toBeGreaterThanOrEqual(3);
          // What a denial advises does the same, one by one.
          const { stdout } = await call(
            ...['--json', '--explain', 'always', '--policy', policyFile('')],
            ...['-c', `${needs.map((path) => `cat '${path}'`).join('; ')}; false`],
          );
          for (const { object, allow, notProposed } of (JSON.parse(stdout).denials ??
            []) as readonly Denied[]) {
            expect([object, allow === undefined]).toEqual([object, notProposed !== undefined]);
            expect([object, notProposed !== undefined]).toEqual([object, isSecret(object)]);
            if (allow !== undefined) expect(await readable(allow.policy, paths)).toEqual([object]);
          }
        },
      ),
      { numRuns: 8 },
    );
  });

  it('three files become their directory only if nothing secret lies in it', {
    timeout: PATIENCE,
  }, async () => {
    const three = { 'dd/a': 'x', 'dd/b': 'x', 'dd/c': 'x' };
    make(outside, three);
    const paths = Object.keys(three).map((name) => join(outside, name));
    expect(await learned(paths)).toContain(`"${outside}/dd"`);
    for (const [name, content] of [
      ['.env', 'A=1\n'],
      ['deep/er/id_ed25519', 'x'],
      ['settings.json', '{"token": "ghp_abcdefghijklmnopqrstuvwxyz0123456789"}'],
    ] as const) {
      make(outside, { [`dd/${name}`]: content });
      const text = await learned(paths);
      expect([
        name,
        text.includes(`"${outside}/dd"`),
        paths.every((path) => text.includes(`"${path}"`)),
      ]).toEqual([name, false, true]);
      rmSync(join(outside, 'dd', name));
    }
  });

  it('no denial advises a home for a file beside the workspace, or a private key', async () => {
    make(home, { '.ssh/id_ed25519': 'x' });
    workspace = join(home, 'project');
    mkdirSync(workspace);
    const script = 'echo x > ../beside.txt; cat ~+/../.ssh/id_ed25519; echo x > ../.ssh/new; false';
    const { stdout } = await call('--json', '--explain', 'always', '--policy', policyFile(''), '-c', script);
    const denials = JSON.parse(stdout).denials as readonly Denied[];
    expect(denials.length).toBeGreaterThanOrEqual(2);
    for (const { allow, notProposed } of denials)
      expect([allow, notProposed]).toEqual([undefined, expect.any(String)]);
  });
});
