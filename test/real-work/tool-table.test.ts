import { spawn, spawnSync } from 'node:child_process';
import {
  chownSync,
  cpSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { lacksIn } from '../support/programs.ts';
import { TOOL_ROWS, type ToolRow } from './tools.ts';

const CHECKOUT = fileURLToPath(new URL('../../', import.meta.url));
const PATH = '/usr/local/bin:/usr/bin:/bin:/usr/local/games:/usr/games';
const DAY = Math.floor(Date.now() / 86_400_000);
/** A third of the rows each day. `npm run test:tools` runs all. */
const isForToday = (at: number) => process.env.SANDBOX_RUN_TOOLS === 'all' || at % 3 === DAY % 3;

interface Outcome {
  readonly status: string;
  readonly stdout: string;
  readonly files: readonly string[];
}

/** An ordinary user with a home of mode 0700 and, in it, workspaces. Root makes one; anybody else is one. */
class OrdinaryUser {
  private readonly ids: { readonly uid?: number; readonly gid?: number } = {};
  private readonly name: string | undefined;
  private readonly scratch = mkdtempSync(join(tmpdir(), 'tool-table-'));
  private readonly cli: string;
  readonly home: string;

  constructor() {
    spawnSync('chmod', ['755', this.scratch]);
    // The checkout may be where only root can look.
    const copy = join(this.scratch, 'package');
    for (const part of ['dist', 'build/Release', 'package.json'])
      cpSync(join(CHECKOUT, part), join(copy, part), { recursive: true });
    cpSync(
      join(CHECKOUT, 'node_modules/@photostructure/sqlite'),
      join(copy, 'node_modules/@photostructure/sqlite'),
      {
        recursive: true,
        dereference: true,
      },
    );
    spawnSync('chmod', ['-R', 'go+rX', copy]);
    this.cli = join(copy, 'dist/cli.cjs');
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
  async outcomeOf(
    row: ToolRow,
    at: number,
    where: 'outside' | 'inside',
  ): Promise<Outcome & { said: string }> {
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
        : [process.execPath, this.cli, '--timeout', '100', ...(row.options ?? []), '--', ...bash(row.line)];
    const outcome = await this.run(argv, workspace);
    const files = filesBelow(workspace, row.varies);
    rmSync(workspace, { recursive: true, force: true });
    return { ...outcome, files };
  }

  private run(
    [program = '', ...args]: readonly string[],
    cwd: string,
  ): Promise<Omit<Outcome, 'files'> & { said: string }> {
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
    const inside = await user.outcomeOf(row, -1, 'inside');
    expect(outside).toBe('../../private\n');
    expect(inside).toMatchObject({ status: 'exit 0', stdout: '', files });
  });

  it('has 80 rows, each of its own', () => {
    expect(TOOL_ROWS.length).toBeGreaterThanOrEqual(80);
    expect(new Set(TOOL_ROWS.map(({ tool, task }) => `${tool}: ${task}`)).size).toBe(TOOL_ROWS.length);
  });

  for (const [at, row] of TOOL_ROWS.entries()) {
    if (!isForToday(at)) continue;
    it.skipIf(lacksIn(PATH, ...row.programs))(`${row.tool}: ${row.task}`, { concurrent: true }, async () => {
      const { said: outsideSaid, ...outside } = await user.outcomeOf(row, at, 'outside');
      const { said, ...inside } = await user.outcomeOf(row, at, 'inside');
      const all = `outside:\n${outside.stdout}${outsideSaid}\ninside:\n${inside.stdout}${said}`;
      if (row.differs === undefined) expect(inside, all).toEqual(outside);
      else expect(inside, `equal by now: remove \`differs\`. ${all}`).not.toEqual(outside);
    });
  }
});
