import { resolve } from 'node:path';
import { isBeneath } from '../../base/absolute-path.ts';
import type { ResolvedPath } from '../../confine/plan/path-lookup.ts';
import type { SimpleCommand, Word } from '../../model/index.ts';
import type { Argument, Use } from '../programs/behaviour.ts';
import { describeCommand, type IsForeign } from '../programs/program-table.ts';
import type { CheckContext } from './check.ts';

/** Where one argument may lead, with one of the directories that may be in force. */
export interface Location {
  /** The argument as the program will see it, with known expansions done. */
  readonly text: string;
  /** `undefined`: it could not be resolved. */
  readonly resolved: ResolvedPath | undefined;
  /** Only the directory is known; what follows is decided when it runs. */
  readonly partial: boolean;
}

/** A place as messages name it: the name of the command's own home says nothing to the user, who wrote `~`. */
export function placeAsShown(place: string, { home }: CheckContext['rules']): string {
  return isBeneath(place, home) ? `~${place.slice(home.length)}` : place;
}

/** Why an argument has no locations to judge. */
type Unlocated = 'foreign-home';

/** The directories in which a command may run; `undefined` for one that cannot be told. */
export function directoriesOf(
  command: SimpleCommand,
  context: CheckContext,
): readonly (string | undefined)[] {
  if (command.directories === undefined) return [undefined];
  return command.directories.map((targets) => {
    let cwd: string | undefined = context.cwd;
    for (const target of targets) {
      if (cwd === undefined && !(target.value ?? '').startsWith('/')) return undefined;
      const texts = wordTexts(target, { home: context.rules.home, cwd });
      const [only] = texts ?? [];
      if (only === undefined || texts?.length !== 1 || !only.complete || only.text === '-') return undefined;
      // bash's own idea of the directory: `..` after a link goes back where it came from.
      cwd = only.text === '' ? context.rules.home : resolve(cwd ?? '/', only.text);
    }
    return cwd;
  });
}

/** Every place an argument may lead to. Relative ones in an unknown directory are left to the kernel. */
export function locationsOf(
  argument: Argument,
  cwds: readonly (string | undefined)[],
  context: CheckContext,
): readonly Location[] | Unlocated {
  const locations: Location[] = [];
  for (const cwd of cwds) {
    const texts = wordTexts(argument.word, { home: context.rules.home, cwd });
    if (texts === undefined) return 'foreign-home';
    for (const { text: whole, complete } of texts) {
      const text = whole.slice(argument.start);
      const known = complete ? text : text.slice(0, text.lastIndexOf('/') + 1);
      if (known === '') continue;
      const absolute = known.startsWith('/') ? known : cwd === undefined ? undefined : `${cwd}/${known}`;
      if (absolute === undefined) continue;
      locations.push({
        text: complete ? text : argument.word.source,
        resolved: lookUp(absolute, context),
        partial: !complete,
      });
    }
  }
  return locations;
}

/** The canonical paths that an argument surely leads to. What cannot be told is not among them. */
export function pathsOf(
  argument: Argument,
  cwds: readonly (string | undefined)[],
  context: CheckContext,
  { partial = true }: { readonly partial?: boolean } = {},
): readonly ResolvedPath[] {
  const locations = locationsOf(argument, cwds, context);
  if (locations === 'foreign-home') return [];
  return locations.flatMap((one) =>
    one.resolved === undefined || (one.partial && !partial) ? [] : [one.resolved],
  );
}

function lookUp(path: string, context: CheckContext): ResolvedPath | undefined {
  try {
    return context.paths.resolve(path);
  } catch {
    return undefined;
  }
}

/** True if a command may write there, as far as places go. */
export function mayWrite(path: string, { rules }: CheckContext): boolean {
  if ([rules.workspace, ...rules.granted].some((root) => isBeneath(path, root))) return true;
  if (rules.hidden.some((root) => isBeneath(path, root))) return false;
  return rules.writable.some((root) => isBeneath(path, root));
}

/** Names that stand for files of the workspace, or of other places where commands can write. */
export function isForeignTo(context: CheckContext): IsForeign {
  return (name) => {
    const path = context.findExecutable(name, context.cwd);
    return path !== undefined && mayWrite(path, context);
  };
}

/** Cache of `useOf`, for each line that is judged. */
const meanings = new WeakMap<CheckContext, Map<SimpleCommand, Use | undefined>>();

/** How a command uses its program, by the table of programs; computed once for all checks of a line. */
export function useOf(command: SimpleCommand, context: CheckContext): Use | undefined {
  const known = meanings.get(context) ?? new Map<SimpleCommand, Use | undefined>();
  meanings.set(context, known);
  if (!known.has(command)) known.set(command, describeCommand(command, isForeignTo(context)));
  return known.get(command);
}

/** What expansions that are known beforehand stand for. */
interface KnownValues {
  readonly home: string;
  readonly cwd: string | undefined;
}

/** One thing a word may become. */
interface WordText {
  readonly text: string;
  /** False if an expansion follows of which nothing is known. */
  readonly complete: boolean;
}

const MOST_TEXTS = 64;

/**
 * What a word may become: `~` and `$HOME` resolved, braces expanded, patterns left as they are. `undefined`: it names
 * the home directory of another user.
 */
export function wordTexts(word: Word, known: KnownValues): readonly WordText[] | undefined {
  if (word.value !== undefined) return [{ text: word.value, complete: true }];
  let texts: WordText[] = [{ text: '', complete: true }];
  const append = (...suffixes: readonly string[]): void => {
    texts = texts
      .flatMap((old) =>
        old.complete ? suffixes.map((suffix) => ({ ...old, text: old.text + suffix })) : [old],
      )
      .slice(0, MOST_TEXTS);
  };
  for (const part of word.parts) {
    switch (part.kind) {
      case 'literal':
      case 'glob':
        append(part.text);
        break;
      case 'tilde':
        if (part.user === '+' && known.cwd !== undefined) append(known.cwd);
        else if (part.user === '') append(known.home);
        else return undefined;
        break;
      case 'brace':
        append(...alternatives(part.text));
        break;
      case 'parameter': {
        const value = !part.plain
          ? undefined
          : part.name === 'HOME'
            ? known.home
            : part.name === 'PWD'
              ? known.cwd
              : undefined;
        if (value !== undefined) append(value);
        else texts = texts.map((old) => ({ ...old, complete: false }));
        break;
      }
      case 'arithmetic':
      case 'command-substitution':
      case 'process-substitution':
      case 'input':
        texts = texts.map((old) => ({ ...old, complete: false }));
        break;
    }
  }
  return texts;
}

/** `{a,b}` gives `a` and `b`; nested braces and ranges stay as they are written, which no file is called. */
export function alternatives(brace: string): readonly string[] {
  if (!brace.startsWith('{') || !brace.endsWith('}')) return [brace];
  const inner = brace.slice(1, -1);
  return /[{}"'\\]/.test(inner) || !inner.includes(',') ? [brace] : inner.split(',');
}
