import type { Agent } from './agents/agent.ts';

/** THE registry of agents that this program is installed for, and whose hooks it answers. */
export const AGENTS: Readonly<Record<string, () => Promise<Agent>>> = {
  'claude-code': async () => (await import('./agents/claude-code.ts')).claudeCode,
  codex: async () => (await import('./agents/codex.ts')).codex,
  'gemini-cli': async () => (await import('./agents/gemini-cli.ts')).geminiCli,
  opencode: async () => (await import('./agents/opencode.ts')).opencode,
};
