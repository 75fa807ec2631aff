import type { Agent } from './clients/agent.ts';

/** THE registry of agents that this program is installed for, and whose hooks it answers. */
export const AGENTS: Readonly<Record<string, () => Promise<Agent>>> = {
  'claude-code': async () => (await import('./clients/claude-code.ts')).claudeCode,
  codex: async () => (await import('./clients/codex.ts')).codex,
  'gemini-cli': async () => (await import('./clients/gemini-cli.ts')).geminiCli,
  opencode: async () => (await import('./clients/opencode.ts')).opencode,
};
