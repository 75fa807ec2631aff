import { spawnSync } from 'node:child_process';
import { mkdirSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { makeStage } from './support.ts';

const stage = await makeStage();
const { sandbox, workspace, outside } = stage;

mkdirSync(join(workspace, 'src'));
for (const name of ['src/a.ts', 'src/b.ts', 'top.ts']) writeFileSync(join(workspace, name), `// ${name}\n`);
writeFileSync(join(workspace, 'notes.md'), 'TODO: write\n');
const git = (...words: readonly string[]) =>
  spawnSync('git', ['-c', 'user.name=n', '-c', 'user.email=e@x', ...words], {
    cwd: workspace,
    encoding: 'utf8',
  });
git('init', '-q', '-b', 'main');
git('add', 'a.txt', 'src', 'top.ts', 'notes.md');
git('commit', '-q', '-m', 'first');
writeFileSync(join(workspace, 'top.ts'), '// changed\n');

/** What an agent runs every day. `runs`: with this backend, too. */
const EVERYDAY: readonly (readonly [command: string, runs: boolean])[] = [
  ['ls -la', true],
  ['cat a.txt', true],
  ['head -2 a.txt', true],
  ['tail -2 a.txt', true],
  ['wc -l a.txt', true],
  ['grep -rn foo .', true],
  ["find . -name '*.ts'", true],
  ['sort a.txt', true],
  ['sed -n 1,2p a.txt', true],
  ['diff a.txt a.txt', true],
  ['pwd', true],
  ['date', true],
  ['echo done', true],
  ['cat a.txt | sort | uniq -c', true],
  ['rg --no-ignore --no-config foo', true],
  ['rg TODO', true],
  ['rg -n changed src top.ts', true],
  ['ls *.ts', true],
  ['cat src/*.ts', true],
  ['wc -l src/* *.md', true],
  ['cd src && ls *.ts', true],
  ['git status', true],
  ['git diff', true],
  ['git log --oneline -5', true],
  ['git log -p -1 | head -5', true],
  ['make', false],
  ['npm test', false],
  ['python3 -c 1', false],
  ['echo $HOME', false],
];

describe('of 29 everyday commands', () => {
  it.each(EVERYDAY)('%s', async (command, runs) => {
    const result = await sandbox.run(command);
    expect(result.status, JSON.stringify(result)).toBe(runs ? 'exited' : 'denied');
    // rg finds nothing in one of them.
    if (runs) expect([0, 1], JSON.stringify(result)).toContain(result.exitCode);
  });

  it('25 run', () => {
    expect(EVERYDAY.filter(([, runs]) => runs)).toHaveLength(25);
    expect(EVERYDAY).toHaveLength(29);
  });
});

describe('patterns', () => {
  const bash = (source: string, cwd = workspace) =>
    spawnSync('/bin/bash', ['--noprofile', '--norc', '-c', source], {
      cwd,
      encoding: 'utf8',
      env: { PATH: '/usr/bin:/bin', LC_ALL: 'C' },
    }).stdout;

  it.each([
    'printf "%s|" *.ts',
    'printf "%s|" src/*.ts',
    'printf "%s|" ./src/?.ts',
    'printf "%s|" src//*',
    'printf "%s|" s*/a.ts',
    'printf "%s|" */*.ts */missing',
    'printf "%s|" sub/../*.txt',
    'printf "%s|" src*/',
    'printf "%s|" **',
    'printf "%s|" *.nothing nowhere/* a.txt/*',
    'printf "%s|" --include=*.ts',
    'printf "%s|" "*".ts x"y"*',
    'printf "%s|" sub/.* sub/*',
    'printf "%s|" .g*',
    'cd src && printf "%s|" *.ts ../*.ts',
    'true && cd sub && cd one && printf "%s|" *',
    'wc -c *.ts src/*.ts',
  ])('mean what they mean to bash: %s', async (source) => {
    const result = await sandbox.run(source);
    expect(result.status, JSON.stringify(result)).toBe('exited');
    expect(result.stdout).toBe(bash(source));
  });

  it.each([
    ['cat links/*', 'the links lead out'],
    ['ls -L li*/*', 'the same'],
    ['cat links/directory/*', 'what lies outside is not even listed'],
    ['cat links/root/etc/*', 'the same'],
    ['cat ../outside/*', 'the same'],
    ['cat OUT/*', 'the same'],
    ['cat /etc/pass*', 'the same'],
    ['echo links/root/etc/pass*', 'the same, of a program whose words are not looked at'],
    ['echo ../outside/*', 'the same'],
    ['cat [ab].txt', 'brackets'],
    ['*.sh', 'the program'],
    ['cat < *.txt', 'a redirect'],
    ['echo x > *.txt', 'a redirect'],
    ['cd s* && ls', 'a directory'],
    ['cd src; ls *.ts', 'which directory it is'],
    ['cd nowhere || ls *.ts', 'the same'],
    ['touch new.ts; ls *.ts', 'what is there by then'],
    ['echo x > new.ts; cat *.ts', 'the same'],
    ['mv links other; cat other/*', 'the same'],
    ['tee new.ts < a.txt | cat *.ts', 'the same'],
  ])('are refused: %s (%s)', async (command) => {
    const result = await sandbox.run(command.replaceAll('OUT', outside), { approved: true });
    expect(result.status, JSON.stringify(result)).toBe('denied');
    expect(JSON.stringify(result)).not.toMatch(/secret\.txt|passwd/);
  });

  it('do not make options, or anything else than a file, of names', async () => {
    const odd = await makeStage();
    for (const name of ['-la', '--help', '+5', '=x', '(', '!', '@a', 'plain'])
      writeFileSync(join(odd.workspace, name), `${name}\n`);
    const shown = await odd.sandbox.run('printf "%s|" *l*');
    expect(shown.stdout).toBe('./--help|./-la|links|plain|');
    expect((await odd.sandbox.run('cat ./-l*')).stdout).toBe('-la\n');
    expect((await odd.sandbox.run('cat *a')).stdout).toContain('-la\n');
    // The file would be an option.
    for (const command of ['cat --h*', 'cat -- -l*'])
      expect((await odd.sandbox.run(command)).status).toBe('denied');
  });

  it('match nothing whose name is no text, and not more than is judged in time', async () => {
    const odd = await makeStage();
    const many = join(odd.workspace, 'many');
    mkdirSync(many);
    for (let index = 0; index < 1100; index++) writeFileSync(join(many, `f${index}`), '');
    expect((await odd.sandbox.run('ls many/*')).status).toBe('denied');
    expect((await odd.sandbox.run('ls many/f1?')).stdout.split('\n')).toHaveLength(11);
    writeFileSync(Buffer.concat([Buffer.from(`${odd.workspace}/bad`), Buffer.from([0xff])]), '');
    expect((await odd.sandbox.run('cat bad*')).status).toBe('denied');
  });

  it('are started as they were judged, whatever comes while a person is asked', async () => {
    let added = '';
    const approver = {
      ask: async () => {
        symlinkSync('../outside/secret.txt', join(asked.workspace, added));
        return { approved: true, scope: 'once', by: 'a test' } as const;
      },
    };
    const asked = await makeStage({ autonomy: 'supervised', gate: { approver } });
    writeFileSync(join(asked.workspace, 'one.ts'), 'one\n');
    for (const [name, command] of [
      ['later.ts', 'cp *.ts copy'],
      ['a.ts', 'cat *.ts > copy/all'],
    ] as const) {
      added = name;
      const result = await asked.sandbox.run(command);
      rmSync(join(asked.workspace, added));
      expect(result.status, JSON.stringify(result)).toBe('exited');
    }
    expect(readdirSync(join(asked.workspace, 'copy')).sort()).toEqual(['all', 'one.ts']);
    expect(readFileSync(join(asked.workspace, 'copy/all'), 'utf8')).toBe('one\n');
  });

  it('are judged name by name: a protected file is refused as if it were written out', async () => {
    for (const command of ['cp a.txt sub/.e*', 'rm sub/.e*', 'touch sub/.envr?'])
      expect((await sandbox.run(command, { approved: true })).status).toBe('denied');
    expect((await sandbox.run('cp a.txt sub/.envrc', { approved: true })).status).toBe('denied');
  });
});
