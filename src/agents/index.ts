// What others may import of this house; inside of it, files import each other. Its README says what it is for.

export { bashToolSandbox, shellTool } from './ai.ts';
export { AGENTS } from './clients.ts';
export { createShell, runShellCall, type ShellCall } from './openai.ts';
export { runForModel, startForModel } from './shell-tool.ts';

// Agents

export type { Agent, FileChange, InstallWay } from './clients/agent.ts';
export { claudeCodeChange } from './clients/claude-code.ts';

// Hooks of agents

export { neededAfterIn } from './hooks/after-event.ts';
export { answerHook, MAX_INPUT_BYTES } from './hooks/answer-hook.ts';
export { checkerParts } from './hooks/before-command.ts';
export {
  AFTER_SCOPES,
  type AfterScope,
  HOOK_MODES,
  type HookEvent,
  type HookMode,
  type HookOptions,
} from './hooks/hook-adapter.ts';
export { sessionNameOf } from './hooks/session-memory.ts';

// Policies of other products

export { IMPORT_SOURCES, type ImportPlace, leavesOf, type Part, type Place } from './import/draft.ts';
export { accountOf, importPolicy, invalid, placeText } from './import/import-policy.ts';

// Installing

export { changedSettings } from './install/hook-settings.ts';
export { changeSettingsFile } from './install/settings-file.ts';
export { changedToml, type TomlTable } from './install/toml-text.ts';

// The MCP server

export { ShellOutput } from './mcp/schemas.ts';
