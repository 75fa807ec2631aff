import { dirname, join, resolve } from 'node:path';
import type { SimpleCommand, Word } from '../model/command-line.ts';
import type { Reason } from '../model/decision.ts';
import type { Versions } from '../model/surroundings.ts';
import { type Argument, inherited, type Loss, type Use } from '../programs/behaviour.ts';
import { pathUses } from '../programs/path-uses.ts';
import { isRegenerable, isRegenerableName } from '../programs/regenerable.ts';
import { asksForHelp } from '../programs/risk.ts';
import { isBeneath } from '../util/absolute-path.ts';
import { andThen, isPromise, type MaybePromise } from '../util/promise.ts';
import { type Check, type CheckContext, commandsOf, type InnerTexts, reasonFor } from './check.ts';
import {
  aliasCalledBy,
  type InnerLine,
  linesOfAlias,
  type Nesting,
  pipedInto,
  recipesRunBy,
  scriptsRunBy,
} from './inner-lines.ts';
import { directoriesOf, pathsOf, useOf } from './locations.ts';
import { isHeldBack, matchesPattern } from './own-rules.ts';
import { meaningsOf, wordValues } from './word-values.ts';

const reason = reasonFor('losses');

/**
 * The sandbox protects what is outside the workspace. Version control brings back what it knows inside. A loss that neither
 * prevents is asked about.
 */
export const lossesCheck: Check = {
  name: 'losses',
  summary:
    'contained: asks before a command deletes work in the workspace that version control does not have',
  judge: (context) => {
    // Of a preview nothing is lost: what it takes away is there until it is applied.
    // Nor of what can be taken back.
    if (context.autonomy !== 'contained' || isHeldBack(context)) return [];
    if (context.effect === 'undoable' && context.rules.undoes === true) return [];
    return judgeLine([context]);
  },
};

/** Lines that run each other are not followed further. */
const DEEPEST_LINE = 4;
/** Nor more of them: a makefile that calls make in many directories would have no end. */
const MOST_LINES = 400;
const linesJudged = new WeakMap<CheckContext, number>();

/** A line, with what runs within it: scripts whose text is known, and aliases. */
function judgeLine(nesting: Nesting): MaybePromise<readonly Reason[]> {
  const [context] = nesting;
  const commands = commandsOf(context.parsed).flatMap((command) => writtenOut(command, context));
  return together(
    commands.flatMap((command) => {
      const use = useOf(command, context);
      if (use === undefined) return [judgeOlder(command, undefined, context)];
      if (asksForHelp(use)) return [];
      // Who sent a copy of a workspace has what it was made of; what else may be written is no copy.
      const { isCopy = false, granted } = context.rules;
      return [
        isCopy && granted.length === 0 ? [] : judgeVerb(command, use, nesting),
        isCopy ? [] : [...judgeRemoval(command, use, context), ...judgeOlder(command, use, context)],
        judgeInner(command, use, nesting),
      ];
    }),
  );
}

/** All reasons, at once unless something has to be waited for. */
function together(found: readonly MaybePromise<readonly Reason[]>[]): MaybePromise<readonly Reason[]> {
  const now = found.flatMap((one) => (isPromise(one) ? [] : one));
  return found.some(isPromise) ? Promise.all(found).then((settled) => settled.flat()) : now;
}

function judgeInner(command: SimpleCommand, use: Use, nesting: Nesting): MaybePromise<readonly Reason[]> {
  const { inner } = nesting[0];
  if (inner === undefined || nesting.length > DEEPEST_LINE) return [];
  const name = aliasCalledBy(use);
  if (name !== undefined) return judgeAlias(name, command, use, nesting, inner);
  const lines = [...scriptsRunBy(command, use, nesting), ...recipesRunBy(command, use, nesting)];
  const outermost = nesting.at(-1) ?? nesting[0];
  const before = linesJudged.get(outermost) ?? 0;
  linesJudged.set(outermost, before + lines.length);
  return together(
    lines.slice(0, Math.max(0, MOST_LINES - before)).map((line) => judgeInnerLine(line, nesting, inner)),
  );
}

async function judgeAlias(
  name: string,
  command: SimpleCommand,
  use: Use,
  nesting: Nesting,
  inner: InnerTexts,
): Promise<readonly Reason[]> {
  const [context] = nesting;
  const places = directoriesFor(command, use, context).map((cwd) => cwd ?? context.rules.workspace);
  const cwds = [...new Set(places)];
  const settings = await Promise.all(cwds.map((cwd) => inner.aliasesIn(cwd)));
  const lines = linesOfAlias(use, name, nesting, settings.flat(), cwds);
  const reasons = await Promise.all(lines.map((line) => judgeInnerLine(line, nesting, inner)));
  return reasons.flat();
}

function judgeInnerLine(
  { text, cwd, of, file, isRecipe = false }: InnerLine,
  nesting: Nesting,
  inner: InnerTexts,
): MaybePromise<readonly Reason[]> {
  const [context] = nesting;
  const { versions } = context;
  const isCommitted = file !== undefined && versions?.keeps(file) === true;
  const parsed = inner.parse(text);
  // What a person committed as a recipe may delete what they have git ignore: it is made by other recipes.
  const line = {
    ...{ ...context, parsed, text, cwd },
    ...(isRecipe && isCommitted && versions !== undefined ? { versions: withoutIgnored(versions) } : {}),
  };
  const told = (reasons: readonly Reason[]) =>
    reasons
      // Of what a person committed, and of what is known in part, only what is sure is asked about.
      .filter(({ code }) => !(isCommitted || isRecipe) || code !== 'may_delete')
      .map((one) => ({ ...one, message: `${one.message} (in ${of})` }));
  return andThen(judgeLine([line, ...nesting]), told);
}

function withoutIgnored(versions: Versions): Versions {
  return {
    ...versions,
    lostWith: (path, counts = () => true) =>
      versions.lostWith(path, (one, isDirectory) => !versions.ignores(one) && counts(one, isDirectory)),
  };
}

/**
 * `remove='rm -rf'; $remove notes`: what runs, where the line itself says it. Each word of a value could be the program, and
 * where there is none the next word is: `sudo=; $sudo rm notes`.
 */
function writtenOut(command: SimpleCommand, context: CheckContext): readonly SimpleCommand[] {
  const [first, ...others] = command.words;
  if (first === undefined || first.value !== undefined) return [command];
  const values = wordValues(first, command, context);
  const programs = values.filter(({ value }) => value !== '');
  const without = programs.length < values.length ? writtenOut({ ...command, words: others }, context) : [];
  return [
    ...programs.map((_, at) => ({ ...command, words: [...programs.slice(at), ...others] })),
    ...without,
  ];
}

/** `git reset --hard`, `git clean -f`: rows of the table say what they throw away. */
function judgeVerb(command: SimpleCommand, use: Use, nesting: Nesting): readonly Reason[] {
  const [context] = nesting;
  const loss = inherited(use, 'loses')?.(use);
  if (loss === undefined) return [];
  const words = [[use.program.name, ...use.verbs].join(' ')];
  // What the others do to the index and to files decides what is not tracked when this one runs.
  const isAlways = loss.what === 'always' || (loss.what === 'untracked' && !isAlone(command, nesting));
  if (isAlways) return [reason('ask', 'loses', `${words[0]} ${loss.message}`, ...words)];
  const cwds = directoriesFor(command, use, context);
  const lost = cwds.flatMap((cwd) => {
    const from = context.paths.resolve(cwd ?? context.rules.workspace).canonical;
    const paths = loss.paths === undefined ? [undefined] : placesOf(loss.paths, [from], context);
    return paths.flatMap((path) => lostFrom(from, path, loss.what, context) ?? []);
  });
  const [first] = lost;
  return first === undefined
    ? []
    : [reason('ask', 'loses', `${words[0]} ${loss.message}: ${inWorkspace(first, context)}`, ...words)];
}

/** Nothing but `cd` runs beside it. */
function isAlone(command: SimpleCommand, [context, ...outer]: Nesting): boolean {
  const others = commandsOf(context.parsed).filter((one) => one !== command);
  return (
    outer.length === 0 &&
    context.parsed.understood &&
    others.every((one) => useOf(one, context)?.program.name === 'cd')
  );
}

/** The first file that such a loss takes something from. */
function lostFrom(
  from: string,
  path: string | undefined,
  what: Loss['what'],
  { versions, rules: { workspace } }: CheckContext,
): string | undefined {
  switch (what) {
    case 'untracked': {
      const at = path ?? from;
      const counts = (file: string) => file !== join(at, '.git') && !isRegenerable(file, workspace);
      // Without version control nothing is tracked.
      return versions === undefined ? at : versions.lostWith(at, counts);
    }
    case 'staged': {
      const since = versions?.changedSinceStop(from, false);
      return since?.stopped === true ? since.file : versions?.stagedIn(from);
    }
    case 'stopped':
    case 'stopped-changes':
      return versions?.changedSinceStop(from, what === 'stopped-changes').file;
    default:
      return versions?.changedFrom(from, path, what === 'unstaged');
  }
}

/**
 * What version control has, put over what was changed since: `git show HEAD:f > f`, `git archive HEAD f | tar x`; or
 * differences that are applied the other way round: `git diff | git apply -R`.
 */
function judgeOlder(command: SimpleCommand, use: Use | undefined, context: CheckContext): readonly Reason[] {
  const printing = commandsOf(context.parsed).flatMap((one) => {
    const other = useOf(one, context);
    const kind = other && inherited(other, 'printsVersions')?.(other);
    return kind !== undefined && (one === command || feeds(one, command, context)) ? [{ one, kind }] : [];
  });
  if (printing.length === 0) return [];
  const cwds = directoriesOf(command, context);
  const direction = use && inherited(use, 'patches')?.(use);
  const lost = printing.flatMap(({ one, kind }) => {
    if (kind !== 'files') {
      const isBack = direction !== undefined && (direction === 'reverse') !== kind.isReverse;
      if (!isBack || isKeptByLine(one, context)) return [];
      const froms = cwds.map((cwd) => context.paths.resolve(cwd ?? context.rules.workspace).canonical);
      return froms.flatMap((from) => lostFrom(from, undefined, kind.what, context) ?? []);
    }
    const written = pathUses(command, use).filter(({ effect }) => effect === 'writes');
    const places = placesOf(
      written.map(({ argument }) => argument),
      cwds,
      context,
    );
    // What unpacks to where it stands names no path.
    const unpacks = use !== undefined && places.length === 0 && inherited(use, 'unpacks')?.(use) === true;
    const all = unpacks ? cwds.map((cwd) => cwd ?? context.rules.workspace) : places;
    return all.flatMap((path) =>
      context.versions?.lostWith(path) === undefined
        ? []
        : (context.versions.changedFrom(unpacks ? path : dirname(path), path, true) ?? []),
    );
  });
  const [first] = lost;
  if (first === undefined) return [];
  const name = use?.program.name ?? command.redirects[0]?.target.source ?? '';
  const message = `${name} would put an older version over changes that are not committed: ${inWorkspace(first, context)}`;
  return [reason('ask', 'loses', message, name)];
}

/** Whether what one command prints comes to another: through a pipe, a substitution, or a file. */
function feeds(one: SimpleCommand, other: SimpleCommand, context: CheckContext): boolean {
  const before = pipedInto(other, context);
  if (before !== undefined && (before === one || feeds(one, before, context))) return true;
  if (one.span.start > other.span.start && one.span.end < other.span.end) return true;
  if (one.span.start >= other.span.start) return false;
  const places = (command: SimpleCommand, effects: readonly string[]) =>
    placesOf(
      pathUses(command, useOf(command, context)).flatMap(({ argument, effect }) =>
        effects.includes(effect) ? [argument] : [],
      ),
      directoriesOf(command, context),
      context,
    );
  const written = places(one, ['writes']);
  // `patch` reads and changes the files that it is given.
  return places(other, ['reads', 'removes', 'writes']).some((path) => written.includes(path));
}

/** Whether differences stay in a file of the workspace, from which they can be applied again. */
function isKeptByLine(command: SimpleCommand, context: CheckContext): boolean {
  const { workspace } = context.rules;
  const written = pathUses(command, useOf(command, context)).filter(({ effect }) => effect === 'writes');
  const places = placesOf(
    written.map(({ argument }) => argument),
    directoriesOf(command, context),
    context,
  );
  const gone = removedPlaces(command, context);
  return places.some((path) => isBeneath(path, workspace) && !gone.some((one) => isBeneath(path, one)));
}

function judgeRemoval(command: SimpleCommand, use: Use, context: CheckContext): readonly Reason[] {
  const { workspace } = context.rules;
  const removed = [...removedBy(use), ...movedOut(command, use, context)].flatMap((argument) =>
    meaningsOf(argument, command, context),
  );
  const cwds = directoriesFor(command, use, context);
  const lost = placesOf(removed, cwds, context).flatMap((path) =>
    isBeneath(path, workspace) && !isRegenerable(path, workspace)
      ? (context.versions?.lostWith(path) ?? [])
      : [],
  );
  const reasons = lost.map((path) => {
    const shown = inWorkspace(path, context);
    const message = `${use.program.name} would delete ${shown}, which version control cannot restore`;
    return reason('ask', 'deletes', message, shown);
  });
  if (reasons.length > 0) return reasons;
  for (const { word } of removed) {
    const path = perhapsLost(word, cwds, context);
    if (path === undefined) continue;
    const shown = inWorkspace(path, context);
    const unknown =
      word.value === undefined ? `what ${word.source || 'its input'} stands for` : `where ${word.source} is`;
    const message = `${use.program.name} may delete ${shown}, which version control cannot restore: ${unknown} is known only when it runs`;
    return [reason('ask', 'may_delete', message, word.source)];
  }
  return [];
}

/** What is gone afterwards. */
function removedBy(use: Use): readonly Argument[] {
  if (inherited(use, 'operands') !== 'removes' || inherited(use, 'keeps')?.(use) === true) return [];
  return use.operands;
}

/**
 * What is moved to where it does not stay: out of the workspace, to a place that is deleted with the command
 * (`mv notes.txt /tmp/`), or into what the line removes (`mv notes dist; rm -rf dist`).
 */
function movedOut(command: SimpleCommand, use: Use, context: CheckContext): readonly Argument[] {
  // `git mv` moves within its repository.
  if (use.program.operands !== 'moves-then-writes') return [];
  const targetOptions = use.program.targetOptions?.split(' ') ?? [];
  const into = use.options.find(({ name }) => targetOptions.includes(name))?.value;
  const to = into ?? use.operands.at(-1);
  const meanings = to === undefined ? [] : meaningsOf(to, command, context);
  const places = placesOf(meanings, directoriesOf(command, context), context);
  const leaves =
    to !== undefined &&
    // `mv notes "$(mktemp -d)"`.
    (meanings.length === 0 ||
      /^"?\$\{?TMPDIR\b/.test(to.word.source) ||
      places.some((path) => !isBeneath(path, context.rules.workspace)) ||
      removedPlaces(command, context).some((gone) =>
        places.some((path) => isBeneath(path, gone) || isBeneath(gone, path)),
      ));
  return leaves ? use.operands.filter((one) => one !== to) : [];
}

/** What the others of its line remove, as far as that is known. */
function removedPlaces(command: SimpleCommand, context: CheckContext): readonly string[] {
  return commandsOf(context.parsed).flatMap((other) => {
    const use = other === command ? undefined : useOf(other, context);
    const removed = use === undefined ? [] : removedBy(use);
    const meanings = removed.flatMap((argument) => meaningsOf(argument, other, context));
    return placesOf(meanings, directoriesOf(other, context), context);
  });
}

/**
 * The directories in which its words are paths, `undefined` for one that is not known: `git -C DIR` goes there first, and may
 * name its repository.
 */
function directoriesFor(
  command: SimpleCommand,
  use: Use,
  context: CheckContext,
): readonly (string | undefined)[] {
  const { moves = [], named = [] } = use.program.repository?.(use) ?? {};
  const go = (cwds: readonly (string | undefined)[], word: Argument): readonly (string | undefined)[] => {
    const meanings = meaningsOf(word, command, context);
    const places = placesOf(meanings, cwds, context);
    return meanings.every(({ complete }) => complete) ? places : [...places, undefined];
  };
  const cwds = moves.reduce(go, directoriesOf(command, context));
  if (named.length === 0) return cwds;
  const roots = named.flatMap((word) => go(cwds, word)).map((path) => path?.replace(/\/\.git$/, ''));
  // The one is a repository, the other a working tree, and either may be that of the workspace.
  return [...new Set([...cwds, ...roots, undefined])];
}

/** Where words lead that are known; what a program gets from elsewhere is not asked about, as code is not. */
function placesOf(
  words: readonly Argument[],
  cwds: readonly (string | undefined)[],
  context: CheckContext,
): readonly string[] {
  return words.flatMap((word) =>
    pathsOf(word, cwds, context, { partial: false }).map(({ canonical }) => canonical),
  );
}

function inWorkspace(path: string, { rules: { workspace } }: CheckContext): string {
  return isBeneath(path, workspace) && path !== workspace ? path.slice(workspace.length + 1) : path;
}

/*
 * What a command takes away whose words say it only when it runs: `rm "$f"`, `xargs rm`.
 */

/** Stands for what is not known in the text of a word. */
const UNKNOWN = '\0';

/**
 * The first file of the workspace that would be lost if it is what a word stands for that is known only when it runs.
 * `cwds`: where the command may run.
 */
function perhapsLost(
  word: Word,
  cwds: readonly (string | undefined)[],
  context: CheckContext,
): string | undefined {
  const { workspace } = context.rules;
  const shape = word.parts.map((part, index) => shapeOf(part, index === 0, context)).join('');
  const names = shape.split('/');
  const isNew = names
    .slice(names.lastIndexOf('..') + 1)
    .some((name) => isRegenerableName(name.replaceAll(UNKNOWN, '*')));
  if (isNew) return undefined;
  for (const cwd of shape.startsWith('/') ? ['/'] : cwds) {
    if (cwd !== undefined && !shape.includes(UNKNOWN)) continue;
    const known = shape.slice(0, shape.indexOf(UNKNOWN));
    const prefix = shape.includes(UNKNOWN) ? known.slice(0, known.lastIndexOf('/') + 1) : '';
    const isAnywhere = cwd === undefined || shape.startsWith(UNKNOWN);
    const directory = isAnywhere ? workspace : context.paths.resolve(resolve(cwd, prefix)).canonical;
    const isInside = isBeneath(directory, workspace);
    if (!isInside && !isBeneath(workspace, directory)) continue;
    const rest = isAnywhere ? shape : shape.slice(prefix.length);
    const isDeeper = isAnywhere || rest.startsWith(`${UNKNOWN}/`) || rest.includes('/../');
    const pattern = patternFor(isDeeper ? belowAnywhere(rest) : rest);
    const patterns = [pattern, `${pattern}/*`].flatMap((one) => (isDeeper ? [one, `*/${one}`] : [one]));
    const lost = context.versions?.lostWith(isInside ? directory : workspace, (path, isDirectory) => {
      const name = path.slice(path.lastIndexOf('/') + 1);
      if (path !== workspace && (name === '.git' || isRegenerableName(name))) return false;
      const inside = path.slice(directory.length).replace(/^\//, '');
      return isDirectory || patterns.some((one) => matchesPattern(inside, one));
    });
    if (lost !== undefined) return lost;
  }
  return undefined;
}

function shapeOf(part: Word['parts'][number], isFirst: boolean, { rules }: CheckContext): string {
  if (part.kind === 'literal' || part.kind === 'glob') return part.text;
  if (part.kind === 'tilde' && part.user === '') return rules.home;
  // The command's own directory for what it does not keep.
  if (isFirst && part.kind === 'parameter' && part.name === 'TMPDIR') return '/tmp';
  if (part.kind === 'parameter' && part.plain && part.name === 'HOME') return rules.home;
  return UNKNOWN;
}

/** What is known of it once it may have led to any directory, or to none: `$x/notes`, `$x/../notes`, `./$x/notes`. */
function belowAnywhere(shape: string): string {
  return shape.replace(/^(?:.*\/)?\.\.(?:\/|$)/s, '').replace(/^(?:[.\0]\/+)+/, '') || UNKNOWN;
}

/** As `matchesPattern` takes it: what is not known may be anything, and so may what a pattern of the shell matches. */
function patternFor(shape: string): string {
  const bare = shape.replace(/^(?:\.\/)+|\/+$/g, '');
  return bare.replace(/(?:\0|\*|\?|\[[^\]]*\])+/g, '*');
}
