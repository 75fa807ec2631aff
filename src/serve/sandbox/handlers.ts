import type { Readable, Writable } from 'node:stream';
import { deferred } from '../../base/deferred.ts';
import { SandboxError } from '../../base/errors/sandbox-error.ts';
import { decisionAsJson, refusalOf } from '../../gate/index.ts';
import type { ExecutionResultBase, RunOptions } from '../../model/index.ts';
import { boundariesOf, refusalForModel, type SandboxProcess, type TerminalProcess } from '../../run/index.ts';
import type { Call, Client, Conversation, Handlers } from '../core/offer.ts';
import type { ParamsOf } from '../protocol/tables.ts';
import { Questions } from './questions.ts';
import { type Shared, Shells } from './shells.ts';
import { type Turn, Turns } from './turns.ts';
import { createOutputEncoder, type OutputForm, wireResult } from './wire.ts';

/** Serves one client with commands of the sandbox; everything that they start is its own. */
export function converse(client: Client, shared: Shared): Conversation {
  const { sandbox, switchboard, limits } = shared;
  const questions = new Questions(client, limits.questions, switchboard.answeredBy);
  const commands = new SpawnedCommands(client, shared);
  const shells = new Shells(client, shared);
  const turns = new Turns(limits.runs);
  let isAnswering = false;

  const asked = <T>(call: Call, work: () => T, turn?: Turn): T =>
    switchboard.connect(
      { client, request: call.id, questions: isAnswering ? questions : undefined, turn },
      work,
    );

  const untaken = new UntakenResults(client, limits.untakenBytes);
  const handlers: Handlers = {
    run: (params, call) =>
      turns.take(async (turn) => {
        const { command, env, input, encoding, escapes, ...rest } = params;
        const options: RunOptions = {
          ...rest,
          env: environment(env),
          input: input && Buffer.from(input.data, input.encoding ?? 'utf8'),
          ...(encoding === 'base64' ? { encoding: 'bytes' } : { escapes: escapes ?? 'neutralize' }),
          signal: call.signal,
        };
        const run = () => asked(call, () => sandbox.run(command, options), turn);
        return wireResult(await untaken.add(call, run), sandbox.plan);
      }),
    spawn: ({ command, env, encoding, escapes, ...rest }, call) => {
      const form = {
        encoding: encoding ?? 'utf8',
        escapes: escapes ?? (rest.pty === undefined ? 'neutralize' : 'keep'),
      } as const;
      const options = { ...rest, env: environment(env) };
      const start = (signal: AbortSignal, turn: Turn) =>
        asked(call, () => sandbox.spawn(command, { ...options, signal }), turn);
      return { command: commands.spawn(start, form, call) };
    },
    'changes.list': async () => ({ sets: await (await sandbox.changes()).list() }),
    'changes.show': async ({ id }) => (await sandbox.changes()).show(id),
    'changes.diff': async ({ id, path }) => ({ diff: await (await sandbox.changes()).diff(id, path) }),
    'changes.apply': async ({ id, paths }) => (await sandbox.changes()).apply(id, paths),
    'changes.undo': async ({ id }) => (await sandbox.changes()).undo(id),
    'changes.discard': async ({ id, paths }) => {
      await (await sandbox.changes()).discard(id, paths);
      return {};
    },
    write: async (params) => ({ written: await commands.write(params) }),
    resize: ({ command, cols, rows }) => ({ resized: commands.resize(command, cols, rows) }),
    kill: ({ command, signal }) => ({ sent: commands.kill(command, signal) }),
    check: async ({ env, ...rest }) => {
      const decision = await sandbox.decisionOn({ ...rest, env: environment(env) });
      const refused = refusalOf(decision, rest.approved === true);
      if (refused === undefined) return decisionAsJson(decision);
      const { code, message } = refused;
      const stopped = { command: rest.command, code, message, decision };
      const messageForModel = refusalForModel(stopped, boundariesOf(sandbox.plan));
      return { ...decisionAsJson(decision), messageForModel };
    },
    'session.open': (params) => shells.open(params),
    'session.run': (params, call) =>
      asked(call, () => shells.run(params, call, (run) => untaken.add(call, run))),
    'session.interrupt': ({ session }) => ({ interrupted: shells.find(session).interrupt() }),
    'session.snapshot': ({ session }) => shells.find(session).snapshot(),
    'session.info': ({ session }) => shells.info(session),
    'session.close': async ({ session }) => {
      await shells.close(session);
      return {};
    },
    'approvals.list': () => ({ questions: questions.list() }),
    'approvals.answer': (answer) => {
      questions.answer(answer);
      return {};
    },
  };
  return {
    handlers,
    begin: ({ approvals }) => {
      isAnswering = approvals === true;
      const { ask } = sandbox.policy.approval;
      const answering = isAnswering ? 'client' : 'nobody';
      const by = ask === 'terminal' ? answering : ask;
      return { approvals: by, workspace: sandbox.workspace, report: sandbox.plan.report };
    },
    heardAll: () => {
      isAnswering = false;
      questions.withdrawAll();
    },
    close: () => shells.closeAll(),
  };
}

/** Output in results that a client has not taken. Whoever takes none gets no more: it would fill memory. */
class UntakenResults {
  readonly #client: Client;
  readonly #most: number;
  #bytes = 0;

  constructor(client: Client, most: number) {
    this.#client = client;
    this.#most = most;
  }

  /** Runs a command when there is room for its result. */
  async add<R extends ExecutionResultBase>(call: Call, run: () => Promise<R>): Promise<R> {
    await this.#client.taken();
    // Those of a batch go together, and are kept until the last one.
    if (this.#bytes > this.#most)
      throw new SandboxError(
        'protocol.busy',
        `results with more than ${this.#most} bytes of output wait to be taken; take them first, or ask for less at once`,
      );
    const result = await run();
    const bytes = result.stdout.length + result.stderr.length + bytesIn(result.bytes);
    this.#bytes += bytes;
    call.afterwards(() => {
      this.#bytes -= bytes;
    });
    return result;
  }
}

const bytesIn = (bytes: ExecutionResultBase['bytes']) =>
  (bytes?.stdout.length ?? 0) + (bytes?.stderr.length ?? 0);

/** `null` takes a variable away. */
function environment(env: Readonly<Record<string, string | null>> | undefined) {
  return env && Object.fromEntries(Object.entries(env).map(([name, value]) => [name, value ?? undefined]));
}

interface Spawned {
  readonly process: SandboxProcess | TerminalProcess;
  end(): void;
  hasEnded: boolean;
}

/** The commands of `spawn` of one connection. */
class SpawnedCommands {
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
        // The stream was closed before its end: the command has ended, and the result says how.
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
