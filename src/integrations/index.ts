// The exports of this room for code outside of src: tests and scripts import nothing below it.
export { claudeCodeChange } from './agents/claude-code.ts';
export { bashToolSandbox, shellTool } from './ai.ts';
export { type ImportPlace, leavesOf, type Place } from './import/draft.ts';
export { importPolicy } from './import/import-policy.ts';
export { changedSettings } from './install/hook-settings.ts';
export { changedToml, type TomlTable } from './install/toml-text.ts';
export { ShellOutput } from './mcp/schemas.ts';
export { createShell, runShellCall, type ShellCall } from './openai.ts';
export { runForModel, startForModel } from './shell-tool.ts';
