import type { Readable, Writable } from 'node:stream';
import { SandboxError } from '../../errors/sandbox-error.ts';
import type { SandboxProcess, TerminalProcess } from '../../run/launch/spawn.ts';
import { deferred } from '../../util/deferred.ts';
import type { Call, Client } from '../core/offer.ts';
import type { ParamsOf } from '../protocol/tables.ts';
import type { Shared } from './shells.ts';
import { type Turn, Turns } from './turns.ts';
import { createOutputEncoder, type OutputForm, wireResult } from './wire.ts';

interface Spawned {
  readonly process: SandboxProcess | TerminalProcess;
  end(): void;
  hasEnded: boolean;
}

/** The commands of `spawn` of one connection. */
export class SpawnedCommands {
  readonly #client: Client;
  readonly #shared: Shared;
  readonly #commands = new Map<string, Spawned>();
  readonly #places: Turns;

  constructor(client: Client, shared: Shared) {
    this.#client = client;
    this.#shared = shared;
    this.#places = new Turns(shared.limits.commands);
  }

  spawn(
    start: (signal: AbortSignal, turn: Turn) => SandboxProcess | TerminalProcess,
    form: OutputForm,
    call: Call,
  ): string {
    const { limits, newId } = this.#shared;
    if (this.#places.isFull())
      throw new SandboxError(
        'protocol.busy',
        `${limits.commands} spawned commands run already; end one of them`,
      );
    const ending = new AbortController();
    const over = deferred<void>();
    const begin = (turn: Turn): string => {
      const process = start(AbortSignal.any([ending.signal, this.#client.gone]), turn);
      // What is written to a command that reads no more is nobody's.
      process.stdin.on('error', () => {});
      const id = newId();
      const spawned: Spawned = { process, end: () => ending.abort(), hasEnded: false };
      this.#commands.set(id, spawned);
      call.afterwards(() => {
        this.#follow(id, spawned, form)
          .catch(() => this.#commands.delete(id))
          .finally(() => over.resolve());
      });
      return id;
    };
    return this.#places.hold(begin, over.promise);
  }

  write(params: ParamsOf<'write'>): Promise<boolean> {
    return writeTo(this.#find(params.command).process.stdin, params);
  }

  resize(id: string, cols: number, rows: number): boolean {
    const { process, hasEnded } = this.#find(id);
    return !hasEnded && 'resize' in process && process.resize(cols, rows);
  }

  kill(id: string, signal: NodeJS.Signals | undefined): boolean {
    const spawned = this.#find(id);
    if (spawned.hasEnded) return false;
    if (signal !== undefined) return spawned.process.kill(signal);
    spawned.end();
    return true;
  }

  #find(id: string): Spawned {
    const found = this.#commands.get(id);
    if (found !== undefined) return found;
    throw new SandboxError(
      'protocol.unknown_id',
      'this connection has no such command; it has ended, or belongs to another',
    );
  }

  /** Tells of its output as fast as the client takes it, and then of its end. */
  async #follow(id: string, spawned: Spawned, form: OutputForm): Promise<void> {
    const { process } = spawned;
    const send = async (stream: Readable, name: 'stdout' | 'stderr') => {
      const encoder = createOutputEncoder(form);
      const say = async (data: string) => {
        if (data === '') return;
        await this.#client.notify('output', { command: id, stream: name, data, encoding: form.encoding });
      };
      try {
        for await (const bytes of stream) await say(encoder.write(bytes));
      } catch {
        // It was closed before its end: the command is over, and the result says how.
      }
      await say(encoder.end());
    };
    const [result] = await Promise.all([
      process.result.finally(() => {
        spawned.hasEnded = true;
      }),
      send(process.stdout, 'stdout'),
      send(process.stderr, 'stderr'),
    ]);
    this.#commands.delete(id);
    const { plan } = this.#shared.sandbox;
    await this.#client.notify('ended', { command: id, result: wireResult(result, plan) });
  }
}

/** False: nobody reads it any more. */
function writeTo(stdin: Writable, { input, close }: ParamsOf<'write'>): Promise<boolean> {
  const bytes = Buffer.from(input?.data ?? '', input?.encoding ?? 'utf8');
  return new Promise((done) => {
    if (!stdin.writable) return done(false);
    const written = () => {
      stdin.off('close', gone);
      done(true);
    };
    const gone = () => done(false);
    stdin.once('close', gone);
    const finished = (error?: Error | null) => (error ? gone() : written());
    if (close === true) stdin.end(bytes, () => finished());
    else stdin.write(bytes, finished);
  });
}
