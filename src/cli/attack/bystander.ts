import { spawn } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { SandboxError } from '../../base/errors/sandbox-error.ts';
import { describeShortage } from '../../base/errors/shortage.ts';
import { createLineReader } from '../../base/line-reader.ts';
import { orElse } from '../../base/or-else.ts';

/** The victim: a process outside the sandbox that is there to be attacked. */
export interface Bystander {
  readonly pid: number;
  /** Ports on 127.0.0.1; `listed` is what a listed network lists. */
  readonly tcp: number;
  readonly listed: number;
  readonly udp: number;
  /** Where its secret is in its memory, in hexadecimal. */
  readonly address: string;
  /** Number of its System V shared memory. */
  readonly sharedMemory: string;
  /** Name of an abstract socket, with a leading `@`; datagrams go to the same name with `.datagram`. */
  readonly abstract: string;
  /** Whether a word came to it, or a signal: `signal-N`. */
  got(word: string): boolean;
  /** Whether a word came to it where it may: at the port `listed`. */
  let(word: string): boolean;
  /** Settles when everything that had reached it is told. */
  sync(): Promise<void>;
  end(): void;
}

/** Where its socket in a directory is. A short name, because the whole is 107 bytes at most. */
export const socketIn = (directory: string): string => join(directory, 's');

const PATIENCE_MS = 30_000;
const LONGEST_LINE = 64 * 1024;

/** The victim's output so far, and the callers that wait for a line. */
interface Told {
  readonly lines: string[];
  readonly waiting: { readonly start: string; readonly found: (line: string) => void }[];
}

const unusable = (why: string) =>
  new SandboxError('launch.failed', `the process that is to be attacked cannot be used: ${why}`);

/**
 * Starts the process that is attacked. It ends with its standard input, and so with this process.
 * @throws {SandboxError} `launch.failed`.
 */
export async function startBystander(
  program: string,
  secret: string,
  abstract: string,
  sockets: readonly string[],
): Promise<Bystander> {
  // In a group of its own, which an attack may signal.
  const child = spawn(program, ['bystander', abstract, ...sockets], {
    detached: true,
    env: { SANDBOX_RUN_BYSTANDER: secret },
    stdio: ['pipe', 'pipe', 'ignore'],
  });
  const told: Told = { lines: [], waiting: [] };
  const gone = new Promise<never>((_, fail) => {
    child.on('error', (error) => fail(unusable(describeShortage(error) ?? error.message)));
    child.on('exit', (code, signal) => fail(unusable(`it ended (${signal ?? `status ${code}`})`)));
  });
  gone.catch(() => {});
  // Where there are no descriptors left, it has no streams either.
  if (child.pid === undefined) await gone;
  child.stdin.on('error', () => {});
  const reader = createLineReader(LONGEST_LINE);
  child.stdout.on('data', (chunk: Buffer) => {
    reader.push(chunk);
    for (let line = reader.take(); line !== undefined; line = reader.take())
      tell(told, line.toString('latin1'));
  });
  const next = (start: string) => {
    const line = new Promise<string>((found) => told.waiting.push({ start, found }));
    const late = sleep(PATIENCE_MS, undefined, { ref: false }).then(() => {
      throw unusable('it does not answer');
    });
    return Promise.race([gone, line, late]);
  };
  const end = () => {
    child.stdin.destroy();
    child.kill('SIGKILL');
  };
  try {
    const ready = await next('ready ');
    const field = (name: string) => new RegExp(`\\b${name}=(\\S+)`).exec(ready)?.[1] ?? '';
    return {
      pid: Number(field('pid')),
      tcp: Number(field('tcp')),
      listed: Number(field('listed')),
      udp: Number(field('udp')),
      address: field('address'),
      sharedMemory: field('shm'),
      abstract,
      got: (word) => told.lines.includes(`got ${word}`),
      let: (word) => told.lines.includes(`let ${word}`),
      sync: async () => {
        const answer = next('synced');
        child.stdin.write('?\n');
        await answer;
      },
      end,
    };
  } catch (error) {
    end();
    throw error;
  }
}

function tell({ lines, waiting }: Told, line: string): void {
  lines.push(line);
  const at = waiting.findIndex(({ start }) => line.startsWith(start));
  if (at !== -1) waiting.splice(at, 1)[0]?.found(line);
}

/** Processes, zombies aside, with this word in their command line. */
export function markedProcesses(mark: string): readonly number[] {
  const commandLine = (pid: number) => orElse(() => readFileSync(`/proc/${pid}/cmdline`, 'latin1'), '');
  return orElse(() => readdirSync('/proc'), [])
    .filter((name) => /^\d+$/.test(name))
    .map(Number)
    .filter((pid) => pid !== process.pid && commandLine(pid).includes(mark));
}

/** Whether a process is gone, or has a SIGKILL waiting for it: it will never run a line of its program again. */
export function isKilled(pid: number): boolean {
  const status = orElse(() => readFileSync(`/proc/${pid}/status`, 'latin1'), '');
  const pending = [...status.matchAll(/^(?:Sig|Shd)Pnd:\s*([\da-f]+)$/gm)];
  const SIGKILL_BIT = 1n << 8n;
  return status === '' || pending.some(([, mask]) => (BigInt(`0x${mask}`) & SIGKILL_BIT) !== 0n);
}

/** Ends them: nobody else has such a word. One may be gone by itself. */
export function endMarkedProcesses(mark: string): void {
  for (const pid of markedProcesses(mark)) orElse(() => process.kill(pid, 'SIGKILL'), undefined);
}
