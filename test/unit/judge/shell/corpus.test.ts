import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { parseShell } from '../../../../src/judge/shell/parse.ts';
import type { SimpleCommand } from '../../../../src/model/index.ts';

interface Case {
  readonly id: number;
  readonly src: string;
  readonly valid: boolean;
  readonly commands: readonly {
    readonly argv: readonly (string | null)[] | null;
    readonly assignments: readonly {
      readonly name: string;
      readonly op: string;
      readonly value: string | null;
    }[];
    readonly redirects: readonly Readonly<Record<string, unknown>>[];
  }[];
}

const FILE = new URL('../../../cases/shell.jsonl', import.meta.url);
const CASES: readonly Case[] = readFileSync(FILE, 'utf8')
  .split('\n')
  .filter((line) => line !== '')
  .map((line) => JSON.parse(line));

const isDocument = (operator: unknown) => operator === '<<' || operator === '<<-';

/** The file has the body of a here-document where the model has its delimiter. */
function expected({ argv, assignments, redirects }: Case['commands'][number]): string {
  return JSON.stringify([
    argv ?? [],
    assignments.map(({ name, op, value }) => [name, op, value]),
    redirects.map((redirect) => {
      const [descriptor, operator, target] = Object.values(redirect);
      return [descriptor, operator, isDocument(operator) ? '' : target];
    }),
  ]);
}

function found({ words, assignments, redirects }: SimpleCommand): string {
  return JSON.stringify([
    words.map((word) => word.value ?? null),
    assignments.map(({ name, append, value }) => [name, append ? '+=' : '=', value.value ?? null]),
    redirects.map(({ operator, descriptor, target }) => {
      const usual = operator.startsWith('&') ? null : operator.startsWith('<') ? 0 : 1;
      return [descriptor ?? usual, operator, isDocument(operator) ? '' : (target.value ?? null)];
    }),
  ]);
}

describe('the corpus of snippets', () => {
  it.each(CASES)('$id: $src', ({ src, valid, commands }) => {
    const parsed = parseShell(src);
    if (!parsed.understood) return;
    expect(valid).toBe(true);
    const written = parsed.line.commands.filter((command) => command.runBy === undefined);
    expect(written.map(found).sort()).toEqual(commands.map(expected).sort());
  });

  it('is understood as far as it was when this was written', () => {
    const understood = CASES.filter(({ src }) => parseShell(src).understood);
    expect(understood.length).toBeGreaterThanOrEqual(219);
  });
});
