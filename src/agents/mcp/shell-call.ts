import type { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js';
import type { RequestHandlerExtra } from '@modelcontextprotocol/sdk/shared/protocol.js';
import type { CallToolResult, ServerNotification, ServerRequest } from '@modelcontextprotocol/sdk/types.js';
import type { z } from 'zod';
import { visibleLine } from '../../base/visible-text.ts';
import type { OutputChunk } from '../../model/index.ts';
import { introductionForModel, neutralize } from '../../run/index.ts';
import { lessTime, runForModel, startForModel } from '../shell-tool.ts';
import { answered, type ToolContext } from './context.ts';
import { MOST_JOBS } from './job-table.ts';
import { refusal, shellResult, startedResult } from './results.ts';
import { ShellInput } from './schemas.ts';

/** Commands that a client waits for at the same time. */
const MOST_CALLS = 64;

/**
 * Clients of the official SDKs give a request 60 s, and tell their model nothing of a command that is ended then. Where a command
 * may take just as long, which is the default, it is ended in time for its result to arrive.
 */
const CLIENTS_WAIT_MS = 60_000;
const IN_TIME_MS = 55_000;

/** Milliseconds after which a command that is waited for is ended; 0: never. */
const limitOf = (timeout: number) => (timeout === CLIENTS_WAIT_MS ? IN_TIME_MS : timeout);

/** The tool `shell`. */
export function registerShell(server: McpServer, context: ToolContext): void {
  const { sandbox, longestJob } = context;
  const until = longestJob === 0 ? 'this server ends' : `${longestJob / 1000} s have passed`;
  let calls = 0;
  server.registerTool(
    'shell',
    {
      description: [
        'Runs a bash command line.',
        introductionForModel({
          plan: sandbox.plan,
          workspace: sandbox.workspace,
          timeoutMs: limitOf(sandbox.defaults.timeout),
        }),
        `With background: true it runs on until it ends, shell_kill ends it, or ${until}; at most ${MOST_JOBS} at once.`,
        'Where the policy asks, a person decides.',
      ].join(' '),
      inputSchema: ShellInput,
      annotations: { readOnlyHint: false, destructiveHint: true, idempotentHint: false },
    },
    (input, extra) =>
      answered(async () => {
        if (calls >= MOST_CALLS)
          return refusal(`not run: ${MOST_CALLS} commands run at the same time; wait for one of them`);
        calls += 1;
        const progress = reportProgress(extra);
        try {
          if (input.background === true && (input.preview === true || input.on !== undefined))
            return refusal('not run: a preview has an end to wait for; leave background out');
          return input.background === true
            ? await inBackground(context, input, extra)
            : await inForeground(context, input, extra, progress);
        } finally {
          progress.stop();
          calls -= 1;
        }
      }),
  );
}

type Input = z.infer<typeof ShellInput>;

const callOf = ({ command, cwd, timeout, preview, on }: Input) => ({
  command,
  cwd,
  ...(preview === true || on !== undefined ? { effect: 'preview' as const, on } : {}),
  timeout: timeout === undefined ? undefined : timeout * 1000,
  // The description of the tool says it.
  knowsBoundaries: true,
});

async function inForeground(
  { sandbox, jobs, tell }: ToolContext,
  input: Input,
  { signal }: CallExtra,
  { onOutput }: ReturnType<typeof reportProgress>,
): Promise<CallToolResult> {
  const outcome = await runForModel(
    sandbox,
    { ...callOf(input), longest: limitOf(sandbox.defaults.timeout) },
    { signal, onOutput },
  );
  tell(outcome.result);
  return shellResult(outcome, await jobs.news());
}

async function inBackground(
  { sandbox, jobs, longestJob, tell }: ToolContext,
  input: Input,
  { signal }: CallExtra,
): Promise<CallToolResult> {
  // Until it runs the call can be given up; then it is no call any more.
  const givenUp = new AbortController();
  const giveUp = () => givenUp.abort();
  signal.addEventListener('abort', giveUp, { once: true });
  try {
    const started = await jobs.start(input.command, (log) =>
      startForModel(sandbox, callOf(input), longestJob, {
        signal: givenUp.signal,
        combined: true,
        onOutput: ({ bytes }) => log.write(bytes),
      }),
    );
    if (started === 'too-many')
      return refusal(`not run: ${MOST_JOBS} commands run in the background; end one of them (shell_kill)`);
    if ('id' in started) started.running.wait().then(tell, () => {});
    if (!('id' in started)) return shellResult(started);
    return startedResult(started, lessTime(callOf(input).timeout, longestJob));
  } finally {
    signal.removeEventListener('abort', giveUp);
  }
}

/** What the SDK says about a call, besides its arguments. */
type CallExtra = Pick<
  RequestHandlerExtra<ServerRequest, ServerNotification>,
  'signal' | '_meta' | 'sendNotification'
>;

const INTERVAL_MS = 1_000;
const LINE_CHARACTERS = 200;
/** How much of the end of the output is searched for its last line, in characters. */
const LOOKED_AT = 2_048;

/** Progress of one call. */
interface Progress {
  /** To be called with the output. `undefined`: the client did not ask for progress. */
  readonly onOutput: ((chunk: OutputChunk) => void) | undefined;
  /** To be called before the call is answered. */
  stop(): void;
}

/** Tells a client that asked for it how long a call has taken and the last line of output, at most once a second. */
function reportProgress({ _meta, sendNotification }: CallExtra): Progress {
  const progressToken = _meta?.progressToken;
  if (progressToken === undefined) return { onOutput: undefined, stop: () => {} };
  const begun = performance.now();
  let end = Buffer.alloc(0);
  let isSending = false;
  const timer = setInterval(() => {
    // A client that does not read gets no more of it.
    if (isSending) return;
    isSending = true;
    const elapsed = performance.now() - begun;
    // In tenths of a second: it has to grow, also where a late one is followed by one in time.
    const progress = Math.round(elapsed / 100) / 10;
    const message = `${Math.round(elapsed / 1000)} s${lastLine(end)}`;
    const params = { progressToken, progress, message };
    const sent = () => {
      isSending = false;
    };
    sendNotification({ method: 'notifications/progress', params }).then(sent, sent);
  }, INTERVAL_MS);
  return {
    onOutput: ({ bytes }) => {
      end = Buffer.concat([end, bytes.subarray(-LOOKED_AT)]).subarray(-LOOKED_AT);
    },
    stop: () => clearInterval(timer),
  };
}

function lastLine(end: Buffer): string {
  const lines = neutralize(end.toString('utf8')).split('\n');
  const line = lines.findLast((text) => text.trim() !== '');
  return line === undefined ? '' : `: ${visibleLine(line, LINE_CHARACTERS)}`;
}
