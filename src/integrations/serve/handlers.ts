import { decisionAsJson } from '../../decide/decision-json.ts';
import { refusalOf } from '../../decide/refusal.ts';
import { SandboxError } from '../../errors/sandbox-error.ts';
import type { ExecutionResultBase } from '../../model/execution-result.ts';
import type { RunOptions } from '../../model/options.ts';
import { boundariesOf, refusalForModel } from '../../run/output/model-message.ts';
import type { OpenSandbox } from '../../run/sandbox.ts';
import { packageVersion } from '../../version.ts';
import type { Call, Client } from './client.ts';
import { CANCEL, METHODS, type MethodName, type ParamsOf, type ResultOf } from './method-table.ts';
import { NOTIFICATIONS } from './notification-table.ts';
import { createQuestions, type Switchboard } from './questions.ts';
import { PROTOCOL_VERSION, type ServeLimits } from './serve-limits.ts';
import { createShells } from './shells.ts';
import { createSpawnedCommands } from './spawned.ts';
import { createTurns, type Turn } from './turns.ts';
import { wireResult } from './wire.ts';

/** What all connections of a server share. */
export interface Shared {
  readonly sandbox: OpenSandbox;
  readonly switchboard: Switchboard;
  readonly limits: ServeLimits;
  readonly newId: () => string;
}

/** A handler for each row of the table. */
export type Handlers = {
  readonly [M in MethodName]: (params: ParamsOf<M>, call: Call) => Promise<ResultOf<M>> | ResultOf<M>;
};

/** The handlers of one connection; everything that they start is its own. */
export interface ConnectionHandlers {
  readonly handlers: Handlers;
  /** True once `initialize` was answered with yes. */
  readonly isInitialized: () => boolean;
  /** Ends its sessions; commands end with `client.gone`. */
  close(): Promise<void>;
}

/** How a connection begins. */
export interface Reception {
  /** False: as many are initialized as may be. */
  readonly admit: () => boolean;
  /** Ends the connection; to be called once the response was sent. */
  readonly refuse: () => void;
}

/** @see ConnectionHandlers */
export function createHandlers(
  client: Client,
  shared: Shared,
  { admit, refuse }: Reception,
): ConnectionHandlers {
  const { sandbox, switchboard, limits, newId } = shared;
  const questions = createQuestions(client, limits.questions);
  const commands = createSpawnedCommands({ sandbox, client, most: limits.commands, newId });
  const shells = createShells({ sandbox, client, most: limits.sessions, newId });
  const turns = createTurns(limits.runs);
  let state: 'new' | 'silent' | 'answering' = 'new';

  const asked = <T>(call: Call, work: () => T, turn?: Turn): T =>
    switchboard.connect(
      { client, request: call.id, questions: state === 'answering' ? questions : undefined, turn },
      work,
    );

  let untaken = 0;
  /** Whoever takes no results gets no more of them: they would fill memory. */
  async function resultOf<R extends ExecutionResultBase>(call: Call, run: () => Promise<R>): Promise<R> {
    await client.taken();
    // Those of a batch go together, and are kept until the last one.
    if (untaken > limits.untakenBytes)
      throw new SandboxError(
        'protocol.busy',
        `results with more than ${limits.untakenBytes} bytes of output wait to be taken; take them first, or ask for less at once`,
      );
    const result = await run();
    const bytes = result.stdout.length + result.stderr.length + bytesIn(result.bytes);
    untaken += bytes;
    call.afterwards(() => {
      untaken -= bytes;
    });
    return result;
  }

  const handlers: Handlers = {
    initialize: ({ protocolVersion, approvals }, call) => {
      if (state !== 'new')
        throw new SandboxError('protocol.invalid', 'initialize: this connection is initialized already');
      if (protocolVersion !== PROTOCOL_VERSION) {
        call.afterwards(refuse);
        throw new SandboxError(
          'protocol.version',
          `initialize: this server speaks version ${PROTOCOL_VERSION} of the protocol; use a client or a server that fits`,
        );
      }
      if (!admit()) {
        call.afterwards(refuse);
        throw tooManyClients(limits);
      }
      state = approvals === true ? 'answering' : 'silent';
      const { ask } = sandbox.policy.approval;
      const client = state === 'answering' ? 'client' : 'nobody';
      return {
        protocolVersion: PROTOCOL_VERSION,
        serverVersion: packageVersion,
        capabilities: {
          methods: [...Object.keys(METHODS), CANCEL],
          notifications: Object.keys(NOTIFICATIONS),
          approvals: ask === 'terminal' ? client : ask,
        },
        limits: { ...limits },
        workspace: sandbox.workspace,
        report: sandbox.plan.report,
      };
    },
    run: (params, call) =>
      turns.take(async (turn) => {
        const { command, env, input, encoding, escapes, ...rest } = params;
        const options: RunOptions = {
          ...given(rest),
          ...environment(env),
          ...(input === undefined ? {} : { input: Buffer.from(input.data, input.encoding ?? 'utf8') }),
          ...(encoding === 'base64' ? { encoding: 'bytes' } : { escapes: escapes ?? 'neutralize' }),
          signal: call.signal,
        };
        const run = () => asked(call, () => sandbox.run(command, options), turn);
        return wireResult(await resultOf(call, run), sandbox.plan);
      }),
    spawn: ({ command, env, encoding, escapes, ...rest }, call) => {
      const form = {
        encoding: encoding ?? 'utf8',
        escapes: escapes ?? (rest.pty === undefined ? 'neutralize' : 'keep'),
      } as const;
      const options = { ...given(rest), ...environment(env) };
      const start = (signal: AbortSignal, turn: Turn) =>
        asked(call, () => sandbox.spawn(command, { ...options, signal }), turn);
      return { command: commands.spawn(start, form, call) };
    },
    write: async (params) => ({ written: await commands.write(params) }),
    resize: ({ command, cols, rows }) => ({ resized: commands.resize(command, cols, rows) }),
    kill: ({ command, signal }) => ({ sent: commands.kill(command, signal) }),
    check: async ({ env, ...rest }) => {
      const judge = await sandbox.judge();
      const decision = await judge({ ...given(rest), ...environment(env) }).decision;
      const refused = refusalOf(decision, rest.approved === true);
      if (refused === undefined) return decisionAsJson(decision);
      const { code, message } = refused;
      const stopped = { command: rest.command, code, message, decision };
      return { ...decisionAsJson(decision), message: refusalForModel(stopped, boundariesOf(sandbox.plan)) };
    },
    'session.open': (params) => shells.open(params),
    'session.run': (params, call) =>
      asked(call, () => shells.run(params, call, (run) => resultOf(call, run))),
    'session.interrupt': ({ session }) => ({ interrupted: shells.find(session).interrupt() }),
    'session.snapshot': ({ session }) => shells.find(session).snapshot(),
    'session.close': async ({ session }) => {
      await shells.close(session);
      return {};
    },
    'approvals.list': () => ({ questions: questions.list() }),
    'approvals.answer': ({ question, approved, scope }) => {
      questions.answer(question, approved, scope);
      return {};
    },
  };
  return { handlers, isInitialized: () => state !== 'new', close: () => shells.closeAll() };
}

/** Said to whoever is turned away. */
export const tooManyClients = ({ connections }: ServeLimits): SandboxError =>
  new SandboxError(
    'protocol.busy',
    `${connections} clients are connected, which is the most; try again when one of them has gone`,
  );

const bytesIn = (bytes: ExecutionResultBase['bytes']) =>
  (bytes?.stdout.length ?? 0) + (bytes?.stderr.length ?? 0);

type Given<T> = { [K in keyof T]: Exclude<T[K], undefined> };

/** Without what was not said: an option that is there has a value. */
function given<T extends object>(options: T): Given<T> {
  return Object.fromEntries(Object.entries(options).filter(([, value]) => value !== undefined)) as Given<T>;
}

function environment(env: Readonly<Record<string, string | null>> | undefined) {
  if (env === undefined) return {};
  const changed = Object.entries(env).map(([name, value]) => [name, value ?? undefined] as const);
  return { env: Object.fromEntries(changed) };
}
