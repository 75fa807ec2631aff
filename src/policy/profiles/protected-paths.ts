/**
 * Paths inside a workspace that something trusted executes or obeys later: the user's git, editor, shell or
 * agent. Relative to the workspace. A command may read them.
 */
export const PROTECTED_PATHS: readonly string[] = [
  '.git/hooks',
  '.git/config',
  '.git/config.worktree',
  // Would redirect git to another config and other hooks (gitrepository-layout(5)).
  '.git/commondir',
  '.husky',
  '.envrc',
  '.bashrc',
  '.bash_profile',
  '.bash_login',
  '.profile',
  '.zshrc',
  '.zshenv',
  '.zprofile',
  '.vscode',
  '.idea',
  '.devcontainer',
  '.claude',
  '.cursor',
  '.codex',
  '.gemini',
  '.mcp.json',
  'sandbox-run.toml',
  '.sandbox-run.toml',
];
