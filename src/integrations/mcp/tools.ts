import type { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js';
import type { ToolContext } from './context.ts';
import { registerKill, registerOutput } from './job-calls.ts';
import { type ExplainContext, registerExplain } from './policy-call.ts';
import { registerShell } from './shell-call.ts';

/** THE registry of tools. */
export const TOOLS: readonly ((server: McpServer, context: ToolContext & ExplainContext) => void)[] = [
  registerShell,
  registerOutput,
  registerKill,
  registerExplain,
];
