import { chmodSync, existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { execa } from 'execa';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type CommandDescription, collectPrograms, describeAll, everyCommand } from '../../src/cli/index.ts';
import { cli, expectOneLine, makePlace, PTY_DRIVER, startCli } from './support.ts';

const place = makePlace();
afterAll(() => place.dispose());

const script = (shell: string) =>
  fileURLToPath(new URL(`../../dist/completions/sandbox-run.${shell}`, import.meta.url));
const MARK = join(place.root, 'ran');
/** A workspace that waits for somebody who completes: whatever of it is run leaves a mark. */
const TRAP = `#!/bin/sh\necho "$0 $*" >> ${MARK}\n`;
const BIN = join(place.root, 'bin');

beforeAll(() => {
  mkdirSync(join(place.workspace, 'some-directory'));
  mkdirSync(BIN);
  writeFileSync(join(place.workspace, 'some-file.toml'), '');
  writeFileSync(join(place.workspace, 'Makefile'), `$(shell echo make >> ${MARK})\nall:\n`);
  for (const path of ['sandbox-run', 'some-program'].flatMap((name) => [
    join(place.workspace, name),
    join(BIN, name),
  ])) {
    writeFileSync(path, TRAP);
    chmodSync(path, 0o755);
  }
});

/** Words that complete what stands before the cursor; the last word of `words` is being typed. */
type Complete = (...words: string[]) => Promise<readonly string[]>;

/** Nothing is found in PATH but traps: whatever a completion starts leaves a mark. */
const env = () => ({ ...place.env, PATH: BIN, HOME: place.root, TERM: 'xterm' });

async function linesOf(program: string, args: readonly string[]): Promise<readonly string[]> {
  const { stdout, stderr } = await execa(program, args, {
    cwd: place.workspace,
    env: env(),
    extendEnv: false,
    stdin: 'ignore',
  });
  expect(stderr).toBe('');
  return stdout.split('\n').filter((line) => line !== '');
}

/** `compopt` works only for readline: here it says what it was asked for. */
const BASH = `
source "$1"; shift
options=
compopt() { options+=" $*"; }
COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1))
_sandbox_run
printf '%s\\n' "\${COMPREPLY[@]}" "$options"`;
const inBash: Complete = async (...words) =>
  (
    await linesOf('/bin/bash', [
      '--norc',
      '--noprofile',
      '-uc',
      BASH,
      '-',
      script('bash'),
      'sandbox-run',
      ...words,
    ])
  ).map((line) => line.trim());

const inFish: Complete = async (...words) => {
  const line = `source ${script('fish')}; complete -C 'sandbox-run ${words.join(' ')}'`;
  const found = await linesOf('/usr/bin/fish', ['--no-config', '-c', line]);
  return found.map((each) => each.split('\t')[0] ?? '');
};

/** Types on a terminal, and returns what it shows then. */
async function typed(argv: readonly string[], prepare: string, keys: string, pattern: string) {
  const steps = [
    { expect: 'READY> ' },
    // What is typed is shown as well, and must not look like the prompt.
    { send: `${prepare}; PS1=NO'W> '\n` },
    { expect: 'NOW> ' },
    { send: keys },
    { expect: pattern },
    // Forgets the line.
    { send: '\u0015exit 0\n' },
  ];
  const input = JSON.stringify({
    argv,
    cwd: place.workspace,
    env: { ...env(), PS1: 'READY> ' },
    size: [40, 120],
    steps,
  });
  const { stdout } = await execa('python3', [PTY_DRIVER], { input });
  const { failed, output } = JSON.parse(stdout);
  expect(failed, output).toBeNull();
  return output as string;
}

const ZSH_READY = `autoload -Uz compinit; compinit -u -D; source ${script('zsh')}; zle_highlight=none`;
const onZsh = (keys: string, pattern: string) =>
  typed(['/usr/bin/zsh', '-f', '-i'], ZSH_READY, keys, pattern);
const onBash = (keys: string, pattern: string) =>
  typed(['/bin/bash', '--norc', '--noprofile', '-i'], `source ${script('bash')}`, keys, pattern);

let commands: readonly CommandDescription[] = [];
beforeAll(async () => {
  commands = everyCommand(describeAll(await collectPrograms()));
});
const namesOf = ({ subcommands }: CommandDescription) => subcommands.map(({ path }) => path.at(-1) ?? '');
const root = (): CommandDescription => commands[0] ?? expect.fail('nothing is described');

describe.each([
  ['bash', inBash],
  ['fish', inFish],
] as const)('in %s', (shell, complete) => {
  it('every subcommand of every level is completed', async () => {
    for (const command of commands.filter(({ subcommands }) => subcommands.length > 0)) {
      const found = await complete(...command.path, '');
      for (const name of namesOf(command)) expect(found, command.path.join(' ')).toContain(name);
    }
  });

  it('every option of every command is completed, and no other', async () => {
    for (const { path, options, arguments: operands } of commands) {
      const long = options.flatMap(({ names }) => names.filter((name) => name.startsWith('--')));
      const found = (await complete(...path, '--')).filter((word) => word.startsWith('--'));
      // fish has -- itself, and --option= for those with a value.
      expect(new Set(found.map((word) => word.replace(/=$/, ''))), path.join(' ')).toEqual(new Set(long));
      expect(operands.length).toBeGreaterThanOrEqual(0);
    }
  });

  it.each([
    [
      ['--backend', ''],
      ['auto', 'landlock', 'namespaces', 'firejail', 'application'],
    ],
    [['--profile', 'n'], ['networked']],
    [['check', '--autonomy', 's'], ['supervised']],
    [['--taint', 'corruption,s'], ['corruption,secret']],
    [['--ask', 'q'], ['queue']],
    [['approvals', 'approve', 'x', '--scope', 'a'], ['always']],
    [['audit', 'search', '--verdict', 'd'], ['deny']],
    [['session', 'taint', 'x', 'c'], ['corruption']],
    [
      ['completion', ''],
      ['bash', 'fish', 'zsh'],
    ],
    [['--json', '--back'], ['--backend']],
    [['-c', 'true', '--back'], ['--backend']],
    [['session', 'run', 'x', '--tai'], ['--taint']],
    [['--env', 'LAN'], ['LANG']],
    [['session', 'run', 'x', '--', 'some-pro'], ['some-program']],
  ])('words that are known are completed: %j', async (words, expected) => {
    expect([...(await complete(...words))].sort()).toEqual([...expected].sort());
  });

  it('a value behind = is completed', async () => {
    const words = shell === 'bash' ? ['--backend', '=', 'l'] : ['--backend=l'];
    expect(await complete(...words)).toEqual([shell === 'bash' ? 'landlock' : '--backend=landlock']);
    const ended = shell === 'bash' ? ['--env', '=', 'A', '=', '1'] : ['--env=A=1'];
    expect(await complete(...ended, '--back')).toEqual(['--backend']);
    // Where somebody took = out of COMP_WORDBREAKS, in bash.
    expect(await complete('--taint=corruption,s')).toEqual(['--taint=corruption,secret']);
    if (shell === 'bash') {
      expect(await complete('--ask', '=')).toEqual(['terminal', 'queue', 'nobody']);
      expect(await complete('--backend=l')).toEqual(['--backend=landlock']);
    }
  });

  it('a subcommand is the first word, and not behind --', async () => {
    expect(await complete('doc')).toContain('doctor');
    expect(await complete('--json', 'doc')).not.toContain('doctor');
    expect(await complete('--', 'doc')).not.toContain('doctor');
    expect(await complete('doctor', 'policy', '')).not.toContain('init');
  });

  it('the options of a program are not ours', async () => {
    for (const words of [
      ['ls', '--'],
      ['--', 'ls', '--'],
      ['session', 'run', 'x', 'ls', '--'],
    ])
      expect((await complete(...words)).join()).not.toContain('--json');
  });

  it('programs of the path are completed, and no builtins or functions', async () => {
    expect(await complete('some-p')).toContain('some-program');
    for (const name of ['alias', 'function', 'cd']) expect(await complete(name)).not.toContain(name);
  });

  it('nothing is run or expanded, whatever was typed', async () => {
    const evil = [
      `$(echo x >> ${MARK})`,
      `\`echo x >> ${MARK}\``,
      `;echo x >> ${MARK};`,
      '*',
      '~root',
      `\${x:=y}`,
    ];
    for (const text of evil) {
      // fish takes a command line, in which a semicolon begins another command.
      if (shell === 'fish' && /[;`]/.test(text)) continue;
      for (const words of [[text], [text, ''], ['--policy', text], ['--taint', text, ''], ['make', text]])
        await complete(...words.map((word) => (shell === 'fish' ? word.replaceAll("'", '') : word)));
    }
    await complete('make', '');
    await complete('approvals', 'show', '');
    expect(existsSync(MARK)).toBe(false);
  });
});

describe('on a terminal with bash', () => {
  it('files, directories and programs are completed by readline', async () => {
    await onBash('sandbox-run --policy some-f\t', 'some-file\\.toml ');
    await onBash('sandbox-run --workspace=some-\t', '--workspace=some-directory/');
    await onBash('sandbox-run some-program some-f\t', 'some-program some-file\\.toml ');
    await onBash('sandbox-run polic\tval\tsome-f\t', 'policy validate some-file\\.toml ');
    expect(existsSync(MARK)).toBe(false);
  });

  it('a program named sandbox-run in the workspace is not run', async () => {
    await onBash('./sandbox-run appr\tgr\t', 'approvals grants ');
    expect(existsSync(MARK)).toBe(false);
  });
});

// Each zsh looks through all of its functions first.
describe('on a terminal with zsh', { timeout: 120_000 }, () => {
  it.each([
    ['subcommands', 'sandbox-run doct\t', 'doctor'],
    ['subcommands of a subcommand', 'sandbox-run policy val\t', 'validate'],
    ['options', 'sandbox-run --works\t', '--workspace'],
    ['options of a subcommand', 'sandbox-run audit verify --compl\t', '--complete'],
    ['options behind the name of a session', 'sandbox-run session run x --tai\t', '--taint'],
    ['values', 'sandbox-run --backend land\t', 'landlock'],
    ['values behind =', 'sandbox-run --backend=name\t', 'namespaces'],
    ['lists', 'sandbox-run --taint corruption,sec\t', 'corruption,secret'],
    ['words of an argument', 'sandbox-run session taint x corr\t', 'corruption'],
    ['variables', 'sandbox-run --env XDG_CONF\t', 'XDG_CONFIG_HOME'],
    ['programs', 'sandbox-run -- some-pro\t', 'some-program'],
    ['arguments of a program, as files', 'sandbox-run make some-f\t', 'some-file\\.toml'],
    ['directories', 'sandbox-run --workspace some-d\t', 'some-directory'],
  ])('%s are completed', async (_, keys, pattern) => {
    await onZsh(keys, pattern);
    expect(existsSync(MARK)).toBe(false);
  });

  it('lists every subcommand with what it does', async () => {
    const shown = await onZsh('sandbox-run \t\t', 'session  *-- ');
    for (const name of namesOf(root())) expect(shown).toMatch(new RegExp(`${name} +-- `));
  });

  it('is loaded from a directory of functions too', async () => {
    const functions = join(place.root, 'functions');
    mkdirSync(functions);
    writeFileSync(join(functions, '_sandbox-run'), (await startCli(place, ['completion', 'zsh'])).stdout);
    const prepare = `fpath=(${functions} $fpath); autoload -Uz compinit; compinit -u -D; zle_highlight=none`;
    await typed(['/usr/bin/zsh', '-f', '-i'], prepare, 'sandbox-run doct\t', 'doctor');
  });

  it('nothing is expanded, whatever was typed', async () => {
    await onZsh(`sandbox-run --policy '$(echo x >> ${MARK})' doct\t x`, ' x');
    await onZsh(`sandbox-run $(echo x >> ${MARK}) so\t x`, ' x');
    expect(existsSync(MARK)).toBe(false);
  });
});

describe('sandbox-run completion', () => {
  it.each(['bash', 'fish', 'zsh'])('prints what was built for %s', async (shell) => {
    // It lies beside what was built.
    const { exitCode, stdout, stderr } = await startCli(place, ['completion', shell]);
    expect({ exitCode, stderr }).toEqual({ exitCode: 0, stderr: '' });
    expect(stdout).toContain(`${shell} completion for sandbox-run`);
    await execa(shell, ['-n', script(shell)]);
  });

  it('knows no other shell', async () => {
    const result = await cli(place, ['completion', 'powershell']);
    expect(result).toMatchObject({ exitCode: 125, stdout: '' });
    expectOneLine(result.stderr);
    expect(result.stderr).toMatch(/bash.*fish.*zsh/);
  });
});
