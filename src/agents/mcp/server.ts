import { finished, type Readable, Transform, type TransformCallback, type Writable } from 'node:stream';
import { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js';
import { StdioServerTransport } from '@modelcontextprotocol/sdk/server/stdio.js';
import type { CallToolResult } from '@modelcontextprotocol/sdk/types.js';
import { createLineReader } from '../../base/line-reader.ts';
import { visibleLine, visibleText } from '../../base/visible-text.ts';
import { decisionAsJson, refusalOf } from '../../gate/index.ts';
import type { ExecutionResult, SandboxOptions } from '../../model/index.ts';
import {
  boundariesOf,
  prepareOf,
  refusalForModel,
  resolvePolicy,
  type Sandbox,
  sandboxOn,
  warningsOf,
} from '../../run/index.ts';
import { packageVersion } from '../../version.ts';
import type { Surroundings } from '../../workspace/index.ts';
import { outsideWorkspace, placeOf } from '../shell-tool.ts';
import { answered, type ToolContext } from './context.ts';
import { canElicit, createElicitApprover } from './elicit-approver.ts';
import { JobTable, shortCommandOf } from './job-table.ts';
import { jobResult, listResult, refusal } from './results.ts';
import { ExplainInput, type ExplainOutput, KillInput, OutputInput } from './schemas.ts';
import { registerShell } from './shell-call.ts';

/** What a client that is not understood may have us write on standard error, which perhaps no one reads. */
const MOST_REMARKS = 50;
const LONGEST_REMARK = 200;
/** Has room for a path. */
const LONGEST_WARNING = 5_000;

/** How commands are served to one MCP client. All of it is the operator's. */
interface McpOptions {
  readonly sandbox: SandboxOptions;
  /** Where the call comes from. */
  readonly around: Surroundings;
  /** Milliseconds after which a background command is ended; 0: with the server. */
  readonly longestJob: number;
  /** Whether a client that can is asked what the policy asks. */
  readonly elicitation: boolean;
  readonly input: Readable;
  /** Gets messages of the protocol, and nothing else. */
  readonly output: Writable;
  /** Called once commands can be run. */
  readonly onReady: (sandbox: Sandbox) => void;
  /** Told in a line what is wrong with the client. */
  readonly onProblem: (line: string) => void;
  /** Ends it. */
  readonly signal: AbortSignal;
}

/**
 * Serves one client until it is gone or `signal` is aborted; then every command that was started has ended.
 * @throws {SandboxError} as `openSandbox`.
 */
export async function serveMcp(options: McpOptions): Promise<void> {
  let server: McpServer | undefined;
  const given: SandboxOptions = {
    ...options.sandbox,
    gate: {
      // Who the client is, and what it can, is known when it has said hello.
      get approver() {
        if (server === undefined || !options.elicitation || !canElicit(server.server)) return undefined;
        return createElicitApprover(server.server);
      },
    },
  };
  // One client is one session, even if no state is stored for it.
  const prepared = await prepareOf(await resolvePolicy(given, options.around), given, { isOfSession: true });
  await using sandbox = await sandboxOn(prepared, given);
  server = new McpServer(
    { name: 'sandbox-run', title: 'sandbox-run', version: packageVersion },
    {
      // What is allowed there is said by the tool, and costs the model something only once.
      instructions: `The tool \`shell\` runs commands in a sandbox, in the workspace ${visibleLine(sandbox.workspace, LONGEST_WARNING)}.`,
      capabilities: { tools: {} },
    },
  );
  const jobs = new JobTable();
  const context = {
    sandbox,
    jobs,
    tell: (result: ExecutionResult) => {
      if (result.leftBehind.length === 0) return;
      for (const line of warningsOf(result))
        options.onProblem(`warning: ${visibleLine(line, LONGEST_WARNING)}`);
    },
    longestJob: options.longestJob,
  };
  // The SDK counts its requests from 0, and ignores that request 0 was canceled: that must work for it, too.
  server.server.oninitialized = () => void server?.server.ping().catch(() => {});
  for (const register of TOOLS) register(server, context);
  options.onReady(sandbox);
  await untilGone(server, options);
  for (const job of jobs.running())
    options.onProblem(`ended with its client: ${job.id}, ${JSON.stringify(shortCommandOf(job))}`);
}

/** Speaks with the client until one of both wants no more. */
async function untilGone(server: McpServer, options: McpOptions): Promise<void> {
  const { input, output, signal } = options;
  let remarks = 0;
  const remark = (text: string) => {
    remarks += 1;
    if (remarks <= MOST_REMARKS) options.onProblem(visibleLine(text, LONGEST_REMARK));
  };
  const messages = limitMessages({
    longest: LONGEST_MESSAGE,
    output,
    onTooLong: () => remark(`a message of more than ${LONGEST_MESSAGE} bytes was left out`),
  });
  const gone = new Promise<void>((settle) => {
    finished(messages, { writable: false }, () => settle());
    // Also where nothing is written any more: no one reads it.
    output.on('error', () => settle());
    output.once('close', () => settle());
    signal.addEventListener('abort', () => settle(), { once: true });
    if (signal.aborted) settle();
  });
  input.on('error', () => messages.destroy());
  // The transport waits with each answer that a slow client has not read.
  output.setMaxListeners(0);
  server.server.onerror = (error) => remark(`a message that is not understood: ${error.message}`);
  await server.connect(
    new StdioServerTransport(input.pipe(messages), output, { maxBufferSize: 2 * LONGEST_MESSAGE }),
  );
  try {
    await gone;
  } finally {
    // Calls that are under way are given up by it.
    await server.close();
    input.destroy();
    messages.destroy();
  }
}

/** THE registry of tools. */
const TOOLS: readonly ((server: McpServer, context: ToolContext) => void)[] = [
  registerShell,
  registerOutput,
  registerKill,
  registerExplain,
];

/** Bytes of one message of a client: a command has a tenth of it at most. */
const LONGEST_MESSAGE = 1024 * 1024;
/** Answers that wait for a client that does not read: it is not listened to meanwhile. */
const UNREAD_BYTES = 8 * 1024 * 1024;
const NEWLINE = Buffer.from('\n');

/** What is done with the input of a client. */
interface MessageLimitOptions {
  readonly longest: number;
  /** Where the answers go. */
  readonly output: Writable;
  /** Called for each message that was left out. */
  readonly onTooLong: () => void;
}

/** Hands on whole lines: those that are too long are left out, and nothing comes while too many answers are unread. */
export function limitMessages({ longest, output, onTooLong }: MessageLimitOptions): Transform {
  const reader = createLineReader(longest);
  return new Transform({
    transform(chunk: Buffer, _encoding, done: TransformCallback) {
      reader.push(chunk);
      for (let line = reader.take(); line !== undefined; line = reader.take()) {
        if (line === 'too-long') onTooLong();
        else this.push(Buffer.concat([line, NEWLINE]));
      }
      if (output.writableLength > UNREAD_BYTES) output.once('drain', done);
      else done();
    },
  });
}

/** The tool `policy_explain`. */
function registerExplain(server: McpServer, { sandbox }: ToolContext): void {
  server.registerTool(
    'policy_explain',
    {
      description: 'Says whether `shell` would run a command, and why not. Nothing is run.',
      inputSchema: ExplainInput,
      annotations: { readOnlyHint: true, idempotentHint: true },
    },
    ({ command, cwd }) =>
      answered(async () => {
        const place = placeOf(sandbox.workspace, cwd);
        if (place === undefined) return refusal(outsideWorkspace(sandbox.workspace));
        const decision = await sandbox.decisionOn({ command, cwd: place });
        const allowed = boundariesOf(sandbox.plan);
        const judged = !sandbox.policy.unsafe.unjudgedCommands;
        const stopped = judged ? refusalOf(decision, false) : undefined;
        const structured: ExplainOutput = {
          verdict: judged ? decision.verdict : 'allow',
          judged,
          ...{ risk: decision.risk, reach: decision.reach },
          reasons: decisionAsJson(decision).reasons.map((reason) => ({
            ...reason,
            message: visibleText(reason.message),
          })),
          allowed: {
            writable: [...allowed.writable],
            readable: [...allowed.readable],
            network: allowed.network,
          },
        };
        const text =
          stopped === undefined
            ? `It would run (risk ${decision.risk}, reach ${decision.reach}).`
            : `${decision.verdict}: it would not run${decision.verdict === 'ask' ? ' before a person has approved it' : ''}.\n${refusalForModel(
                { command, code: stopped.code, message: stopped.message, decision },
                undefined,
              )}`;
        return { structuredContent: structured, content: [{ type: 'text', text }] };
      }),
  );
}

/** The tool `shell_output`. */
function registerOutput(server: McpServer, { jobs }: ToolContext): void {
  server.registerTool(
    'shell_output',
    {
      description:
        'What a background command wrote since the last call, and whether it runs; without `id` all of them, and where their servers are reached.',
      inputSchema: OutputInput,
      annotations: { readOnlyHint: true },
    },
    ({ id, since }) =>
      answered(async () => {
        if (id === undefined) return listResult(jobs.all());
        const job = jobs.find(id);
        return job === undefined ? unknown(id, jobs) : jobResult(job, since);
      }),
  );
}

/** The tool `shell_kill`. */
function registerKill(server: McpServer, { jobs }: ToolContext): void {
  server.registerTool(
    'shell_kill',
    {
      description:
        'Ends a background command with everything that it started, and returns the rest of its output.',
      inputSchema: KillInput,
      annotations: { readOnlyHint: false, destructiveHint: true, idempotentHint: true },
    },
    ({ id, signal }) =>
      answered(async () => {
        const job = jobs.find(id);
        if (job === undefined) return unknown(id, jobs);
        if (job.running.result !== undefined) return jobResult(job, undefined, 'it had ended before');
        if (signal === undefined) {
          await job.running.end();
          return jobResult(job, undefined, 'ended');
        }
        const sent = job.running.kill(signal);
        return jobResult(job, undefined, sent ? `${signal} sent` : `there was nothing to send ${signal} to`);
      }),
  );
}

function unknown(id: string, jobs: JobTable): CallToolResult {
  const ids = jobs.all().map((job) => job.id);
  const known = ids.length === 0 ? 'there is none' : `there are ${ids.join(', ')}`;
  return refusal(`no background command ${JSON.stringify(visibleLine(id, 40))}; ${known}`);
}
