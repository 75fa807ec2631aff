import { finished, type Readable, type Writable } from 'node:stream';
import { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js';
import { StdioServerTransport } from '@modelcontextprotocol/sdk/server/stdio.js';
import type { ExecutionResult } from '../../model/execution-result.ts';
import type { SandboxOptions } from '../../model/options.ts';
import { warningsOf } from '../../run/output/result-warnings.ts';
import { openSandbox, type Sandbox } from '../../run/sandbox.ts';
import { visibleLine } from '../../util/visible-text.ts';
import { packageVersion } from '../../version.ts';
import type { ToolContext } from './context.ts';
import { canElicit, createElicitApprover } from './elicit-approver.ts';
import { registerKill, registerOutput } from './job-calls.ts';
import { JobTable } from './job-table.ts';
import { LONGEST_MESSAGE, limitMessages } from './message-limit.ts';
import { registerExplain } from './policy-call.ts';
import { registerShell } from './shell-call.ts';

/** What a client that is not understood may have us write on standard error, which perhaps no one reads. */
const MOST_REMARKS = 50;
const LONGEST_REMARK = 200;
/** Has room for a path. */
const LONGEST_WARNING = 5_000;

/** How commands are served to one MCP client. All of it is the operator's. */
interface McpOptions {
  readonly sandbox: SandboxOptions;
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
  await using sandbox = await openSandbox({
    ...options.sandbox,
    gate: {
      // Who the client is, and what it can, is known when it has said hello.
      get approver() {
        if (server === undefined || !options.elicitation || !canElicit(server.server)) return undefined;
        return createElicitApprover(server.server);
      },
    },
  });
  server = new McpServer(
    { name: 'sandbox-run', title: 'sandbox-run', version: packageVersion },
    {
      // What is allowed there is said by the tool, and costs the model something only once.
      instructions: `The tool \`shell\` runs commands in a sandbox, in the workspace ${visibleLine(sandbox.workspace, LONGEST_WARNING)}.`,
      capabilities: { tools: {} },
    },
  );
  const context = {
    sandbox,
    jobs: new JobTable(),
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
