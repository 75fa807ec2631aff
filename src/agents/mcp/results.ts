import type { CallToolResult } from '@modelcontextprotocol/sdk/types.js';
import { hostAndPort } from '../../base/host-and-port.ts';
import { visibleText } from '../../base/visible-text.ts';
import type { ExecutionResult } from '../../model/index.ts';
import { type JobPort, leftBehindForModel, portsInWords, reasonForModel } from '../../run/index.ts';
import { DEFAULT_MODEL_OUTPUT, type ToolOutcome } from '../shell-tool.ts';
import { type Job, shortCommandOf } from './job-table.ts';
import type { JobOutput, ListOutput, ShellOutput } from './schemas.ts';

/** A sentence that says why a call was not carried out. */
export function refusal(text: string): CallToolResult {
  return { isError: true, content: [{ type: 'text', text }] };
}

/**
 * What became of a command: structured, and as text. What we say comes first, with how long each stream is that follows, so
 * that no output can pass for it.
 */
export function shellResult({ result, message }: ToolOutcome, news?: string): CallToolResult {
  const { stdout, stderr, truncated, durationMs } = result;
  const structured: ShellOutput = {
    ...endOf(result),
    stdout,
    stderr,
    truncated,
    durationMs: Math.round(durationMs),
    changes: waiting(result),
    messageForModel: [message, news].filter((line) => line !== undefined).join('\n') || null,
    job: null,
  };
  const isStopped = wasStopped(result);
  const isSilent = stdout === '' && stderr === '';
  const end = `${howItEnded(result)}${isSilent ? ' (no output)' : ''}`;
  const ours = [isStopped && message !== undefined ? undefined : end, message, ...warningsFor(result), news];
  return {
    ...(isStopped ? { isError: true } : {}),
    structuredContent: structured,
    content: textOf(ours, [
      { name: 'stdout', text: stdout },
      { name: 'stderr', text: stderr },
    ]),
  };
}

function waiting({ changes }: ExecutionResult): ShellOutput['changes'] {
  if (changes?.state !== 'waiting' || changes.id === undefined) return null;
  return { id: changes.id, counts: changes.counts };
}

const warningsFor = ({ warnings }: ExecutionResult) =>
  warnings.map((warning) => `Warning: ${visibleText(warning)}`);

/** The line break that ends output: it is cut off, because our next line brings its own. */
const LAST_BREAK = /\n$/;

/** One block: a line for everything of ours, then output, each stream behind a line that says how long it is. */
function textOf(
  ours: readonly (string | undefined)[],
  streams: readonly { readonly name: string; readonly text: string }[],
): CallToolResult['content'] {
  const output = streams.flatMap(({ name, text }) => {
    const shown = text.replace(LAST_BREAK, '');
    return text === '' ? [] : [`[${name}, ${shown.length} characters]\n${shown}`];
  });
  const said = ours.filter((line) => line !== undefined);
  return [{ type: 'text', text: [...said, ...output].join('\n') }];
}

/** What is known of the end of a command that runs. */
const RUNNING = {
  ...{ status: 'running' as const, ok: null, exitCode: null, signal: null, error: null },
  ...{ warnings: [], leftBehind: [] },
};

/** A command that runs in the background now. */
export function startedResult({ id }: Job, remark: string | undefined): CallToolResult {
  const structured: ShellOutput = {
    ...RUNNING,
    ...{ stdout: '', stderr: '', truncated: { stdout: 0, stderr: 0 } },
    durationMs: 0,
    changes: null,
    messageForModel: remark ?? null,
    job: id,
  };
  return {
    structuredContent: structured,
    content: [
      {
        type: 'text',
        text: [`running in the background as ${id}: shell_output reads it, shell_kill ends it`, remark]
          .filter((line) => line !== undefined)
          .join('\n'),
      },
    ],
  };
}

/** What a job wrote since, and how it is. `said`: what was just done to it. */
export async function jobResult(
  { id, running, log }: Job,
  since?: number,
  said?: string,
): Promise<CallToolResult> {
  const ports = await running.ports();
  const part = log.read(since, DEFAULT_MODEL_OUTPUT);
  const { result, exited } = running;
  const end =
    result === undefined
      ? { ...RUNNING, exitCode: exited?.exitCode ?? null, signal: exited?.signal ?? null }
      : endOf(result);
  const structured: JobOutput = { id, ...part, ...end };
  const state =
    result === undefined
      ? [howItRuns(running), ...ports.flatMap(howItIsReached)].join('; ')
      : [howItEnded(result), leftBehindForModel(result)].filter(Boolean).join('; ');
  const missing = part.leftOut === 0 ? '' : `; ${part.leftOut} characters before this are not kept any more`;
  const rest = part.more ? `; there is more, since ${part.next}` : '';
  const head = `${said === undefined ? '' : `${said}; `}${id}: ${state}${missing}${rest}`;
  return {
    structuredContent: structured,
    content: textOf(
      [part.output === '' ? `${head} (no new output)` : head],
      [{ name: 'output', text: part.output }],
    ),
  };
}

/** The background commands that can be asked about, with a line for each. */
export async function listResult(jobs: readonly Job[]): Promise<CallToolResult> {
  const listed = await Promise.all(
    jobs.map(async (job) => {
      const { result } = job.running;
      const ports = result === undefined ? await job.running.ports() : [];
      const state = result === undefined ? howItRuns(job.running) : howItEnded(result);
      const reached = ports.length === 0 ? '' : `; reach it at ${portsInWords(ports)}`;
      return {
        line: `${job.id}: ${JSON.stringify(shortCommandOf(job))}; ${state}${reached}`,
        listed: {
          id: job.id,
          command: visibleText(job.command),
          status: result?.status ?? ('running' as const),
          reach: ports.map((port) => portsInWords([port])),
        },
      };
    }),
  );
  const structured: ListOutput = { jobs: listed.map((one) => one.listed) };
  const text = listed.map(({ line }) => line).join('\n');
  return {
    structuredContent: structured,
    content: [{ type: 'text', text: text === '' ? 'No command was started in the background.' : text }],
  };
}

function endOf(result: ExecutionResult) {
  const { status, ok, exitCode, signal, error, warnings, leftBehind } = result;
  return {
    ...{ status, ok },
    exitCode: exitCode ?? null,
    signal: signal ?? null,
    error:
      error === undefined
        ? null
        : { code: error.code, message: visibleText(reasonForModel(result) ?? error.code) },
    warnings: warnings.map((warning) => visibleText(warning)),
    leftBehind: leftBehind.map(({ kept: _, ...one }) => ({
      ...one,
      path: visibleText(one.path),
      ...(one.settings === undefined ? {} : { settings: one.settings.map((text) => visibleText(text)) }),
    })),
  };
}

/** By us, and not by itself. */
function wasStopped({ status }: ExecutionResult): boolean {
  return status !== 'exited' && status !== 'signaled';
}

function howItRuns({ exited }: Job['running']): string {
  return exited === undefined ? 'running' : 'the command has ended, and something that it started still runs';
}

/** Where its other commands find a server of it. */
function howItIsReached({ port, address, pid, published: [outside] = [] }: JobPort): readonly string[] {
  if (port === undefined) return [];
  return [
    `process ${pid} listens at ${hostAndPort(address, port)}, which other commands reach at localhost:${port}${outside === undefined ? '' : `, and programs outside at ${outside}`}`,
  ];
}

function howItEnded(result: ExecutionResult): string {
  const { status, exitCode, signal, durationMs } = result;
  switch (status) {
    case 'exited':
      return `exit code ${exitCode}`;
    case 'signaled':
      return `ended by ${signal}`;
    case 'timed-out':
      return `timed out: it was ended after ${(durationMs / 1000).toFixed(1)} s, with everything that it started`;
    case 'canceled':
      return 'it was ended, with everything that it started';
    default:
      return visibleText(reasonForModel(result) ?? status);
  }
}
