import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { execa } from 'execa';
import type { Answering } from '../support/model-server.ts';
import { type AgentWorld, converse, installedAgent, type Script, type ToolCall } from './agents-support.ts';

/** The version that is tested. */
const VERSION = '0.61.0';

const installed = installedAgent('@google/gemini-cli', VERSION);
/** The program; `undefined`: it cannot be had. */
export const GEMINI =
  installed === undefined ? undefined : join(installed, 'node_modules/@google/gemini-cli/bundle/gemini.js');

/** Settings of Gemini CLI that have it ask nobody and send nothing anywhere. */
export function writeGeminiSettings({ home }: AgentWorld): void {
  mkdirSync(join(home, '.gemini'));
  const settings = {
    security: { auth: { selectedType: 'gemini-api-key' }, folderTrust: { enabled: false } },
    privacy: { usageStatisticsEnabled: false },
    telemetry: { enabled: false },
    general: { disableAutoUpdate: true, disableUpdateNag: true },
  };
  writeFileSync(join(home, '.gemini/settings.json'), `${JSON.stringify(settings, null, 2)}\n`);
}

/** Runs `gemini -p` with a model that calls these tools; without a terminal it has a shell only with `--yolo`. */
export function geminiRuns(
  world: AgentWorld,
  script: Script,
  requests?: string[],
): Promise<readonly string[]> {
  const run = (url: string) =>
    execa(process.execPath, [GEMINI ?? '', '-m', 'gemini-2.5-flash', '--yolo', '-p', 'do it'], {
      cwd: world.project,
      env: {
        ...world.env,
        GEMINI_API_KEY: 'x',
        GOOGLE_GEMINI_BASE_URL: url,
        GEMINI_CLI_TRUST_WORKSPACE: 'true',
      },
      ...{ extendEnv: false, stdin: 'ignore', timeout: 150_000 },
    });
  return converse(script, { answering, run, requests });
}

/** The Gemini API, as a stream of one event. */
function answering(next: (seen: readonly string[]) => ToolCall | undefined): Answering {
  let count = 0;
  return (response, { path, body }) => {
    const isConversation = path?.includes('streamGenerateContent') === true && Array.isArray(body.tools);
    const call = isConversation ? next(seenIn(body.contents)) : undefined;
    count += 1;
    const part =
      call === undefined
        ? { text: 'done' }
        : { functionCall: { id: `call_${count}`, name: call.name, args: call.args } };
    const message = {
      candidates: [{ content: { role: 'model', parts: [part] }, finishReason: 'STOP', index: 0 }],
      usageMetadata: { promptTokenCount: 1, candidatesTokenCount: 1, totalTokenCount: 2 },
    };
    const isStream = path?.includes('alt=sse') === true;
    response.writeHead(200, { 'content-type': isStream ? 'text/event-stream' : 'application/json' });
    response.end(isStream ? `data: ${JSON.stringify(message)}\r\n\r\n` : JSON.stringify(message));
  };
}

/** What each call gave, in their order. */
function seenIn(contents: unknown): readonly string[] {
  if (!Array.isArray(contents)) return [];
  return contents
    .flatMap(({ parts }) => parts ?? [])
    .filter(({ functionResponse }) => functionResponse !== undefined)
    .map(({ functionResponse: { response } }) => response.error ?? response.output);
}
