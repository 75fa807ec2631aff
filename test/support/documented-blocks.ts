import { readdirSync, readFileSync } from 'node:fs';

/** A fenced block of a page for users. */
export interface DocumentedBlock {
  /** Such as `docs/network.md`. */
  readonly page: string;
  /** What stands behind the fence: `sh`, `toml`, nothing. */
  readonly language: string;
  readonly text: string;
  /** The line of the page with the fence. */
  readonly line: number;
}

/** The blocks of README.md and docs/, in their order. */
export function documentedBlocks(): readonly DocumentedBlock[] {
  const pages = [
    'README.md',
    ...readdirSync('docs')
      .filter((name) => name.endsWith('.md'))
      .map((name) => `docs/${name}`),
  ];
  return pages.flatMap((page) => blocksOf(page, readFileSync(page, 'utf8')));
}

/** The blocks of one page. A fence may stand in a list, and closes with the same one. */
export function blocksOf(page: string, content: string): readonly DocumentedBlock[] {
  const blocks: DocumentedBlock[] = [];
  let open:
    | { readonly fence: string; readonly language: string; readonly line: number; readonly lines: string[] }
    | undefined;
  for (const [at, line] of content.split('\n').entries()) {
    const [, indent = '', fence = '', language = ''] = /^(\s*)(`{3,}|~{3,})\s*(\S*)/.exec(line) ?? [];
    if (open === undefined) {
      if (fence !== '') open = { fence, language, line: at + 1, lines: [] };
    } else if (fence.startsWith(open.fence) && language === '') {
      blocks.push({ page, language: open.language, line: open.line, text: `${open.lines.join('\n')}\n` });
      open = undefined;
    } else open.lines.push(line.startsWith(indent) ? line : line.trimStart());
  }
  if (open !== undefined) throw new Error(`${page}:${open.line}: the block has no end`);
  return blocks;
}

/** A line of a shell with what it prints; without the comment at its end, which only explains. */
export interface DocumentedLine {
  readonly command: string;
  readonly output: readonly string[];
}

/** The lines of a block; with `$ ` before them, what they print stands between them. */
export function linesOf({ text }: DocumentedBlock): readonly DocumentedLine[] {
  const lines = text.split('\n').filter((line) => line.trim() !== '');
  const isTranscript = lines.some((line) => line.startsWith('$ '));
  const found: { command: string; output: string[] }[] = [];
  for (const line of lines) {
    if (isTranscript && !line.startsWith('$ ')) {
      found.at(-1)?.output.push(line);
      continue;
    }
    found.push({ command: line.replace(/^\$ /, '').replace(/\s+#\s.*$/, ''), output: [] });
  }
  return found.filter(({ command }) => !command.startsWith('#'));
}
