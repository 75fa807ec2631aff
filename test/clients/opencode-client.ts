import { copyFileSync, existsSync, mkdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { arch } from 'node:os';
import { join } from 'node:path';
import { execa } from 'execa';
import type { Answering } from '../support/model-server.ts';
import { type AgentWorld, converse, installedAgent, type Script, type ToolCall } from './agents-support.ts';

/** The version that is tested. */
const VERSION = '1.18.33';

const installed = installedAgent('opencode-ai', VERSION);
/** The program; `undefined`: it cannot be had. */
export const OPENCODE =
  installed === undefined ? undefined : join(installed, `node_modules/opencode-linux-${arch()}/bin/opencode`);

/** What opencode installs for each user who has a plug-in; without it each first start would take it from the registry. */
const plugin = installedAgent('@opencode-ai/plugin', VERSION);

/** The plug-in that is installed for the user. */
export const pluginOf = ({ home }: AgentWorld) => join(home, '.config/opencode/plugin/sandbox-run.js');

/** Settings of opencode that have it ask nobody and send nothing anywhere. */
function writeSettings({ home }: AgentWorld, url: string): void {
  const directory = join(home, '.config/opencode');
  mkdirSync(directory, { recursive: true });
  if (plugin !== undefined && !existsSync(join(directory, 'node_modules'))) {
    const needed = { dependencies: { '@opencode-ai/plugin': VERSION } };
    writeFileSync(join(directory, 'package.json'), JSON.stringify(needed));
    copyFileSync(join(plugin, 'package-lock.json'), join(directory, 'package-lock.json'));
    symlinkSync(join(plugin, 'node_modules'), join(directory, 'node_modules'));
  }
  const provider = {
    npm: '@ai-sdk/openai-compatible',
    name: 'ours',
    options: { baseURL: `${url}/v1`, apiKey: 'x' },
    models: { m: { name: 'm' } },
  };
  const settings = {
    ...{
      autoupdate: false,
      share: 'disabled',
      model: 'ours/m',
      small_model: 'ours/m',
      provider: { ours: provider },
    },
  };
  writeFileSync(join(directory, 'opencode.json'), JSON.stringify(settings));
}

/** Runs `opencode run` with a model that calls these tools. */
export function opencodeRuns(
  world: AgentWorld,
  script: Script,
  more: {
    readonly env?: Readonly<Record<string, string>>;
    readonly args?: readonly string[];
    readonly requests?: string[];
  } = {},
): Promise<readonly string[]> {
  const run = (url: string) => {
    writeSettings(world, url);
    return execa(OPENCODE ?? '', ['run', ...(more.args ?? []), 'do it'], {
      cwd: world.project,
      env: {
        ...world.env,
        OPENCODE_DISABLE_AUTOUPDATE: '1',
        OPENCODE_DISABLE_MODELS_FETCH: '1',
        OPENCODE_DISABLE_LSP_DOWNLOAD: '1',
        OPENCODE_DISABLE_DEFAULT_PLUGINS: '1',
        ...more.env,
      },
      ...{ extendEnv: false, stdin: 'ignore', timeout: 300_000 },
    });
  };
  return converse(script, { answering, run, requests: more.requests });
}

/** Chat completions, as a stream. */
function answering(next: (seen: readonly string[]) => ToolCall | undefined): Answering {
  let count = 0;
  return (response, { body }) => {
    // A request for a title has no tools.
    const call = Array.isArray(body.tools) && body.tools.length > 0 ? next(seenIn(body.messages)) : undefined;
    count += 1;
    const base = { id: 'c', object: 'chat.completion.chunk', created: 1, model: 'm' };
    const delta =
      call === undefined
        ? { role: 'assistant', content: 'done' }
        : {
            role: 'assistant',
            tool_calls: [
              {
                ...{ index: 0, id: `call_${count}`, type: 'function' },
                function: { name: call.name, arguments: JSON.stringify(call.args) },
              },
            ],
          };
    const end = call === undefined ? 'stop' : 'tool_calls';
    response.writeHead(200, { 'content-type': 'text/event-stream' });
    for (const choice of [
      { index: 0, delta },
      { index: 0, delta: {}, finish_reason: end },
    ])
      response.write(`data: ${JSON.stringify({ ...base, choices: [choice] })}\n\n`);
    response.end('data: [DONE]\n\n');
  };
}

/** What each call gave, in their order. */
function seenIn(messages: unknown): readonly string[] {
  if (!Array.isArray(messages)) return [];
  return messages.filter(({ role }) => role === 'tool').map(({ content }) => String(content));
}
