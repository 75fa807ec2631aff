import { deferred } from '../../base/deferred.ts';
import { SandboxError } from '../../base/errors/sandbox-error.ts';
import type { OutputChunk, TurnResult } from '../../model/index.ts';
import { neutralize, type OpenSandbox, type ShellSession } from '../../run/index.ts';
import type { Call, Client } from '../core/offer.ts';
import type { ServeLimits } from '../protocol/limits.ts';
import { refusedCommand } from '../protocol/params.ts';
import type { ParamsOf, ResultOf } from '../protocol/tables.ts';
import type { Switchboard } from './questions.ts';
import { createOutputEncoder, type OutputForm, wireResult } from './wire.ts';

/** A shell, and how it is used. */
interface Used {
  readonly shell: ShellSession;
  readonly startedAt: number;
  lastUsedAt: number;
  running: number;
}

/** A shell that every client may use, by its name. It ends when one of them closes it, or when nobody used it for long. */
export interface NamedShell extends Used {
  readonly name: string;
  /** Milliseconds without a command after which it ends; 0: never. */
  readonly unusedTimeout: number;
  /** A command begins or has ended. */
  used(): void;
  /** Somebody wants its end. */
  stop(): void;
  readonly ended: Promise<void>;
}

/** What all connections of a server share. */
export interface Shared {
  readonly sandbox: OpenSandbox;
  readonly switchboard: Switchboard;
  readonly limits: ServeLimits;
  readonly newId: () => string;
  /** A shell that every client may use, and that ends with none of them. */
  readonly named?: NamedShell | undefined;
  /** What keeps commands in, in one line. */
  readonly confinement: string;
}

/** Makes the shell that all clients use. */
export function nameShell(name: string, shell: ShellSession, unusedTimeout: number): NamedShell {
  const over = deferred<void>();
  let idle: NodeJS.Timeout | undefined;
  const named: NamedShell = {
    ...{ name, shell, unusedTimeout, ...fresh() },
    used: () => {
      clearTimeout(idle);
      if (unusedTimeout > 0 && named.running === 0) idle = setTimeout(named.stop, unusedTimeout).unref();
    },
    stop: () => {
      clearTimeout(idle);
      over.resolve();
    },
    ended: over.promise,
  };
  named.used();
  return named;
}

const fresh = () => ({ startedAt: Date.now(), lastUsedAt: Date.now(), running: 0 });

/** The shells of one connection. */
export class Shells {
  readonly #client: Client;
  readonly #shared: Shared;
  readonly #shells = new Map<string, Used>();
  #opening = 0;

  constructor(client: Client, shared: Shared) {
    this.#client = client;
    this.#shared = shared;
  }

  async open({ cwd, env, restore }: ParamsOf<'session.open'>): Promise<ResultOf<'session.open'>> {
    const { sandbox, limits, newId } = this.#shared;
    const most = limits.sessions;
    if (this.#shells.size + this.#opening >= most)
      throw new SandboxError('protocol.busy', `${most} sessions are open already; close one of them`);
    this.#opening += 1;
    try {
      const shell = await sandbox.session({ cwd, env, restore });
      // Nobody is there to have it.
      if (this.#client.gone.aborted) await shell.close();
      const session = newId();
      this.#shells.set(session, { shell, ...fresh() });
      return { session, cwd: shell.cwd, warnings: shell.warnings };
    } finally {
      this.#opening -= 1;
    }
  }

  /** `begin`: when there is room for its result. */
  async run(
    params: ParamsOf<'session.run'>,
    call: Call,
    begin: (run: () => Promise<TurnResult>) => Promise<TurnResult>,
  ): Promise<ResultOf<'session.run'>> {
    const { sandbox, named } = this.#shared;
    const { session, command, env, approved, taints, timeout, stream, encoding, escapes } = params;
    const form: OutputForm = { encoding: encoding ?? 'utf8', escapes: escapes ?? 'neutralize' };
    const sender = stream === true ? streamTo(this.#client, session, call, form) : undefined;
    const refused = session === named?.name ? refusedCommand(command) : undefined;
    if (refused !== undefined) throw new SandboxError('usage.invalid', refused);
    const result = await this.#turn(session, (shell) =>
      begin(() =>
        shell.run(command, {
          ...{ signal: call.signal, env, approved, taints, timeout },
          onOutput: sender?.send,
        }),
      ),
    );
    await sender?.end();
    const show = (text: string) => {
      if (sender !== undefined) return '';
      return form.escapes === 'neutralize' ? neutralize(text) : text;
    };
    const { cwdAfter, restarted } = result;
    const sent = wireResult(result, sandbox.plan, { command });
    return { ...sent, cwdAfter, restarted, stdout: show(result.stdout), stderr: show(result.stderr) };
  }

  info(id: string): ResultOf<'session.info'> {
    const { sandbox, named, confinement } = this.#shared;
    const { shell, startedAt, lastUsedAt, running } = this.#use(id);
    return {
      ...{ id, pid: process.pid, workspace: sandbox.workspace, cwd: shell.cwd, startedAt, lastUsedAt },
      running: running > 0,
      unusedTimeout: id === named?.name ? named.unusedTimeout : 0,
      confinement,
    };
  }

  /** @throws {SandboxError} `protocol.unknown_id`: this connection has none of that name. */
  find(id: string): ShellSession {
    return this.#use(id).shell;
  }

  async close(id: string): Promise<void> {
    const { shell } = this.#use(id);
    const { named } = this.#shared;
    if (id === named?.name) {
      named.stop();
      return;
    }
    this.#shells.delete(id);
    await shell.close();
  }

  /** Those that are its own: one that all clients use goes on. */
  async closeAll(): Promise<void> {
    await Promise.all([...this.#shells.keys()].map((id) => this.close(id)));
  }

  #use(id: string): Used {
    const { named } = this.#shared;
    const found = id === named?.name ? named : this.#shells.get(id);
    if (found !== undefined) return found;
    throw new SandboxError(
      'protocol.unknown_id',
      'this connection has no such session; it was closed, or belongs to another',
    );
  }

  /** A command of a shell, which is in use meanwhile. */
  async #turn<T>(id: string, work: (shell: ShellSession) => Promise<T>): Promise<T> {
    const { named } = this.#shared;
    const used = this.#use(id);
    const note = (by: number) => {
      used.running += by;
      used.lastUsedAt = Date.now();
      if (used === named) named.used();
    };
    note(1);
    try {
      return await work(used.shell);
    } catch (error) {
      if (used === named && error instanceof SandboxError && error.code === 'session.closed') named.stop();
      throw error;
    } finally {
      note(-1);
    }
  }
}

function streamTo(client: Client, session: string, call: Call, form: OutputForm) {
  const encoders = { stdout: createOutputEncoder(form), stderr: createOutputEncoder(form) };
  const say = async (stream: OutputChunk['stream'], data: string) => {
    if (data === '') return;
    await client.notify('output', { session, request: call.id, stream, data, encoding: form.encoding });
  };
  return {
    send: ({ stream, bytes }: OutputChunk) => say(stream, encoders[stream].write(bytes)),
    end: async () => {
      await say('stdout', encoders.stdout.end());
      await say('stderr', encoders.stderr.end());
    },
  };
}
