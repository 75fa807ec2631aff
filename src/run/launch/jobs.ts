import { deferred } from '../../base/deferred.ts';
import { hostAndPort } from '../../base/host-and-port.ts';
import { visibleLine } from '../../base/visible-text.ts';
import { signalName } from '../../confine/kernel/errno.ts';
import type { NativeCapture, NativeExit } from '../../confine/native/contract.ts';
import type { Running } from '../../confine/running.ts';
import type { ExecutionResult, ExecutionResultBase, PublishedPort } from '../../model/index.ts';
import { type ListeningSocket, listeningSockets } from '../../workspace/index.ts';
import type { LineReader } from '../output/lines.ts';
import { type OutputView, showOutput } from '../output/show.ts';
import { endedByItself } from './classify.ts';
import type { Launch } from './launch.ts';
import { ENDING, type RunningCommand, signalNumber } from './pending-command.ts';

/** How the command of a job ended, while what it left behind may run on. */
export interface JobExit {
  /** `undefined`: a signal ended it. */
  readonly exitCode: number | undefined;
  /** `undefined`: it exited. */
  readonly signal: string | undefined;
  readonly durationMs: number;
}

/** Output of a job until now, in the form that the options of the run ask for. */
export type JobOutput = Pick<
  ExecutionResultBase,
  'stdout' | 'stderr' | 'truncated' | 'bytes' | 'outputBytes'
>;

/**
 * A command in the background, with everything that it starts: what it leaves behind when it ends runs on. The job ends
 * when nothing of it is left, when it is ended, or with the sandbox.
 */
export interface BackgroundJob extends LineReader {
  /** Different from that of every other job of this process. */
  readonly id: string;
  /** True once the command runs; false if it was refused or given up before. */
  readonly launched: Promise<boolean>;
  /** How the command itself ended. `undefined`: it runs, or has not begun. */
  readonly exited: JobExit | undefined;
  /** The result of the whole job. `undefined`: something of it runs. */
  readonly result: ExecutionResult | undefined;
  /** The output so far, at any time. */
  output(): JobOutput;
  /** Settles when the command itself has ended, whatever it left behind; with `undefined` if it never ran. */
  waitForExit(): Promise<JobExit | undefined>;
  /** Settles when the command and everything that it started has ended; rejects only for what `onOutput` or a source of `input` throws. */
  wait(): Promise<ExecutionResult>;
  /**
   * Sends a signal to the command's process group. Where the command has ended, SIGKILL ends what it left behind at once,
   * and the other signals that end a process do so as `end` does. False: there was nothing to send it to.
   */
  kill(signal?: NodeJS.Signals): boolean;
  /**
   * Ends the whole job: SIGTERM, then SIGKILL after the grace period. `canceled` is the status of a command that was ended
   * by it; one that had ended before keeps its own, `exited` or `signaled`.
   */
  end(): Promise<ExecutionResult>;
  /** The ids of its processes at this moment; none before it runs. */
  members(): Promise<readonly number[]>;
  /** What the processes of the job listen on now, and where that is published. */
  ports(): Promise<readonly JobPort[]>;
  /** Where programs of this machine can connect to (`publish`); none before it runs, or where nothing is published. */
  readonly published: readonly PublishedPort[];
}

/** A socket of a job that waits for connections. */
export interface JobPort extends ListeningSocket {
  /** Where programs of this machine reach it, such as `127.0.0.1:3000` or the path of a Unix socket; missing: it is not published. */
  readonly published?: readonly string[] | undefined;
}

const NOTHING_YET: NativeCapture = { stdout: undefined, stderr: undefined, stdoutBytes: 0, stderrBytes: 0 };

let lastId = 0;

/** Starts a job. `begin` launches it, with what is added to the launch here. */
export function startJob(
  view: OutputView,
  begin: (
    additions: Pick<Launch, 'extras' | 'onLaunch' | 'onPublished' | 'onExit' | 'onEnd'>,
  ) => RunningCommand,
): Omit<BackgroundJob, keyof LineReader> {
  const id = `${++lastId}`;
  let process: Running | undefined;
  let published: readonly PublishedPort[] = [];
  let exited: JobExit | undefined;
  let result: ExecutionResult | undefined;
  let seen = NOTHING_YET;
  const launched = deferred<boolean>();
  const ended = deferred<JobExit | undefined>();
  const running = begin({
    extras: { background: true },
    onPublished: (ports) => {
      published = ports;
    },
    onLaunch: (launchedAs) => {
      process = launchedAs;
      launched.resolve(true);
    },
    onExit: (exit) => {
      exited = jobExit(exit);
      ended.resolve(exited);
    },
    // The addon forgets it now, and the result may have to wait for a record.
    onEnd: (captured) => {
      seen = captured;
    },
  });
  // How the command had ended by itself before what it left behind was asked to end.
  let exitedBefore: JobExit | undefined;
  const whole = running.result.then((ended) => {
    const value = exitedBefore === undefined ? ended : asExited(ended, exitedBefore);
    result = value;
    seen = NOTHING_YET;
    exited ??= exitOf(value);
    return value;
  });
  const over = () => {
    launched.resolve(false);
    ended.resolve(exited);
  };
  whole.then(over, over);

  const members = async () => (await process?.members()) ?? [];
  return {
    id,
    launched: launched.promise,
    get exited() {
      return exited;
    },
    get result() {
      return result;
    },
    get published() {
      return published;
    },
    output() {
      if (result !== undefined) {
        const { stdout, stderr, truncated, bytes, outputBytes } = result;
        return { stdout, stderr, truncated, bytes, outputBytes };
      }
      seen = process?.outputSoFar() ?? seen;
      const outputBytes = { stdout: seen.stdoutBytes, stderr: seen.stderrBytes };
      return { ...showOutput(seen, view), outputBytes };
    },
    waitForExit: () => ended.promise,
    wait: () => whole,
    kill(signal = 'SIGTERM') {
      signalNumber(signal);
      if (exited === undefined || process === undefined) return running.kill(signal);
      if (!ENDING.has(signal)) return false;
      exitedBefore ??= exited;
      return process.end(signal === 'SIGKILL');
    },
    end() {
      exitedBefore ??= exited;
      running.cancel();
      return whole;
    },
    members,
    ports: async () => portsOf(await members(), published),
  };
}

/** What processes listen on, and where that is published. */
export const portsOf = (
  members: readonly number[],
  published: readonly PublishedPort[],
): readonly JobPort[] => listeningSockets(members).map((socket) => withPublished(socket, published));

/** Ports that are named: a command may listen at as many as it likes. */
const MOST_NAMED = 5;

/** Where servers are reached, a word or two for each port or socket: `localhost:3000 (outside 127.0.0.1:8080)`, and how many more there are. */
export function portsInWords(ports: readonly Pick<JobPort, 'port' | 'address' | 'published'>[]): string {
  const words = ports.map(({ port, address, published = [] }) => {
    const inside = port === undefined ? visibleLine(address, LONGEST_SOCKET) : `localhost:${port}`;
    // A published port usually has an IPv4 and an IPv6 address: name it once.
    const ways = published.filter(
      (one, at) => published.findIndex((other) => wayOf(other) === wayOf(one)) === at,
    );
    const outside = ways.map((way) => visibleLine(way, LONGEST_SOCKET)).join(', ');
    return outside === '' ? inside : `${inside} (outside ${outside})`;
  });
  const all = [...new Set(words)];
  return [
    ...all.slice(0, MOST_NAMED),
    ...(all.length > MOST_NAMED ? [`and ${all.length - MOST_NAMED} more`] : []),
  ].join(' ');
}

/** What makes two published addresses the same for a reader: the port of `127.0.0.1:3000` or `[::1]:3000`, the path of a Unix socket. */
const wayOf = (published: string) => (published.startsWith('/') ? published : published.split(':').at(-1));

/** Characters of the path of a socket, which has at most 107 bytes. */
const LONGEST_SOCKET = 108;

function withPublished(socket: ListeningSocket, published: readonly PublishedPort[]): JobPort {
  const outside = published
    .filter(({ inner }) => inner === socket.port)
    .flatMap(({ addresses, port, socket }) =>
      socket === undefined ? addresses.map((address) => hostAndPort(address, port)) : [socket],
    );
  return outside.length === 0 ? socket : { ...socket, published: outside };
}

function jobExit({ exitCode, signal, durationMs }: NativeExit): JobExit {
  return signal === 0
    ? { exitCode, signal: undefined, durationMs }
    : { exitCode: undefined, signal: signalName(signal), durationMs };
}

/** The caller ended what the command had left behind, not the command. */
function asExited(result: ExecutionResult, { exitCode, signal }: JobExit): ExecutionResult {
  if (result.status !== 'canceled') return result;
  if (exitCode === undefined && signal === undefined) return result;
  return { ...result, ...endedByItself(signal, exitCode ?? 0) };
}

/** The exit of a job's command, if that left no process behind. */
function exitOf({ status, exitCode, signal, durationMs }: ExecutionResult): JobExit | undefined {
  if (status === 'denied' || status === 'setup-failed') return undefined;
  return exitCode === undefined && signal === undefined ? undefined : { exitCode, signal, durationMs };
}
