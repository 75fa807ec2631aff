// A plug-in of sandbox-run in TypeScript: it refuses commands that name a production system, and notes what took long.
//
//   npx esbuild no-production.ts --format=esm --outfile=/etc/sandbox-run/hooks/no-production.mjs
//
// and in the policy of the user or the machine (Node 22.18 and later takes the .ts file as it is):
//
//   [[hooks.plugins]]
//   path = "/etc/sandbox-run/hooks/no-production.mjs"
import type { HookAnswer, ToolInput, ToolResult } from 'sandbox-run';

const PRODUCTION = /\b(?:prod|production)\b/i;
const LONG_MS = 60_000;

/** Called before each command that nothing else refuses. What throws refuses, too. */
export function before_tool_use(toolName: string, { command }: ToolInput): HookAnswer {
  if (!PRODUCTION.test(String(command))) return {};
  return { decision: 'deny', reason: `${toolName} must not touch production: ask the team on call` };
}

/** Called when it has ended. */
export function after_tool_use(_: string, { command }: ToolInput, { durationMs }: ToolResult): void {
  if (durationMs > LONG_MS) console.error(`took ${Math.round(durationMs / 1000)} s: ${command}`);
}
