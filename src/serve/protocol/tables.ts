import { z } from 'zod';
import { text, type Value } from '../../base/value.ts';
import { REFUSALS, REQUEST_STATES } from '../../base/words.ts';
import { EnforcementReport } from '../../confine/plan/enforcement-report.ts';
import {
  AppliedChanges,
  ApprovalScope,
  ChangeSet,
  ChangeSetDetail,
  CheckAnswer,
  OutputStream,
  ShellSnapshot,
  TerminalSize,
} from '../../model/index.ts';
import { PROTOCOL_VERSION } from './limits.ts';
import {
  changesId,
  commandParams,
  dataValue,
  effectParams,
  encodingValue,
  escapesValue,
  gateQuestion,
  idValue,
  maxOutputValue,
  pathInChanges,
  shellString,
  signalValue,
  timeoutValue,
  variables,
} from './params.ts';
import { CommandResult, GateAnswered, Question, SentTurn, ShellShown } from './results.ts';

const nothing = z.strictObject({});
const limit = z.number().int();

/**
 * THE table of methods of all servers: what a client may ask, and what it is answered. Validated with, and published as
 * JSON Schema. Which of them a server has, its `initialize` says.
 */
export const METHODS = {
  initialize: {
    summary: 'The first request of a connection, and only that: which protocol is spoken.',
    params: z.strictObject({
      protocolVersion: z.number().int().describe(`${PROTOCOL_VERSION}; with any other the connection ends.`),
      client: z
        .strictObject({ name: z.string().max(128), version: z.string().max(64).optional() })
        .optional()
        .describe('For logs.'),
      approvals: z
        .boolean()
        .optional()
        .describe(
          'This client answers what the policy asks about its own commands, or what waits in the queue: ' +
            '`approvals.requested`. Default: false, so that nobody is asked, unless the policy asks in the queue.',
        ),
    }),
    result: z.strictObject({
      protocolVersion: z.literal(PROTOCOL_VERSION),
      serverVersion: z.string(),
      capabilities: z.strictObject({
        methods: z.array(z.string()).readonly(),
        notifications: z.array(z.string()).readonly(),
        approvals: z
          .enum(['client', 'queue', 'nobody'])
          .describe('Who answers what the policy asks about commands of this connection.'),
      }),
      limits: z.record(z.string(), limit),
      workspace: z.string().optional(),
      report: EnforcementReport.optional().describe(
        'What is really enforced for every command of this server. Missing: it runs none.',
      ),
    }),
  },
  run: {
    summary: 'Judges a command and runs it to its end.',
    params: z.strictObject({
      ...commandParams,
      timeout: timeoutValue,
      idleTimeout: timeoutValue,
      input: dataValue.optional().describe('Its standard input, which is empty otherwise.'),
      maxOutput: maxOutputValue,
      encoding: encodingValue,
      escapes: escapesValue,
      combined: z.boolean().optional().describe('Both streams in stdout, in the order of writing.'),
      ...effectParams,
    }),
    result: CommandResult,
  },
  'changes.list': {
    summary: 'Lists what previews in this workspace changed, and what can be taken back, the oldest first.',
    params: nothing,
    result: z.strictObject({ sets: z.array(ChangeSet) }),
  },
  'changes.show': {
    summary: 'Says what a preview changed.',
    params: z.strictObject({ id: changesId }),
    result: ChangeSetDetail,
  },
  'changes.diff': {
    summary: 'The same as a unified diff.',
    params: z.strictObject({
      id: changesId,
      path: pathInChanges.optional().describe('Only what is at or beneath it.'),
    }),
    result: z.strictObject({ diff: text }),
  },
  'changes.apply': {
    summary: 'Puts what a preview changed into the workspace. To be called for a person, never for a model.',
    params: z.strictObject({
      id: changesId,
      paths: z.array(pathInChanges).optional().describe('Only what is at or beneath these.'),
    }),
    result: AppliedChanges,
  },
  'changes.undo': {
    summary: 'Takes back what was applied.',
    params: z.strictObject({ id: changesId }),
    result: AppliedChanges,
  },
  'changes.discard': {
    summary: 'Forgets what a preview changed. What was applied of it stays.',
    params: z.strictObject({
      id: changesId,
      paths: z.array(pathInChanges).optional().describe('Only what is at or beneath these.'),
    }),
    result: nothing,
  },
  spawn: {
    summary: 'Judges a command and starts it; `output` and, at last, `ended` tell of it.',
    params: z.strictObject({
      ...commandParams,
      timeout: timeoutValue,
      pty: TerminalSize.optional().describe('On a terminal of its own, of this size.'),
      encoding: encodingValue,
      escapes: escapesValue,
    }),
    result: z.strictObject({ command: idValue.describe('Names it from now on.') }),
  },
  write: {
    summary: 'Writes to the standard input of a spawned command. Answered when the command had room for it.',
    params: z.strictObject({
      command: idValue,
      input: dataValue.optional(),
      close: z.boolean().optional().describe('The end of its input, after what is written.'),
    }),
    result: z.strictObject({ written: z.boolean().describe('False: nobody reads it any more.') }),
  },
  resize: {
    summary: 'Gives the terminal of a spawned command another size.',
    params: z.strictObject({ command: idValue, ...TerminalSize.shape }),
    result: z.strictObject({ resized: z.boolean().describe('False: it has no terminal, or has ended.') }),
  },
  kill: {
    summary: 'Ends a spawned command and all that it started, or sends its process group a signal.',
    params: z.strictObject({
      command: idValue,
      signal: signalValue
        .optional()
        .describe('Default: none; SIGTERM, after the grace period SIGKILL, to all of it.'),
    }),
    result: z.strictObject({ sent: z.boolean().describe('False: it has ended.') }),
  },
  check: {
    summary: 'Says what the policy thinks of a command. Nothing runs, nobody is asked, nothing is recorded.',
    params: z.strictObject({
      ...commandParams,
    }),
    result: CheckAnswer,
  },
  'session.open': {
    summary: 'Starts a shell that lives on from command to command, until it is closed.',
    params: z.strictObject({
      cwd: commandParams.cwd,
      env: variables,
      restore: ShellSnapshot.optional().describe('What `session.snapshot` gave.'),
    }),
    result: z.strictObject({
      session: idValue,
      cwd: z.string(),
      warnings: z.array(z.string()).readonly(),
    }),
  },
  'session.run': {
    summary: 'Judges a command and runs it in a shell. One at a time: others wait for their turn.',
    params: z.strictObject({
      session: idValue,
      command: shellString.describe('A shell string.'),
      env: variables,
      approved: commandParams.approved,
      taints: commandParams.taints,
      timeout: timeoutValue,
      stream: z.boolean().optional().describe('Output as it arrives (`output`), and not with the result.'),
      encoding: encodingValue.describe('Of streamed output.'),
      escapes: escapesValue,
    }),
    result: SentTurn,
  },
  'session.interrupt': {
    summary: 'Interrupts the command that runs in a shell, as Ctrl-C would.',
    params: z.strictObject({ session: idValue }),
    result: z.strictObject({ interrupted: z.boolean().describe('False: none ran.') }),
  },
  'session.snapshot': {
    summary: 'Where a shell is and what it exports; may hold secrets.',
    params: z.strictObject({ session: idValue }),
    result: ShellSnapshot,
  },
  'session.close': {
    summary: 'Ends a shell and all that it started.',
    params: z.strictObject({ session: idValue }),
    result: nothing,
  },
  'session.info': {
    summary: 'What a shell is and does.',
    params: z.strictObject({ session: idValue }),
    result: ShellShown,
  },
  'gate.check': {
    summary: 'Asks whether a command may be run, by somebody else. What is not exactly an allow is a no.',
    params: gateQuestion,
    result: GateAnswered,
  },
  'approvals.list': {
    summary: 'The questions that wait for an answer of this connection, or in the queue.',
    params: nothing.optional(),
    result: z.strictObject({ questions: z.array(Question).readonly() }),
  },
  'approvals.answer': {
    summary:
      'Answers a question that this connection was asked, or one of the queue. For the application, never for a model.',
    params: z.strictObject({
      question: z.string().min(1).max(128),
      approved: z.boolean(),
      scope: ApprovalScope.optional().describe('How long a yes is good for. Default: once.'),
      reason: z.enum(REFUSALS).optional().describe('Of a no, if nobody said it: why there is no yes.'),
    }),
    result: nothing,
  },
} as const;

/** Name of a method. */
export type MethodName = keyof typeof METHODS;
/** What a handler gets. */
export type ParamsOf<M extends MethodName> = z.output<(typeof METHODS)[M]['params']>;
/** What a client says. */
export type ParamsFor<M extends MethodName> = z.input<(typeof METHODS)[M]['params']>;
/** What it answers. */
export type ResultOf<M extends MethodName> = Value<(typeof METHODS)[M]['result']>;

/** The one notification that a client may send: cancels a request, which still gets its response. */
export const CANCEL = '$/cancelRequest';
export const cancelParams = z.strictObject({ id: z.union([z.string(), z.number()]) });

const output = {
  stream: OutputStream,
  data: z.string(),
  encoding: z.enum(['utf8', 'base64']),
};

/** THE table of what a server says without being asked. */
export const NOTIFICATIONS = {
  output: {
    summary:
      'Output of a command of `spawn`, or of `session.run` with `stream`, in the order of each stream.',
    params: z.union([
      z.strictObject({ command: idValue, ...output }),
      z.strictObject({ session: idValue, request: z.union([z.string(), z.number()]), ...output }),
    ]),
  },
  ended: {
    summary: 'The last word about a command of `spawn`. Its output came before; the result has none.',
    params: z.strictObject({ command: idValue, result: CommandResult }),
  },
  'approvals.requested': {
    summary: 'The policy asks whether a command of this connection may run, or one that waits in the queue.',
    params: Question,
  },
  'approvals.withdrawn': {
    summary:
      'A question has no use for an answer any more: it expired, the command was given up, or somebody else answered.',
    params: z.strictObject({
      question: z.string(),
      state: z.enum(REQUEST_STATES).optional().describe('What became of it, in the queue.'),
    }),
  },
  'approvals.queued': {
    summary: 'A command of this connection waits in the queue: `sandbox-run approvals approve ID`.',
    params: z.strictObject({ request: z.union([z.string(), z.number()]), id: z.string() }),
  },
} as const;

export type NotificationName = keyof typeof NOTIFICATIONS;
export type NotificationParams<N extends NotificationName> = Value<(typeof NOTIFICATIONS)[N]['params']>;
