import type { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js';
import type { CallToolResult } from '@modelcontextprotocol/sdk/types.js';
import { visibleLine } from '../../util/visible-text.ts';
import { answered, type ToolContext } from './context.ts';
import { jobResult, refusal } from './results.ts';
import { KillInput, OutputInput } from './schemas.ts';

/** The tool `shell_output`. */
export function registerOutput(server: McpServer, { jobs }: ToolContext): void {
  server.registerTool(
    'shell_output',
    {
      description:
        'What a background command wrote since the last call, and whether it still runs. Returns at once.',
      inputSchema: OutputInput,
      annotations: { readOnlyHint: true },
    },
    ({ id, since }) =>
      answered(async () => {
        const job = jobs.find(id);
        return job === undefined ? unknown(id, jobs.ids()) : jobResult(job, since);
      }),
  );
}

/** The tool `shell_kill`. */
export function registerKill(server: McpServer, { jobs }: ToolContext): void {
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
        if (job === undefined) return unknown(id, jobs.ids());
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

function unknown(id: string, ids: readonly string[]): CallToolResult {
  const known = ids.length === 0 ? 'there is none' : `there are ${ids.join(', ')}`;
  return refusal(`no background command ${JSON.stringify(visibleLine(id, 40))}; ${known}`);
}
