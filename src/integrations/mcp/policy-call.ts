import type { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js';
import type { z } from 'zod';
import type { Taint } from '../../model/decision.ts';
import type { Checker } from '../../run/checker.ts';
import { boundariesOf, refusalForModel } from '../../run/model-message.ts';
import { refusalOf } from '../../run/refusal.ts';
import { visibleText } from '../../util/visible-text.ts';
import { outsideWorkspace, placeOf } from '../shell-tool.ts';
import { answered, type ToolContext } from './context.ts';
import { refusal } from './results.ts';
import { ExplainInput, ExplainOutput } from './schemas.ts';

/** What decides without running. */
export interface ExplainContext {
  readonly checker: Pick<Checker, 'judge' | 'policy'>;
  /** What the session of the agent was exposed to. */
  readonly taints: () => Promise<readonly Taint[]>;
}

/** The tool `policy_explain`. */
export function registerExplain(
  server: McpServer,
  { sandbox, checker, taints }: ToolContext & ExplainContext,
): void {
  server.registerTool(
    'policy_explain',
    {
      title: 'Ask what the policy says',
      description:
        'Says whether `shell` would run a command, with every reason and what is allowed instead. Nothing is run, and no question is asked.',
      inputSchema: ExplainInput,
      outputSchema: ExplainOutput,
      annotations: { readOnlyHint: true, idempotentHint: true },
    },
    ({ command, cwd }) =>
      answered(async () => {
        const place = placeOf(sandbox.workspace, cwd);
        if (place === undefined) return refusal(outsideWorkspace(sandbox.workspace));
        const decision = await checker.judge({ command, cwd: place, taints: await taints() });
        const allowed = boundariesOf(sandbox.plan);
        const judged = !checker.policy.unsafe.unjudgedCommands;
        const stopped = judged ? refusalOf(decision, false) : undefined;
        const structured: z.infer<typeof ExplainOutput> = {
          verdict: judged ? decision.verdict : 'allow',
          judged,
          risk: decision.risk,
          reach: decision.reach,
          reasons: decision.reasons.map(({ check, verdict, code, message }) => ({
            check,
            verdict: verdict ?? null,
            code,
            message: visibleText(message),
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
                allowed,
              )}`;
        return { structuredContent: structured, content: [{ type: 'text', text }] };
      }),
  );
}
