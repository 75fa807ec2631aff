import { mkdirSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';
import type { RequestOptions } from '@modelcontextprotocol/sdk/shared/protocol.js';
import {
  type CallToolResult,
  CallToolResultSchema,
  type ClientCapabilities,
  type ElicitRequest,
  ElicitRequestSchema,
  type ElicitResult,
} from '@modelcontextprotocol/sdk/types.js';
import { CLI } from '../cli/support.ts';
import { sleep } from '../support/eventually.ts';
import { patience } from '../support/slow-host.ts';

/** Directories of one test file: what the operator chose, and what is none of a model's business. */
export interface McpPlace {
  readonly root: string;
  readonly workspace: string;
  readonly outside: string;
  readonly env: Readonly<Record<string, string>>;
  dispose(): void;
}

/** Makes one. */
export function makeMcpPlace(): McpPlace {
  const root = realpathSync(mkdtempSync(join(tmpdir(), 'mcp-')));
  const at = (name: string) => {
    mkdirSync(join(root, name));
    return join(root, name);
  };
  const [workspace, outside, home, state, config, tmp] = [
    'work',
    'outside',
    'home',
    'state',
    'config',
    'tmp',
  ].map(at) as [string, string, string, string, string, string];
  writeFileSync(join(outside, 'secret.txt'), 'the-secret-41c7');
  return {
    root,
    workspace,
    outside,
    env: {
      PATH: process.env.PATH ?? '',
      HOME: home,
      XDG_STATE_HOME: state,
      XDG_CONFIG_HOME: config,
      TMPDIR: tmp,
      LANG: 'C.UTF-8',
    },
    dispose: () => rmSync(root, { recursive: true, force: true }),
  };
}

/** How a client behaves. */
export interface ClientOptions {
  readonly capabilities?: ClientCapabilities;
  /** Answers questions. Without it the client says that it cannot. */
  readonly onElicit?: (
    request: ElicitRequest,
    extra: { readonly signal: AbortSignal },
  ) => ElicitResult | Promise<ElicitResult>;
}

/** A client that talks to a server of its own. */
export interface Connected {
  readonly client: Client;
  readonly pid: number;
  /** Standard error of the server so far. */
  log(): string;
  /** Every error of the client: whatever was on standard output and no message, among others. */
  readonly errors: readonly Error[];
  call(
    name: string,
    args: Readonly<Record<string, unknown>>,
    options?: RequestOptions,
  ): Promise<CallToolResult>;
  /** `shell` with a command. */
  shell(command: string, more?: Readonly<Record<string, unknown>>): Promise<CallToolResult>;
}

/** Starts the built program and connects the SDK's own client to it. */
export async function connectTo(
  place: McpPlace,
  args: readonly string[] = [],
  { capabilities = {}, onElicit }: ClientOptions = {},
): Promise<Connected> {
  const transport = new StdioClientTransport({
    command: process.execPath,
    args: [CLI, 'mcp', '--workspace', place.workspace, ...args],
    env: place.env,
    stderr: 'pipe',
  });
  let log = '';
  transport.stderr?.on('data', (text: Buffer) => {
    log += text.toString('utf8');
  });
  const client = new Client(
    { name: 'test-client', version: '1.0.0' },
    { capabilities: onElicit === undefined ? capabilities : { ...capabilities, elicitation: {} } },
  );
  const errors: Error[] = [];
  client.onerror = (error) => errors.push(error);
  if (onElicit !== undefined) client.setRequestHandler(ElicitRequestSchema, onElicit);
  try {
    await client.connect(transport);
  } catch (error) {
    throw new Error(`no server: ${log}`, { cause: error });
  }
  // Afterwards the client checks structured results against what was listed.
  await client.listTools();
  const call: Connected['call'] = async (name, args, options) =>
    CallToolResultSchema.parse(await client.callTool({ name, arguments: { ...args } }, undefined, options));
  return {
    client,
    pid: transport.pid ?? 0,
    log: () => log,
    errors,
    call,
    shell: (command, more = {}) => call('shell', { command, ...more }),
  };
}

/** All text of a result. */
export const textOf = ({ content }: CallToolResult): string =>
  content.map((block) => (block.type === 'text' ? block.text : '')).join('\n');

/** Tries an assertion until it holds: on a loaded machine the start of a server alone takes seconds. */
export async function eventually(assertion: () => void | Promise<void>): Promise<void> {
  const end = Date.now() + patience(30_000);
  for (;;) {
    try {
      await assertion();
      return;
    } catch (error) {
      if (Date.now() > end) throw error;
      await sleep(50);
    }
  }
}

/** For tests that wait so. */
export const TEST_TIMEOUT = patience(120_000);

let marks = 0;
/** A number of seconds that no other process sleeps for. */
export function markedSeconds(): string {
  marks += 1;
  return `86400.${process.pid}${marks}${Date.now() % 1_000_000}`;
}
