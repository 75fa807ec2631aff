import { parseShell } from '../../../../src/judge/shell/parse.ts';
import type { NotUnderstoodCode, Parsed, SimpleCommand, Word } from '../../../../src/model/index.ts';

/** The commands of a string that must be understood. */
export function commandsOf(source: string): readonly SimpleCommand[] {
  const parsed = parseShell(source);
  if (!parsed.understood) throw new Error(`${source}: ${parsed.problem.code}: ${parsed.problem.message}`);
  return parsed.line.commands;
}

/** A word as a test writes it: its value, or `?` and what it was. */
export function shown(word: Word): string {
  return word.value ?? `?${word.parts.map((part) => part.kind).join('+')}`;
}

/** Each command as one string; what it runs is behind an arrow. */
export function listed(source: string): readonly string[] {
  return commandsOf(source).map((command) => {
    const words = command.words.map(shown).join(' ');
    return command.runBy === undefined ? words : `> ${words}`;
  });
}

/** The directories in force at each command: `a/b` for two changes, `-` if they cannot be told. */
export function directoriesOf(source: string): readonly string[] {
  return commandsOf(source).map((command) => {
    const all = command.directories?.map((targets) => `./${targets.map(shown).join('/')}`);
    const name = command.words.map(shown).join(' ');
    return `${name}: ${all === undefined ? '-' : [...all].sort().join(' ')}`;
  });
}

/** Why a string is not understood; `undefined` if it is. */
export function codeOf(source: string): NotUnderstoodCode | undefined {
  const parsed: Parsed = parseShell(source);
  return parsed.understood ? undefined : parsed.problem.code;
}
