import type { SimpleCommand } from '../model/command-line.ts';
import type { Reason } from '../model/decision.ts';
import { isBeneath } from '../util/absolute-path.ts';
import type { CheckContext } from './checks/check.ts';
import { directoriesOf, isForeignTo, locationsOf, mayWrite } from './checks/locations.ts';
import { commandsOf } from './checks/reasons.ts';
import { describeCommand } from './commands/describe.ts';
import { pathUses } from './commands/path-uses.ts';
import { argumentOf } from './commands/use.ts';

/** What one line would touch, as far as its words tell. The kernel knows the rest only when it happens. */
export interface CommandEffects {
  readonly parts: readonly PartOfLine[];
  /** Canonical paths, each once. */
  readonly reads: readonly string[];
  readonly writes: readonly string[];
  readonly executes: readonly string[];
}

/** One simple command of a line. */
export interface PartOfLine {
  readonly source: string;
  /** Canonical; `undefined`: a builtin, a function, or nothing that was found. */
  readonly executable: string | undefined;
  /** Canonical paths of files that it names and that commands can change: a script, a settings file. */
  readonly files: readonly string[];
  /** What the checks said about words of it. */
  readonly remarks: readonly string[];
}

/** More files than that no person looks through. */
const MOST_FILES = 256;

/** Looks at every simple command of a line; a line that was not understood shows what was recognised. */
export function effectsOf(
  context: CheckContext,
  reasons: readonly Reason[],
  source: string | undefined,
): CommandEffects {
  const isForeign = isForeignTo(context);
  const touched = { reads: new Set<string>(), writes: new Set<string>(), executes: new Set<string>() };
  const parts = commandsOf(context.parsed).map((command): PartOfLine => {
    const cwds = directoriesOf(command, context);
    for (const use of pathUses(command, describeCommand(command, isForeign))) {
      const locations = locationsOf(use.argument, cwds, context);
      if (locations === 'foreign-home') continue;
      const paths = locations.flatMap(({ resolved }) => (resolved === undefined ? [] : [resolved.canonical]));
      for (const path of paths) touched[use.effect === 'reads' ? 'reads' : 'writes'].add(path);
    }
    const name = command.words[0]?.value;
    const [cwd] = cwds;
    const executable =
      name === undefined || name === '' || command.callsFunction === true || cwd === undefined
        ? undefined
        : context.findExecutable(name, cwd);
    if (executable !== undefined) touched.executes.add(executable);
    return {
      source: sourceOf(command, source),
      executable,
      files: changeableFiles(command, cwds, context),
      remarks: remarksOn(command, reasons),
    };
  });
  return {
    parts,
    reads: [...touched.reads],
    writes: [...touched.writes],
    executes: [...touched.executes],
  };
}

function sourceOf({ span, words, runBy }: SimpleCommand, source: string | undefined): string {
  // What a runner starts has the place of the runner's text.
  if (source === undefined || runBy !== undefined) return words.map((word) => word.source).join(' ');
  return source.slice(span.start, span.end);
}

function changeableFiles(
  command: SimpleCommand,
  cwds: readonly (string | undefined)[],
  context: CheckContext,
): readonly string[] {
  const found = new Set<string>();
  for (const word of command.words.slice(1, MOST_FILES)) {
    if (word.value === undefined) continue;
    // `--file=build.mk` names one too.
    const equals = word.value.startsWith('-') ? word.value.indexOf('=') + 1 : 0;
    if (word.value.startsWith('-') && equals === 0) continue;
    const locations = locationsOf(argumentOf(word, equals), cwds, context);
    if (locations === 'foreign-home') continue;
    for (const { resolved } of locations) {
      if (resolved?.kind === 'other' && mayWrite(resolved.canonical, context)) found.add(resolved.canonical);
    }
  }
  return [...found];
}

function remarksOn(command: SimpleCommand, reasons: readonly Reason[]): readonly string[] {
  const words = new Set(command.words.map((word) => word.source));
  const name = command.words[0]?.value;
  return reasons
    .filter((reason) => reason.words.some((word) => words.has(word) || word === name))
    .map((reason) => reason.message);
}

/** The first path of `reads` that is secret, or leads to something secret: a directory around it. */
export function secretAmong(reads: readonly string[], secrets: readonly string[]): string | undefined {
  return reads.find((path) => secrets.some((secret) => isBeneath(path, secret) || isBeneath(secret, path)));
}
