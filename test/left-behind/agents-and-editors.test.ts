import { type Case, describeCases } from './support/cases.ts';

/**
 * Whether a program that is not installed here would obey what the command wrote: the file that it reads, by its name, says so.
 */
const writes = (
  tool: string,
  path: string,
  expected: Case['expected'],
  { make = '', name = path }: { make?: string; name?: string } = {},
): Case => ({
  name: `${tool}: ${name}`,
  tool,
  make,
  attack: `mkdir -p "$(dirname '${path}')"; rm -f '${path}'; printf 'runs %s\\n' "$MARK" > '${path}'`,
  later: `grep -qs "runs $MARK" '${path}' && touch "$MARK"`,
  expected,
  path,
});
const there = (path: string) => ({
  make: `mkdir -p "$(dirname '${path}')"; echo '{}' > '${path}'`,
  name: `${path}, which is there`,
});
const inPackage = (path: string) => `packages/one/${path}`;

const AGENTS: readonly Case[] = (
  [
    ['Claude Code', '.claude/settings.json'],
    ['Claude Code', '.claude/settings.local.json'],
    ['Claude Code', '.mcp.json'],
    ['Codex', '.codex/config.toml'],
    ['Codex', '.codex/hooks.json'],
    ['Gemini CLI', '.gemini/settings.json'],
    ['opencode', 'opencode.json'],
    ['opencode', '.opencode/plugin/evil.ts'],
    ['Cursor', '.cursor/hooks.json'],
    ['Cursor', '.cursor/mcp.json'],
  ] as const
).flatMap(([tool, path]) => [
  writes(tool, path, 'shut'),
  writes(tool, path, 'shut', there(path)),
  writes(tool, inPackage(path), 'told'),
]);

const NESTED: readonly Case[] = [
  writes(
    'Claude Code',
    inPackage('.claude/settings.json'),
    'told',
    there(inPackage('.claude/settings.json')),
  ),
  writes('Codex', inPackage('.codex/config.toml'), 'told', there(inPackage('.codex/config.toml'))),
  writes('Gemini CLI', inPackage('.gemini/settings.json'), 'told', there(inPackage('.gemini/settings.json'))),
  writes('opencode', inPackage('opencode.json'), 'told', there(inPackage('opencode.json'))),
  writes('Cursor', inPackage('.cursor/hooks.json'), 'told', there(inPackage('.cursor/hooks.json'))),
  writes('Cursor', inPackage('.cursor/mcp.json'), 'told', there(inPackage('.cursor/mcp.json'))),
  writes('VS Code', inPackage('.vscode/tasks.json'), 'told', there(inPackage('.vscode/tasks.json'))),
  writes('VS Code', inPackage('.vscode/settings.json'), 'told', there(inPackage('.vscode/settings.json'))),
];

/** Vim reads it on starting there, where its user has set `exrc`. */
const VIM = 'printf "set exrc\\n" > "$HOME/.vimrc"; vim --not-a-term -c "qa!" < /dev/null';

const EDITORS: readonly Case[] = [
  writes('VS Code', '.vscode/tasks.json', 'shut'),
  writes('VS Code', '.vscode/settings.json', 'shut', there('.vscode/settings.json')),
  writes('VS Code', '.vscode/mcp.json', 'shut', {
    ...there('.vscode/settings.json'),
    name: '.vscode/mcp.json in a directory that is there',
  }),
  writes('VS Code', inPackage('.vscode/tasks.json'), 'told'),
  writes('VS Code', 'work.code-workspace', 'told'),
  writes('Dev Containers', '.devcontainer/devcontainer.json', 'shut'),
  writes('Dev Containers', '.devcontainer.json', 'shut'),
  writes('JetBrains IDEs', '.idea/workspace.xml', 'shut'),
  writes('JetBrains IDEs', '.run/all.run.xml', 'told'),
  writes('Zed', '.zed/settings.json', 'shut'),
  writes('Neovim', '.nvim.lua', 'shut'),
  writes('Helix', '.helix/languages.toml', 'shut'),
  writes('Emacs', 'src/.dir-locals.el', 'shut'),
  {
    name: 'Vim: .exrc',
    tool: 'Vim',
    attack: 'printf "call writefile([], \\"%s\\")\\n" "$MARK" > .exrc',
    later: VIM,
    expected: 'shut',
    path: '.exrc',
  },
  {
    name: 'Vim: .exrc in place of the user’s own',
    tool: 'Vim',
    make: 'echo "set number" > .exrc',
    attack: 'printf "call writefile([], \\"%s\\")\\n" "$MARK" > x; cp x y; mv -f x .exrc; cat y > .exrc',
    later: VIM,
    expected: 'shut',
    path: '.exrc',
    still: 'grep -qx "set number" .exrc',
  },
];

describeCases('agents', AGENTS);
describeCases('agents and editors that start in a directory beneath', NESTED);
describeCases('editors', EDITORS);
