import { decisionAsJson, refusalOf } from '../../decide/refusal.ts';
import { SandboxError } from '../../errors/sandbox-error.ts';
import type { ExecutionResultBase } from '../../model/execution-result.ts';
import type { RunOptions } from '../../model/options.ts';
import { boundariesOf, refusalForModel } from '../../run/output/model-message.ts';
import type { Call, Client, Conversation, Handlers } from '../core/offer.ts';
import { Questions } from './questions.ts';
import { type Shared, Shells } from './shells.ts';
import { SpawnedCommands } from './spawned.ts';
import { type Turn, Turns } from './turns.ts';
import { wireResult } from './wire.ts';

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
