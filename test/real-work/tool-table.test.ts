import { spawn, spawnSync } from 'node:child_process';
import {
  chownSync,
  cpSync,
  existsSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, type ExpectStatic, expect, it } from 'vitest';
import { lacksIn } from '../support/programs.ts';
import { HOST } from '../support/tiers.ts';
import { WITHOUT } from '../support/without.ts';
import { TOOL_ROWS, type ToolRow } from './tools.ts';

const CHECKOUT = fileURLToPath(new URL('../../', import.meta.url));
const PATH = '/usr/local/bin:/usr/bin:/bin:/usr/local/games:/usr/games';
const DAY = Math.floor(Date.now() / 86_400_000);
/** A third of the rows each day. `npm run test:tools` runs all. */
const isForToday = (at: number) => process.env.SANDBOX_RUN_TOOLS === 'all' || at % 3 === DAY % 3;

/** By itself; in the sandbox; in the sandbox as on a host without namespaces, which has Landlock alone. */
type Where = 'outside' | 'inside' | 'by Landlock alone';

interface Outcome {
  readonly status: string;
  readonly stdout: string;
  readonly files: readonly string[];
}

/** And what it said on standard error, for the message of a failed test. */
interface Told extends Outcome {
  readonly said: string;
}

/** An ordinary user with a home of mode 0700 and, in it, workspaces. Root makes one; anybody else is one. */
class OrdinaryUser {
  private readonly ids: { readonly uid?: number; readonly gid?: number } = {};
  private readonly name: string | undefined;
  private readonly scratch = mkdtempSync('/var/tmp/tool-table-');
  private readonly cli: readonly string[];
  private readonly withoutNamespaces: readonly string[];
  readonly home: string;

  constructor() {
    spawnSync('chmod', ['755', this.scratch]);
    // The checkout may be where only root can look.
    const copy = join(this.scratch, 'package');
    for (const part of ['dist', 'build/Release', 'package.json', ...installedDependencies()])
      cpSync(join(CHECKOUT, part), join(copy, part), { recursive: true, dereference: true });
    const without = join(copy, 'without.py');
    cpSync(WITHOUT, without);
    spawnSync('chmod', ['-R', 'go+rX', copy]);
    this.cli = [process.execPath, join(copy, 'dist/cli.cjs')];
    this.withoutNamespaces = ['/usr/bin/python3', without, 'namespaces', 'EPERM'];
    if (process.getuid?.() === 0) {
      this.name = `sr-tools-${process.pid}`;
      this.home = join(this.scratch, 'home');
      const made = spawnSync(
        'useradd',
        ['--create-home', '--home-dir', this.home, '-s', '/bin/bash', this.name],
        {
          encoding: 'utf8',
        },
      );
      if (made.status !== 0) throw new Error(`useradd: ${made.stderr}`);
      process.once('exit', this.onExit);
      const id = (flag: string) =>
        Number(spawnSync('id', [flag, this.name ?? ''], { encoding: 'utf8' }).stdout);
      this.ids = { uid: id('-u'), gid: id('-g') };
    } else {
      this.home = join(this.scratch, 'home');
      mkdirSync(this.home);
    }
    spawnSync('chmod', ['700', this.home]);
    this.write(join(this.home, 'private'), '');
    this.write(
      join(this.home, '.gitconfig'),
      '[user]\n\tname = A User\n\temail = user@example.test\n[init]\n\tdefaultBranch = main\n',
    );
  }

  private readonly onExit = () => {
    if (this.name !== undefined) spawnSync('userdel', ['--force', this.name]);
  };

  remove(): void {
    process.off('exit', this.onExit);
    this.onExit();
    rmSync(this.scratch, { recursive: true, force: true });
  }

  /** Runs the line in a fresh workspace, always at the same path, so that what names it is equal. */
  async outcomeOf(row: ToolRow, at: number, where: Where): Promise<Told> {
    const workspace = join(this.home, `work/row-${at}`);
    rmSync(workspace, { recursive: true, force: true });
    this.makeDirectory(workspace);
    for (const [name, text] of Object.entries(row.files ?? {})) this.write(join(workspace, name), text);
    const bash = (line: string) => ['bash', '--noprofile', '--norc', '-c', line];
    if (row.before !== undefined) {
      const { status, said } = await this.run(bash(row.before), workspace);
      if (status !== 'exit 0') throw new Error(`before: ${status}: ${said}`);
    }
    const argv =
      where === 'outside'
        ? bash(row.line)
        : [
            ...(where === 'inside' ? [] : this.withoutNamespaces),
            ...[...this.cli, '--timeout', '100', ...this.optionsOf(row, where), '--', ...bash(row.line)],
          ];
    const outcome = await this.run(argv, workspace);
    const files = filesBelow(workspace, row.varies);
    rmSync(workspace, { recursive: true, force: true });
    return { ...outcome, files };
  }

  private optionsOf(row: ToolRow, where: Where): readonly string[] {
    const { options = [], optionsWithoutNamespaces = [] } = row;
    return where === 'inside' ? options : [...options, ...optionsWithoutNamespaces];
  }

  private run([program = '', ...args]: readonly string[], cwd: string): Promise<Omit<Told, 'files'>> {
    return new Promise((done, failed) => {
      const child = spawn(program, args, {
        cwd,
        ...this.ids,
        env: {
          PATH,
          HOME: this.home,
          USER: this.name ?? process.env.USER,
          LOGNAME: this.name ?? process.env.USER,
          SHELL: '/bin/bash',
          LANG: 'C.UTF-8',
          XDG_STATE_HOME: join(this.home, '.state'),
        },
        stdio: ['ignore', 'pipe', 'pipe'],
      });
      const [stdout, stderr]: [Buffer[], Buffer[]] = [[], []];
      child.stdout.on('data', (bytes) => stdout.push(bytes));
      child.stderr.on('data', (bytes) => stderr.push(bytes));
      child.once('error', failed);
      child.once('close', (code, signal) =>
        done({
          status: signal ?? `exit ${code}`,
          stdout: Buffer.concat(stdout).toString(),
          said: Buffer.concat(stderr).toString().slice(-2_000),
        }),
      );
    });
  }

  private write(path: string, text: string): void {
    this.makeDirectory(dirname(path));
    writeFileSync(path, text);
    this.own(path);
  }

  private makeDirectory(path: string): void {
    const first = mkdirSync(path, { recursive: true });
    if (first !== undefined) for (let at = path; at.length >= first.length; at = dirname(at)) this.own(at);
  }

  private own(path: string): void {
    if (this.ids.uid !== undefined && this.ids.gid !== undefined) chownSync(path, this.ids.uid, this.ids.gid);
  }
}

/** The directories of what a user's installation of the package brings along. */
function installedDependencies(): readonly string[] {
  const lock = JSON.parse(readFileSync(join(CHECKOUT, 'package-lock.json'), 'utf8')) as {
    readonly packages: Readonly<Record<string, { readonly dev?: true; readonly peer?: true }>>;
  };
  const isInstalled = (directory: string) => directory !== '' && existsSync(join(CHECKOUT, directory));
  return Object.entries(lock.packages)
    .filter(([directory, { dev, peer }]) => dev !== true && peer !== true && isInstalled(directory))
    .map(([directory]) => directory);
}

/** A line for each file: kind, mode, links, name and what is in it. Without files that differ at each run. */
function filesBelow(workspace: string, varies: RegExp | undefined): readonly string[] {
  const names = readdirSync(workspace, { recursive: true, encoding: 'latin1' });
  const lines = names
    .filter((name) => varies?.test(name) !== true)
    .map((name) => {
      const path = Buffer.from(join(workspace, name), 'latin1');
      const stat = lstatSync(path);
      const kind = (stat.mode >> 12).toString(8);
      const content = stat.isFile()
        ? stat.size > 1_000_000
          ? `${stat.size} bytes`
          : readFileSync(path, 'latin1')
        : stat.isSymbolicLink()
          ? readlinkSync(path)
          : '';
      const links = stat.isFile() ? stat.nlink : 1;
      return `${kind} ${(stat.mode & 0o7777).toString(8)} ${links} ${JSON.stringify(name)} ${JSON.stringify(content)}`;
    });
  return lines.sort();
}

describe('tools work inside as they do outside', () => {
  let user: OrdinaryUser;
  beforeAll(() => {
    user = new OrdinaryUser();
  });
  afterAll(() => user.remove());

  it('sees a difference', async () => {
    const row = {
      tool: 'bash',
      task: '',
      programs: [],
      packages: '',
      // The kernel is asked here, not the text.
      files: { 'a.sh': 'find ../.. -maxdepth 1 -name private; echo x > made\n' },
      line: 'sh a.sh',
    };
    const { stdout: outside, files } = await user.outcomeOf(row, -1, 'outside');
    expect(outside).toBe('../../private\n');
    for (const where of ['inside', 'by Landlock alone'] as const) {
      const inside = await user.outcomeOf(row, -1, where);
      expect(inside, where).toMatchObject({ status: 'exit 0', stdout: '', files });
    }
  });

  it.runIf(HOST.namespaces)('runs the second time as on a host without namespaces', async () => {
    const row = { tool: 'unshare', task: '', programs: [], packages: '', line: 'echo $HOME' };
    const { stdout } = await user.outcomeOf(row, -2, 'inside');
    expect(stdout).toBe(`${user.home}\n`);
    expect((await user.outcomeOf(row, -2, 'by Landlock alone')).stdout).not.toBe(stdout);
  });

  it('has 80 rows, each of its own, most of them equal also by Landlock alone', () => {
    const equal = TOOL_ROWS.filter(({ differs }) => differs === undefined);
    expect(equal.length).toBeGreaterThanOrEqual(80);
    const byLandlock = equal.filter((row) => row.differsWithoutNamespaces === undefined);
    expect(byLandlock.length).toBeGreaterThanOrEqual(70);
    expect(new Set(TOOL_ROWS.map(({ tool, task }) => `${tool}: ${task}`)).size).toBe(TOOL_ROWS.length);
  });

  // Such a row would fail equally everywhere.
  it('has rows that bash can parse', () => {
    const fails = TOOL_ROWS.filter(({ line }) => spawnSync('bash', ['-n', '-c', line]).status !== 0);
    expect(fails.map(({ tool, task }) => `${tool}: ${task}`)).toEqual([]);
  });

  for (const [at, row] of TOOL_ROWS.entries()) {
    if (!isForToday(at)) continue;
    const isAbsent = lacksIn(PATH, ...row.programs);
    const { differs, differsWithoutNamespaces = differs } = row;
    it.skipIf(isAbsent)(
      `${row.tool}: ${row.task}`,
      { concurrent: true, timeout: 360_000 },
      async ({ expect }) => {
        const outside = await user.outcomeOf(row, at, 'outside');
        const inside = await user.outcomeOf(row, at, 'inside');
        const byLandlock = await user.outcomeOf(row, at, 'by Landlock alone');
        compare(expect, outside, inside, HOST.namespaces ? differs : differsWithoutNamespaces);
        compare(expect, outside, byLandlock, differsWithoutNamespaces);
      },
    );
  }
});

function compare(
  expect: ExpectStatic,
  { said: saidOutside, ...outside }: Told,
  { said, ...inside }: Told,
  differs: string | undefined,
): void {
  const all = `outside:\n${outside.stdout}${saidOutside}\ninside:\n${inside.stdout}${said}`;
  if (differs === undefined) expect(inside, all).toEqual(outside);
  else expect(inside, `equal by now: the row must not say that they differ. ${all}`).not.toEqual(outside);
}
