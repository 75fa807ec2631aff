import { execFileSync, spawn } from 'node:child_process';
import { mkdirSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { ASKS_ABOUT_LOSSES, makeConfiguration } from '../support/unjudged-policy.ts';
import { type ScriptedModel, startScriptedModel, type Turn } from './claude-model.ts';

/** `none`: Claude Code as it is, for comparison. */
export type Hooks = 'none' | 'decide' | 'rewrite';

/** A user with a project and Claude Code's settings, of whom nothing lasts. */
export interface ClaudePlace {
  readonly root: string;
  readonly home: string;
  readonly project: string;
  readonly env: Readonly<Record<string, string>>;
  dispose(): void;
}

/**
 * @param cli The built command line, which installs the hooks as a user would.
 * @param allowed Tools that the user lets the agent use without a question.
 */
export function makeClaudePlace(cli: string, hooks: Hooks, allowed: readonly string[]): ClaudePlace {
  const root = realpathSync(mkdtempSync(join(tmpdir(), 'claude-test-')));
  const [home, project, tmp] = ['home', 'project', 'tmp'].map((name) => join(root, name)) as [
    string,
    string,
    string,
  ];
  for (const path of [join(home, '.claude'), project, tmp]) mkdirSync(path, { recursive: true });
  // For what becomes of a question.
  makeConfiguration(join(home, '.config'), ASKS_ABOUT_LOSSES);
  const settings = { permissions: { allow: allowed } };
  writeFileSync(join(home, '.claude/settings.json'), JSON.stringify(settings));
  const env = {
    PATH: process.env.PATH ?? '',
    HOME: home,
    TMPDIR: tmp,
    SHELL: '/bin/bash',
    LANG: 'C.UTF-8',
    GIT_CONFIG_NOSYSTEM: '1',
  };
  // The server of a session that has just ended may still be closing what it kept open.
  const dispose = () => rmSync(root, { recursive: true, force: true, maxRetries: 20, retryDelay: 100 });
  const install = [cli, 'install', 'claude-code', '--user', '--mode', hooks];
  try {
    if (hooks !== 'none') execFileSync(process.execPath, install, { cwd: project, env, stdio: 'pipe' });
  } catch (error) {
    dispose();
    throw error;
  }
  return { root, home, project, env, dispose };
}

/** What the user answers to a question; `undefined`: there is nobody, as in scripts. */
export type Answer = ((tool: string, input: Readonly<Record<string, unknown>>) => boolean) | undefined;

export interface ClaudeRun extends Pick<ScriptedModel, 'results' | 'requests'> {
  readonly status: number | null;
  readonly stderr: string;
  /** Each message of its stream. */
  readonly messages: readonly Readonly<Record<string, unknown>>[];
  /** Questions that the user was asked. */
  readonly questions: readonly Readonly<Record<string, unknown>>[];
  /** Hosts that it wanted to reach through the proxy: all but loopback. */
  readonly outside: readonly string[];
}

/** Runs Claude Code headless in a place, with a script for its model, until it has nothing more to do. */
export async function runClaude(
  program: string,
  place: ClaudePlace,
  turns: readonly Turn[],
  {
    answer,
    prompts = ['go'],
    timeoutMs = 120_000,
    thinkMs,
  }: {
    readonly answer?: Answer;
    /** What the user says, each after the end of what came of the one before; several need an `answer`. */
    readonly prompts?: readonly string[];
    readonly timeoutMs?: number;
    readonly thinkMs?: number;
  } = {},
): Promise<ClaudeRun> {
  const model = await startScriptedModel(turns, thinkMs);
  const proxy = await startDeadEnd();
  const child = spawn(program, [...OPTIONS, ...(answer === undefined ? ['go'] : ASKING)], {
    cwd: place.project,
    env: { ...place.env, ...quiet(model.url, proxy.url) },
    stdio: ['pipe', 'pipe', 'pipe'],
    timeout: timeoutMs,
    killSignal: 'SIGKILL',
  });
  const messages: Record<string, unknown>[] = [];
  const questions: Record<string, unknown>[] = [];
  let stderr = '';
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    stderr += text;
  });
  const say = (value: unknown) => child.stdin.write(`${JSON.stringify(value)}\n`);
  const left = [...prompts];
  const prompt = () => {
    const content = left.shift();
    if (content === undefined) child.stdin.end();
    else say({ type: 'user', message: { role: 'user', content } });
  };
  if (answer === undefined) child.stdin.end();
  else prompt();
  onLines(child.stdout, (line) => {
    const message = JSON.parse(line) as Record<string, unknown>;
    messages.push(message);
    if (message.type === 'result' && answer !== undefined) prompt();
    if (message.type !== 'control_request') return;
    const request = message.request as Record<string, unknown>;
    questions.push(request);
    const input = request.input as Record<string, unknown>;
    const response = answer?.(String(request.tool_name), input)
      ? { behavior: 'allow', updatedInput: input }
      : { behavior: 'deny', message: 'The user said no.' };
    say({
      type: 'control_response',
      response: { subtype: 'success', request_id: message.request_id, response },
    });
  });
  try {
    const status = await new Promise<number | null>((resolve, reject) => {
      child.on('error', reject);
      child.on('close', resolve);
    });
    const { results, requests } = model;
    return { status, stderr, messages, questions, outside: proxy.asked, results, requests };
  } finally {
    await Promise.all([model.close(), proxy.close()]);
  }
}

const OPTIONS = ['-p', '--output-format', 'stream-json', '--verbose', '--model', 'claude-sonnet-4-5'];
/** Questions and answers are lines of standard output and input. */
const ASKING = ['--input-format', 'stream-json', '--permission-prompt-tool', 'stdio'];

function quiet(api: string, proxy: string): Readonly<Record<string, string>> {
  return {
    ANTHROPIC_BASE_URL: api,
    ANTHROPIC_API_KEY: 'sk-ant-of-no-use',
    CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: '1',
    DISABLE_AUTOUPDATER: '1',
    DISABLE_ERROR_REPORTING: '1',
    DISABLE_TELEMETRY: '1',
    HTTP_PROXY: proxy,
    HTTPS_PROXY: proxy,
    NO_PROXY: '127.0.0.1,localhost',
  };
}

/** A proxy that leads nowhere, and notes who was to be reached. */
async function startDeadEnd() {
  const asked: string[] = [];
  const server = createServer((request, response) => {
    asked.push(request.url ?? '');
    response.writeHead(502).end();
  });
  server.on('connect', (request, socket) => {
    asked.push(request.url ?? '');
    socket.end('HTTP/1.1 502 Bad Gateway\r\n\r\n');
  });
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    asked,
    close: () =>
      new Promise<void>((done) => {
        server.close(() => done());
        server.closeAllConnections();
      }),
  };
}

function onLines(stream: NodeJS.ReadableStream, take: (line: string) => void): void {
  let rest = '';
  stream.setEncoding('utf8');
  stream.on('data', (text: string) => {
    const lines = (rest + text).split('\n');
    rest = lines.pop() ?? '';
    for (const line of lines) if (line !== '') take(line);
  });
}
