/** A permission rule of Claude Code: `Tool` or `Tool(specifier)`. */
interface ClaudeRule {
  readonly tool: string;
  /** `undefined`: the rule is about every use of the tool. */
  readonly specifier: string | undefined;
}

/** Reads a rule; `undefined`: it is none. */
export function readClaudeRule(text: string): ClaudeRule | undefined {
  const [, tool, , specifier] = /^([A-Za-z_][\w-]*|\*)(\(([\s\S]*)\))?$/.exec(text.trim()) ?? [];
  if (tool === undefined) return undefined;
  return { tool, specifier: specifier === undefined || /^\**$/.test(specifier) ? undefined : specifier };
}

/** Tools that read files, and those that write them. */
export const READING_TOOLS: ReadonlySet<string> = new Set(['Read', 'Glob', 'Grep', 'LS', 'NotebookRead']);
export const WRITING_TOOLS: ReadonlySet<string> = new Set([
  'Edit',
  'Write',
  'MultiEdit',
  'NotebookEdit',
  'Update',
]);

/** Where Claude Code looks for the path of a rule. */
export interface ClaudeBases {
  /** Of the settings file: the project, or `~/.claude`. */
  readonly settings: string;
  readonly cwd: string;
}

/** A path of a rule in plain form, and what it is relative to. A bare name is meant at any depth. */
export function claudePath(
  specifier: string,
  { settings, cwd }: ClaudeBases,
): { readonly text: string; readonly base: string; readonly anyDepth: boolean } {
  if (specifier.startsWith('//')) return { text: specifier.slice(1), base: '/', anyDepth: false };
  if (specifier.startsWith('~')) return { text: specifier, base: cwd, anyDepth: false };
  if (specifier.startsWith('/')) return { text: `.${specifier}`, base: settings, anyDepth: false };
  const text = specifier.replace(/^\.\//, '');
  // As in .gitignore: without a slash but the last, it is a name and not a path.
  const anyDepth = text === specifier && !text.replace(/\/$/, '').includes('/');
  return { text, base: cwd, anyDepth };
}
