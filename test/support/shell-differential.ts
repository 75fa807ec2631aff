import { spawnSync } from 'node:child_process';
import { chmodSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, relative, resolve } from 'node:path';
import type { CommandLine, SimpleCommand, Word } from '../../src/model/index.ts';
import { STUBS, SUCCEEDING } from './shell-generator.ts';

/** A stub that ran: its words, and where. */
interface Execution {
  readonly argv: readonly string[];
  readonly directory: string;
}

/**
 * A shell in an empty directory, whose PATH holds nothing but stubs that log how they were called. As nobody: what a random
 * string makes elsewhere, `>"$V1"/a`, would stay there, and root may write everywhere.
 */
export interface Bench extends Disposable {
  /** What the shell did that the list does not have, as sentences; empty if nothing. */
  compare(shell: 'bash' | 'dash', source: string, line: CommandLine): readonly string[];
}

export function createBench(): Bench {
  const root = mkdtempSync(join(tmpdir(), 'shell-differential-'));
  const stubs = join(root, 'stubs');
  const log = join(root, 'log');
  const work = join(root, '1/2/3/4/5/6/7/8/work');
  chmodSync(root, 0o755);
  mkdirSync(stubs);
  STUBS.forEach((name, index) => {
    const path = join(stubs, name);
    // One write for each call, so that calls at the same time do not mix.
    const text = `#!/bin/dash\ncd -P .\nprintf '%s\\0' "$#" "$PWD" ${name} "$@" >>${log}\necho a b\nexit ${index < SUCCEEDING ? 0 : 1}\n`;
    writeFileSync(path, text);
    chmodSync(path, 0o755);
  });

  function run(shell: 'bash' | 'dash', source: string): readonly Execution[] {
    rmSync(join(root, '1'), { recursive: true, force: true });
    for (const name of ['d0/d1/d0/d1', 'd1/d0/d1/d0']) mkdirSync(join(work, name), { recursive: true });
    writeFileSync(log, '');
    chmodSync(log, 0o666);
    const places = readdirSync(join(root, '1'), { recursive: true, encoding: 'utf8' });
    for (const place of ['', ...places]) chmodSync(join(root, '1', place), 0o777);
    const argv = shell === 'bash' ? ['--noprofile', '--norc', '-c', '--', source] : ['-c', source];
    const { pid } = spawnSync(`/bin/${shell}`, argv, {
      cwd: work,
      env: { PATH: stubs, HOME: work, SHLVL: '1', V0: 'x y', V1: '' },
      // The fourth descriptor stays open in children that redirect the others: all of them are waited for.
      stdio: ['ignore', 'pipe', 'pipe', 'pipe'],
      timeout: 3000,
      killSignal: 'SIGKILL',
      ...OWN_GROUP,
      ...NOBODY,
    });
    endGroup(pid);
    return parseLog(readFileSync(log, 'utf8'));
  }

  function compare(shell: 'bash' | 'dash', source: string, line: CommandLine): readonly string[] {
    const problems: string[] = [];
    for (const execution of run(shell, source)) {
      const where = relative(work, execution.directory);
      const same = line.commands.filter((command) => matches(command.words, execution.argv));
      if (same.length === 0) problems.push(`ran ${JSON.stringify(execution.argv)}, which is not listed`);
      else if (!same.some((command) => isIn(command, execution.directory, work))) {
        problems.push(`ran ${JSON.stringify(execution.argv)} in ${where}, where it was not expected`);
      }
    }
    for (const file of filesBeneath(join(root, '1'))) {
      if (!line.commands.some((command) => mayCreate(command, file)))
        problems.push(`created ${file}, which is not listed`);
    }
    return problems;
  }

  return { compare, [Symbol.dispose]: () => rmSync(root, { recursive: true, force: true }) };
}

/** `detached` works for spawnSync as for spawn, but is missing in its type. */
const OWN_GROUP: object = { detached: true };

const NOBODY = process.getuid?.() === 0 ? { uid: 65534, gid: 65534 } : {};

/** Ends what is left of a script that ran into the time limit. */
function endGroup(pid: number): void {
  try {
    if (pid > 1) process.kill(-pid, 'SIGKILL');
  } catch {
    // Nothing is left.
  }
}

function parseLog(text: string): readonly Execution[] {
  const fields = text.split('\0');
  const executions: Execution[] = [];
  for (let at = 0; at + 2 < fields.length; ) {
    const count = Number(fields[at]);
    executions.push({ directory: fields[at + 1] ?? '', argv: fields.slice(at + 2, at + 3 + count) });
    at += 3 + count;
  }
  return executions;
}

/** A word that is not known may become any number of words. */
function matches(words: readonly Word[], argv: readonly string[]): boolean {
  const [first, ...others] = words;
  if (first === undefined) return argv.length === 0;
  if (first.value !== undefined) return argv[0] === first.value && matches(others, argv.slice(1));
  for (let taken = 0; taken <= argv.length; taken += 1) if (matches(others, argv.slice(taken))) return true;
  return false;
}

function isIn(command: SimpleCommand, directory: string, work: string): boolean {
  if (command.directories === undefined) return true;
  return command.directories.some((targets) => {
    const texts = targets.map((target) => target.value);
    return (
      texts.includes(undefined) || resolve(work, ...texts.filter((text) => text !== undefined)) === directory
    );
  });
}

function mayCreate(command: SimpleCommand, file: string): boolean {
  return command.redirects.some((redirect) => {
    if (!redirect.operator.includes('>') || redirect.operator === '>&') return false;
    return redirect.target.value === undefined || redirect.target.value === file;
  });
}

/** Names of regular files at any depth. */
function filesBeneath(folder: string): readonly string[] {
  const entries = readdirSync(folder, { recursive: true, withFileTypes: true });
  return entries.filter((entry) => !entry.isDirectory()).map((entry) => entry.name);
}
