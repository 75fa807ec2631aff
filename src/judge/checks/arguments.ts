import { directoriesBetween } from '../../base/absolute-path.ts';
import { assertNever } from '../../base/assert-never.ts';
import type { ResolvedPath } from '../../confine/plan/path-lookup.ts';
import type { Reason, SimpleCommand, Verdict } from '../../model/index.ts';
import {
  type Argument,
  type Finding,
  inherited,
  levelsOf,
  type RepositoryWanted,
  type Use,
} from '../programs/behaviour.ts';
import { grammarOf } from '../programs/grammars.ts';
import { optionTable } from '../programs/options.ts';
import { asksForHelp, findingsOf } from '../programs/risk.ts';
import { type Check, type CheckContext, commandsOf, holdsUnseenCode, reasonFor } from './check.ts';
import { aliasCalledBy } from './inner-lines.ts';
import { directoriesOf, locationsOf, pathsOf, useOf } from './locations.ts';

const reason = reasonFor('arguments');

/** How strictly arguments are read. `contained`: not at all, as whatever they make a program do is held. */
type Mode = 'allow-list' | 'supervised' | 'autonomous' | 'contained';

/** Flags and scripts of programs do not run, write or load what was not asked for. */
export const argumentsCheck: Check = {
  name: 'arguments',
  summary:
    'asks about options that run programs; under an allow-list, refuses options that the tables do not have',
  judge: (context) => {
    const mode: Mode =
      context.rules.allow !== undefined
        ? 'allow-list'
        : holdsUnseenCode(context)
          ? 'contained'
          : context.autonomy === 'autonomous'
            ? 'autonomous'
            : 'supervised';
    if (mode === 'contained') return [];
    return commandsOf(context.parsed).flatMap((command) => {
      const use = useOf(command, context);
      return use === undefined || (mode !== 'allow-list' && asksForHelp(use))
        ? []
        : judgeUse(command, use, mode, context);
    });
  },
};

function judgeUse(command: SimpleCommand, use: Use, mode: Mode, context: CheckContext): readonly Reason[] {
  const { name } = use.program;
  const reasons: Reason[] = [];
  const strict = mode === 'allow-list';
  const findings = strict
    ? [...findingsOf(use), ...(inherited(use, 'strict')?.(use) ?? [])]
    : findingsOf(use);
  for (const found of findings) {
    const verdict = verdictOf(found, mode, use);
    if (verdict !== undefined)
      reasons.push(reason(verdict, found.code, `${name} ${found.message}`, ...found.words));
  }
  const isSharp = isPowerful(use);
  if (strict || (mode === 'supervised' && isSharp)) {
    const verdict = strict ? 'deny' : 'ask';
    for (const { source } of use.unknown) {
      reasons.push(
        reason(verdict, 'unknown_option', `${name} has no option ${source} in the tables`, source),
      );
    }
    // `cat *`: whatever option a file has the name of, no option of cat does more than to print otherwise.
    for (const { source } of isSharp || !hasPlainOptions(use) ? use.openEnded : []) {
      reasons.push(
        reason(
          verdict,
          'dynamic_option',
          `${source} may become an option of ${name}; put -- before it, or ./`,
          source,
        ),
      );
    }
  }
  const alias = strict ? aliasCalledBy(use) : undefined;
  if (alias !== undefined)
    reasons.push(
      reason('deny', 'alias', `${name} has no verb ${alias} in the tables: it may be an alias`, alias),
    );
  const wanted = mode !== 'autonomous' ? inherited(use, 'repository')?.(use) : undefined;
  if (wanted !== undefined) {
    const nested = nestedRepository(command, wanted, context);
    if (nested !== undefined) {
      reasons.push(
        reason(
          strict ? 'deny' : 'ask',
          'nested_repository',
          `${name} would obey the settings of another repository: ${nested}`,
          nested,
        ),
      );
    }
  }
  if (
    strict &&
    inherited(use, 'followsLinks')?.(use, (argument) => isDirectory(argument, command, context)) === true
  )
    reasons.push(
      reason(
        'deny',
        'follows_links',
        `${name} would follow links in directories, also out of the workspace`,
        command.words.map(({ source }) => source).join(' '),
      ),
    );
  const wantsInput = strict && !isFed(command, context) ? inherited(use, 'wantsInput')?.(use) : undefined;
  if (wantsInput !== undefined) reasons.push(reason('deny', 'arguments', `${name} ${wantsInput}`));
  const wantsFiles = strict ? inherited(use, 'wantsFiles')?.(use) : undefined;
  if (wantsFiles !== undefined)
    reasons.push(
      ...directoriesAmong(command, use, context).map((source) =>
        reason('deny', 'arguments', `${name} ${wantsFiles}: ${source}`, source),
      ),
    );
  return reasons;
}

function verdictOf(found: Finding, mode: Mode, use: Use): Verdict | undefined {
  switch (found.effect) {
    case 'executes':
      // No check sees what it runs, so a person has to look at it in every mode.
      return mode === 'allow-list' ? 'deny' : 'ask';
    case 'loads':
      // Code from a file, as every interpreter runs it.
      return mode === 'allow-list' ? 'deny' : mode === 'supervised' ? 'ask' : undefined;
    case 'writes':
      // Where to is the business of `paths`.
      return mode === 'allow-list' && !(use.program.editsListed === true && found.code === 'writes_by_option')
        ? 'deny'
        : undefined;
    case 'removes':
    case 'network':
      return mode === 'allow-list' ? 'deny' : undefined;
    case 'invalid':
      return mode === 'allow-list' ? 'deny' : mode === 'supervised' ? 'ask' : undefined;
    case 'reads':
      if (found.code !== 'secret') return undefined;
      return mode === 'allow-list' ? 'deny' : mode === 'supervised' ? 'ask' : undefined;
    default:
      return assertNever(found.effect);
  }
}

/** True if flags of the program, or of its verb, can execute, write or load something. */
function isPowerful(use: Use): boolean {
  return levelsOf(use).some((level) => {
    const grammar = grammarOf(level);
    return level.inspect !== undefined || (grammar !== undefined && optionTable(grammar).powerful);
  });
}

/** Something is piped into it, or given to it by a redirect. */
function isFed({ redirects, span }: SimpleCommand, { text }: CheckContext): boolean {
  return (
    redirects.some(({ operator, descriptor }) => operator.startsWith('<') && (descriptor ?? 0) === 0) ||
    /[^|]\|&?\s*$/.test(text.slice(0, span.start))
  );
}

/** True if the tables have all its options, and none of them names a file that is read. */
function hasPlainOptions(use: Use): boolean {
  return (
    use.program.unlisted !== true &&
    levelsOf(use)
      .map(grammarOf)
      .every((grammar) => grammar?.open !== true && grammar?.reads === undefined)
  );
}

/** A program that takes files only fails with these, and something else was meant. */
function directoriesAmong(command: SimpleCommand, use: Use, context: CheckContext): readonly string[] {
  return use.operands
    .slice(0, -1)
    .filter((argument) => isDirectory(argument, command, context))
    .map(({ word }) => word.source);
}

function isDirectory(argument: Argument, command: SimpleCommand, context: CheckContext): boolean {
  const cwds = directoriesOf(command, context);
  return pathsOf(argument, cwds, context).some(({ kind }) => kind === 'directory');
}

/**
 * The directory in which a repository other than that of the workspace would be found: its settings are not protected
 * and may name programs (pager, fsmonitor, textconv). `undefined`: there is none.
 */
function nestedRepository(
  command: SimpleCommand,
  { itself, moves }: RepositoryWanted,
  context: CheckContext,
): string | undefined {
  // A repository without a folder `.git`: the settings are a file of the work tree itself.
  if (itself) return '--bare';
  const cwds = directoriesOf(command, context);
  if (moves.length > 1) return moves.map(({ word }) => word.source).join(' ');
  const [move] = moves;
  if (move !== undefined) {
    const locations = locationsOf(move, cwds, context);
    if (locations === 'foreign-home' || locations.length === 0) return move.word.source;
    for (const { resolved, partial } of locations) {
      if (partial || resolved?.kind !== 'directory' || holdsRepository(resolved.canonical, context)) {
        return move.word.source;
      }
    }
    return undefined;
  }
  for (const cwd of cwds) {
    if (cwd === undefined) return command.words[0]?.source;
    if (cwd === context.rules.workspace) continue;
    // A directory that does not exist yet, or no longer: whatever will be there then.
    if (kindOf(cwd, context) !== 'directory' || holdsRepository(cwd, context)) return cwd;
  }
  return undefined;
}

/** True if a directory, or one between it and the workspace, is a repository of its own, with or without a work tree. */
function holdsRepository(directory: string, context: CheckContext): boolean {
  return [directory, ...directoriesBetween(directory, context.rules.workspace)].some(
    (path) =>
      path !== context.rules.workspace &&
      (kindOf(`${path}/.git`, context) !== 'missing' || kindOf(`${path}/HEAD`, context) !== 'missing'),
  );
}

/** What cannot be looked up may be a repository. */
function kindOf(path: string, { paths }: CheckContext): ResolvedPath['kind'] {
  try {
    const { kind, unknown } = paths.resolve(path);
    return unknown === undefined ? kind : 'other';
  } catch {
    return 'other';
  }
}
