import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { execa } from 'execa';
import type { Answering } from '../support/model-server.ts';
import { type AgentWorld, converse, installedAgent, type Script, type ToolCall } from './agents-support.ts';

/** The version that is tested. */
const VERSION = '0.169.0';

const installed = installedAgent('@openai/codex', VERSION);
/** The program; `undefined`: it cannot be had. */
export const CODEX = installed === undefined ? undefined : join(installed, 'node_modules/.bin/codex');

/** Settings of Codex that have it talk to a server of ours; what is installed comes to them. */
export function writeCodexSettings({ home }: AgentWorld): void {
  mkdirSync(join(home, '.codex'), { recursive: true });
  writeFileSync(
    join(home, '.codex/config.toml'),
    `model = "gpt-5.1-codex"
model_provider = "ours"
[model_providers.ours]
name = "ours"
base_url = "http://127.0.0.1:1/v1"
wire_api = "responses"
env_key = "OUR_KEY"
supports_websockets = false
[analytics]
enabled = false
`,
  );
}

interface CodexOptions {
  /** Codex's own sandbox. */
  readonly sandbox?: 'danger-full-access' | 'workspace-write' | 'read-only';
  /** Hooks run although nobody has said that they are to be trusted. Default: true. */
  readonly trusted?: boolean;
  readonly requests?: string[];
}

/** Runs `codex exec` with a model that calls these tools. */
export function codexRuns(
  world: AgentWorld,
  script: Script,
  { sandbox = 'danger-full-access', trusted = true, requests }: CodexOptions = {},
): Promise<readonly string[]> {
  const run = (url: string) =>
    execa(
      CODEX ?? '',
      [
        ...[
          'exec',
          '--skip-git-repo-check',
          '-s',
          sandbox,
          '-c',
          `model_providers.ours.base_url="${url}/v1"`,
        ],
        ...(trusted ? ['--dangerously-bypass-hook-trust'] : []),
        'do it',
      ],
      {
        cwd: world.project,
        env: { ...world.env, OUR_KEY: 'x' },
        extendEnv: false,
        stdin: 'ignore',
        timeout: 150_000,
      },
    );
  return converse(script, { answering, run, requests });
}

/** The Responses API, as a stream of events. */
function answering(next: (seen: readonly string[]) => ToolCall | undefined): Answering {
  let count = 0;
  return (response, { path, body }) => {
    if (path?.endsWith('/responses') !== true) {
      response.writeHead(404).end('{}');
      return;
    }
    count += 1;
    const id = `resp_${count}`;
    const call = next(seenIn(body.input));
    const item =
      call === undefined
        ? {
            type: 'message',
            role: 'assistant',
            id: `msg_${count}`,
            content: [{ type: 'output_text', text: 'done' }],
          }
        : {
            ...{ type: 'function_call', id: `fc_${count}`, call_id: `call_${count}`, name: call.name },
            arguments: JSON.stringify(call.args),
            ...(call.namespace === undefined ? {} : { namespace: call.namespace }),
          };
    const usage = { input_tokens: 1, output_tokens: 1, total_tokens: 2 };
    response.writeHead(200, { 'content-type': 'text/event-stream' });
    for (const event of [
      { type: 'response.created', response: { id } },
      { type: 'response.output_item.done', output_index: 0, item },
      { type: 'response.completed', response: { id, usage } },
    ])
      response.write(`event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`);
    response.end();
  };
}

/** The output of each call, in their order. */
function seenIn(input: unknown): readonly string[] {
  if (!Array.isArray(input)) return [];
  return input
    .filter(({ type }) => type === 'function_call_output')
    .map(({ output }) => (typeof output === 'string' ? output : JSON.stringify(output)));
}
