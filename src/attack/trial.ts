import { spawn } from 'node:child_process';
import { describeShortage } from '../errors/shortage.ts';
import { errnoName, signalName } from '../kernel/errno.ts';
import type { ExecutionResult } from '../model/execution-result.ts';
import type { Sandbox } from '../run/sandbox.ts';
import type { Attack, Manner, Said, Staged } from './attack.ts';

/** An attack, staged in one place. */
export interface Attempt {
  readonly attack: Attack;
  readonly staged: Staged;
}

/** What became of the moves of one command. */
export interface Spoken {
  readonly said: ReadonlyMap<string, Said>;
  /** Why moves said nothing. */
  readonly silence: { readonly kind: 'held' | 'failed' | 'short'; readonly reason: string };
}

const TIME_LIMIT_MS = 60_000;
const TERMINAL = { cols: 80, rows: 24 };

/** The command line that makes the moves one after the other. */
function commandLine(program: string, attempts: readonly Attempt[]): readonly [string, ...string[]] {
  const words = attempts.flatMap(({ attack, staged }) => ['--', attack.id, ...staged.move]);
  return [program, ...words.slice(1)];
}

/** Makes the moves without a sandbox. */
export function tryBare(
  program: string,
  attempts: readonly Attempt[],
  at: {
    readonly cwd: string;
    readonly temporary: string;
    readonly descriptor: number | undefined;
    readonly signal: AbortSignal;
  },
): Promise<Spoken> {
  const [command, ...args] = commandLine(program, attempts);
  return new Promise((done) => {
    const chunks: Buffer[] = [];
    const child = spawn(command, args, {
      cwd: at.cwd,
      env: { ...process.env, TMPDIR: at.temporary },
      stdio: ['ignore', 'pipe', 'ignore', at.descriptor ?? 'ignore'],
      killSignal: 'SIGKILL',
      // Not `timeout`: of a child that cannot be started its clock goes on.
      signal: AbortSignal.any([at.signal, AbortSignal.timeout(TIME_LIMIT_MS)]),
    });
    child.stdout?.on('data', (chunk: Buffer) => chunks.push(chunk));
    const finish = (reason: string, kind: 'failed' | 'short' = 'failed') => {
      const text = Buffer.concat(chunks).toString('latin1');
      done({ said: parse(text), silence: { kind, reason } });
    };
    child.on('error', (error) => {
      // One that was started has an end of its own.
      if (child.pid !== undefined) return;
      const short = describeShortage(error);
      finish(short ?? error.message, short === undefined ? 'failed' : 'short');
    });
    child.on('close', (code, signal) => finish(`it ended with ${signal ?? `status ${code}`}`));
  });
}

/** Makes them inside. */
export async function tryConfined(
  sandbox: Sandbox,
  program: string,
  attempts: readonly Attempt[],
  manner: Manner,
  signal: AbortSignal,
): Promise<Spoken> {
  const result = await sandbox.run(commandLine(program, attempts), {
    timeout: TIME_LIMIT_MS,
    signal,
    ...(manner === 'terminal' ? { pty: TERMINAL } : {}),
  });
  return { said: parse(result.stdout), silence: silenceOf(result) };
}

function silenceOf(result: ExecutionResult): Spoken['silence'] {
  const { status, limit, error, signal, exitCode } = result;
  if (limit !== undefined) return { kind: 'held', reason: `ended: more than the limit of ${limit.name}` };
  if (error !== undefined) return { kind: 'failed', reason: error.message };
  return { kind: 'failed', reason: `${status}, ${signal ?? `status ${exitCode}`}` };
}

/** On a terminal, what an attack typed is echoed before its line. */
function parse(text: string): ReadonlyMap<string, Said> {
  const said = new Map<string, Said>();
  for (const line of text.split(/\r?\n/)) {
    const [, label, outcome] = /^#*([a-z0-9-]+)=(.*)$/.exec(line) ?? [];
    if (label !== undefined && outcome !== undefined) said.set(label, parseOutcome(outcome));
  }
  return said;
}

function parseOutcome(outcome: string): Said {
  const got = /^ok(?::(.*))?$/.exec(outcome);
  if (got !== null) return { ok: true, text: got[1] ?? '' };
  const [, signal] = /^signal:(\d+)$/.exec(outcome) ?? [];
  if (signal !== undefined) return { ok: false, text: signalName(Number(signal)) };
  return { ok: false, text: /^\d+$/.test(outcome) ? errnoName(Number(outcome)) : outcome };
}
