import type { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js';
import { decisionAsJson, refusalOf } from '../../decide/refusal.ts';
import { boundariesOf, refusalForModel } from '../../run/output/model-message.ts';
import { visibleText } from '../../util/visible-text.ts';
import { outsideWorkspace, placeOf } from '../shell-tool.ts';
import { answered, type ToolContext } from './context.ts';
import { refusal } from './results.ts';
import { ExplainInput, type ExplainOutput } from './schemas.ts';

/** The tool `policy_explain`. */
export function registerExplain(server: McpServer, { sandbox }: ToolContext): void {
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
