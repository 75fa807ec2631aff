import { dirname, join, resolve } from 'node:path';
import { innermostAround, isBeneath } from '../../base/absolute-path.ts';
import { andThen, isPromise, type MaybePromise } from '../../base/promise.ts';
import {
  BESIDE,
  isLoss,
  literalWord,
  type Reason,
  type SimpleCommand,
  type Versions,
  type Word,
} from '../../model/index.ts';
import { type Argument, inherited, type Loss, type Use } from '../programs/behaviour.ts';
import { pathUses } from '../programs/path-uses.ts';
import { isRegenerable, isRegenerableName } from '../programs/regenerable.ts';
import { asksForHelp } from '../programs/risk.ts';
import { type Check, type CheckContext, commandsOf, type InnerTexts, reasonFor } from './check.ts';
import {
  aliasCalledBy,
  type InnerLine,
  linesOfAlias,
  linesOfVariables,
  type Nesting,
  pipedInto,
  recipesRunBy,
  scriptsRunBy,
} from './inner-lines.ts';
import { directoriesOf, pathsOf, useOf, wordTexts } from './locations.ts';
import { passLinks, reachedByLinks } from './made-links.ts';
import { isHeldBack, matchesPattern } from './own-rules.ts';
import { meaningsOf, wordValues } from './word-values.ts';

const reason = reasonFor('losses');
/** In what the policy made writable beside the workspace, which no undo covers: it leaves what the sandbox can bring back. */
const outside = reasonFor('leaves');

/** Whether a path is outside the workspace, in a granted writable directory. In other places outside, nothing can be lost. */
const isGrantedBeside = (path: string, { workspace, granted }: CheckContext['rules']): boolean =>
  !isBeneath(path, workspace) && innermostAround(path, granted) !== undefined;

/** A question about a file that would be lost. */
const lossOf = (
  path: string,
  code: string,
  message: string,
  words: readonly string[],
  { rules }: CheckContext,
): Reason =>
  !isGrantedBeside(path, rules)
    ? reason('ask', code, message, ...words)
    : outside('ask', `${code}${BESIDE}`, message, ...words);

/** The file to ask about: the first one that undo cannot restore, else the first one. */
const mostLost = (paths: readonly string[], { rules }: CheckContext): string | undefined =>
  paths.find((path) => isGrantedBeside(path, rules)) ?? paths[0];

/**
 * The sandbox protects what is outside the workspace. Version control brings back what it knows inside. A loss that neither
 * prevents is asked about.
 */
export const lossesCheck: Check = {
  name: 'losses',
  summary:
    'contained: asks before a command deletes work in the workspace that version control does not have, unless undo brings it back; at every level, such a command is approved for once only',
  judge: (context) => {
    if (context.autonomy === 'readonly') return [];
    if (isCovered(context) && context.rules.granted.length === 0) return [];
    const found = andThen(judgeLine([context]), (reasons) => {
      const isBeside = ({ code }: Reason) => code.endsWith(BESIDE);
      const all = [...reasons, ...takesIn(reasons, context)];
      // The first reason is shown: it is the one that undo does not cover.
      return [...all.filter(isBeside), ...all.filter((one) => !isBeside(one))];
    });
    if (context.autonomy === 'contained') return found;
    // No reason to ask; but an answer to a question for another reason is good for once only.
    return andThen(found, (reasons) => reasons.map((one) => ({ ...one, verdict: undefined })));
  },
};

/** What a command took away and changed in the workspace, as absolute paths. */
export interface Taken {
  readonly deleted: readonly string[];
  readonly changed: readonly string[];
}

/** The part of `Taken` that cannot be restored otherwise; `history`: it includes commits or stashes of git. */
export interface Lost extends Taken {
  readonly history: boolean;
}

/**
 * Of what a command took away and changed, what version control would not bring back; to be asked while the workspace is still
 * as it was. What tools make anew is not lost, nor is what commands made. A changed file counts only if the line puts an older
 * version in its place: an edit loses nothing.
 */
export function lostAmong(
  { deleted, changed }: Taken,
  reasons: readonly Reason[],
  context: CheckContext,
): Lost {
  const { versions, rules } = context;
  const isReplaced = reasons.some(({ check, code }) => check === lossesCheck.name && code === 'loses');
  let history = isReplaced && deleted.some((path) => /\/\.git\/(?:refs|logs|objects)\//.test(path));
  const counts = (path: string, isDirectory: boolean) => {
    if (isDirectory && path.endsWith('/.git')) history = true;
    return !/\/\.git(?:\/|$)/.test(path) && !isRegenerable(path, rules.workspace);
  };
  const lost = (paths: readonly string[]) =>
    paths.flatMap((path) => versions?.allLostWith(path, counts) ?? []);
  return { deleted: lost(deleted), changed: isReplaced ? lost(changed) : [], history };
}

/**
 * True if work in the workspace is not lost: a preview keeps it until it is applied, undo brings it back, or the workspace is a
 * copy of what its sender has. It says nothing of what the policy made writable beside the workspace.
 */
const isCovered = (context: CheckContext): boolean =>
  context.rules.isCopy === true ||
  isHeldBack(context) ||
  (context.effect === 'undoable' && context.rules.undoes === true);

/** True if nothing is lost with a path; `undefined`: it is not known. */
const isSafe = (path: string | undefined, context: CheckContext): boolean =>
  path !== undefined && isBeneath(path, context.rules.workspace) && isCovered(context);

/** The directory in which removing a path counts as a loss: the workspace, or a writable directory beside it. `undefined`: it is no loss. */
const lossRoot = (path: string, context: CheckContext): string | undefined =>
  isSafe(path, context)
    ? undefined
    : innermostAround(path, [context.rules.workspace, ...context.rules.granted]);

/**
 * All files that go with removed paths (or patterns of them), of those that the reasons are about: a reason names the first one of
 * each. Canonical.
 */
export function filesLost(
  removed: readonly string[],
  reasons: readonly Reason[],
  context: CheckContext,
): readonly string[] {
  const named = new Set(reasons.filter(isLoss).flatMap(({ words }) => words));
  const { versions } = context;
  if (versions === undefined || named.size === 0) return [];
  const lost = removed.flatMap((path) => {
    const files: string[] = [];
    versions.lostWith(path, (file, isDirectory) => {
      if (!isDirectory) files.push(file);
      return isDirectory;
    });
    const gone = files.filter((file) => versions.lostWith(file) !== undefined);
    return gone.some((file) => named.has(inWorkspace(file, context))) ? gone : [];
  });
  return [...new Set(lost)].sort((one, other) => one.localeCompare(other, 'en', { numeric: true }));
}

/** Lines that run each other are not followed further. */
const DEEPEST_LINE = 4;
/** Inner lines that are judged at most for one request: a makefile may call make in many directories. */
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
      return [
        judgeVerb(command, use, nesting),
        [...judgeRemoval(command, use, context), ...judgeOlder(command, use, context)],
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
  const lines = [scriptsRunBy, linesOfVariables, recipesRunBy].flatMap((of) => of(command, use, nesting));
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
  // A committed recipe may delete files that git ignores: other recipes make them again.
  const line = {
    ...{ ...context, parsed, text, cwd },
    ...(isRecipe && isCommitted && versions !== undefined ? { versions: withoutIgnored(versions) } : {}),
  };
  passLinks(context, line);
  const told = (reasons: readonly Reason[]) =>
    reasons
      // In committed scripts, and in recipes, which are known only in part, only certain losses are asked about.
      .filter(({ code }) => !(isCommitted || isRecipe) || !code.startsWith('may_delete'))
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
  const cwds = directoriesFor(command, use, context);
  const what = `${words[0]} ${loss.message}`;
  if (isAlways)
    return [
      mayReachOutside(loss, command, use, context)
        ? outside('ask', `loses${BESIDE}`, what, ...words)
        : reason('ask', 'loses', what, ...words),
    ];
  const lost = cwds.flatMap((cwd) => {
    const from = context.paths.resolve(cwd ?? context.rules.workspace).canonical;
    const paths = loss.paths === undefined ? [undefined] : placesOf(loss.paths, [from], context);
    return paths.flatMap((path) =>
      isSafe(path ?? (cwd && from), context) ? [] : (lostFrom(from, path, loss.what, context) ?? []),
    );
  });
  const first = mostLost(lost, context);
  if (first === undefined) return isElsewhere(context) ? [reason(undefined, 'loses', what, ...words)] : [];
  const message = `${what}: ${inWorkspace(first, context)}`;
  if (mayReachOutside(loss, command, use, context))
    return [outside('ask', `loses${BESIDE}`, message, ...words)];
  return [lossOf(first, 'loses', message, words, context)];
}

/**
 * Whether a loss may be in what commands can write outside of the workspace, which no layer covers. Undo puts back the index of the
 * repository that the workspace is a part of, and nothing else of git's that lies outside.
 */
function mayReachOutside(
  { what, repository, staysBeneath }: Loss,
  command: SimpleCommand,
  use: Use,
  context: CheckContext,
): boolean {
  const { granted, gitOutside } = context.rules;
  if (granted.length === 0) return false;
  const cwds = directoriesFor(command, use, context);
  if (repository === undefined)
    return (
      what === 'always' &&
      granted.some((path) => path !== gitOutside) &&
      !(staysBeneath === true && staysWithin(command, use, cwds, context))
    );
  return cwds.some((cwd) => {
    const from = cwd && context.paths.resolve(cwd).canonical;
    if (from === undefined || !isBeneath(from, context.rules.workspace)) return true;
    if (repository === 'nowhere') return false;
    const place = placeOfGit(from, context);
    if (place !== 'own') return place === 'beside';
    return repository === 'history' || context.versions?.changedSinceStop(from, false).stopped === true;
  });
}

/** Whether all paths of a command are known, and in the workspace. */
function staysWithin(
  command: SimpleCommand,
  use: Use,
  cwds: readonly (string | undefined)[],
  context: CheckContext,
): boolean {
  const words = pathUses(command, use).map(({ argument }) => argument);
  const places = [
    ...cwds.map((cwd) => cwd && context.paths.resolve(cwd).canonical),
    ...placesOf(words, cwds, context),
  ];
  return (
    words.every(({ complete }) => complete) &&
    places.every((path) => path !== undefined && isBeneath(path, context.rules.workspace))
  );
}

/**
 * Where the git directory for a directory of the workspace lies. `within`: in the workspace. `own`: outside, and it belongs to the
 * repository that contains the workspace. `beside`: anywhere else, or unknown.
 */
function placeOfGit(from: string, { rules, paths }: CheckContext): 'within' | 'own' | 'beside' {
  const { workspace, gitOutside } = rules;
  for (let at = from; ; at = dirname(at)) {
    const { kind, canonical } = paths.resolve(join(at, '.git'));
    if (kind === 'directory') return isBeneath(canonical, workspace) ? 'within' : 'beside';
    // Another one within it may lead anywhere.
    if (kind === 'other' && at !== workspace) return 'beside';
    if (kind === 'other' || at === workspace) return gitOutside === undefined ? 'beside' : 'own';
  }
}

/**
 * Asks if a line that loses work also moves a file from outside into the workspace. Until the command ends, that file is only in the
 * layer: if sandbox-run is killed, it is lost.
 */
function takesIn(reasons: readonly Reason[], context: CheckContext): readonly Reason[] {
  const { granted, workspace } = context.rules;
  if (granted.length === 0) return [];
  if (!reasons.some(({ check, verdict }) => check === 'losses' && verdict === 'ask')) return [];
  return commandsOf(context.parsed).flatMap((command) => {
    const use = useOf(command, context);
    if (use?.program.operands !== 'moves-then-writes') return [];
    const to = destinationOf(use);
    const placesFor = (words: readonly Argument[]) =>
      placesOf(
        words.flatMap((one) => meaningsOf(one, command, context)),
        directoriesOf(command, context),
        context,
      );
    const taken = placesFor(use.operands.filter((one) => one !== to)).find((path) =>
      isGrantedBeside(path, context.rules),
    );
    const isInto = to !== undefined && placesFor([to]).some((path) => isBeneath(path, workspace));
    if (taken === undefined || !isInto) return [];
    const message = `${use.program.name} would move ${taken} into an undo layer; if sandbox-run is killed before the command ends, the file is lost`;
    return [outside('ask', `moves${BESIDE}`, message, taken)];
  });
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
  const first = mostLost(
    lost.filter((path) => !isSafe(path, context)),
    context,
  );
  if (first === undefined) return [];
  const name = use?.program.name ?? command.redirects[0]?.target.source ?? '';
  const message = `${name} would put an older version over changes that are not committed: ${inWorkspace(first, context)}`;
  return [lossOf(first, 'loses', message, [name], context)];
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
  const removed = [...removedBy(use), ...movedOut(command, use, context)].flatMap((argument) =>
    meaningsOf(argument, command, context),
  );
  const cwds = directoriesFor(command, use, context);
  const lost = placesOf(removed, cwds, context).flatMap((path) => {
    const root = lossRoot(path, context);
    return root === undefined || isRegenerable(path, root) ? [] : (context.versions?.lostWith(path) ?? []);
  });
  const reasons = lost.map((path) => {
    const shown = inWorkspace(path, context);
    const message = `${use.program.name} would delete ${shown}, which version control cannot restore`;
    return lossOf(path, 'deletes', message, [shown], context);
  });
  if (reasons.length > 0) return reasons;
  for (const argument of removed) {
    const { word } = argument;
    const path = perhapsLost(word, cwds, context) ?? perhapsByLink(argument, cwds, context);
    if (path === undefined) continue;
    const shown = inWorkspace(path, context);
    const unknown =
      word.value === undefined ? `what ${word.source || 'its input'} stands for` : `where ${word.source} is`;
    const message = `${use.program.name} may delete ${shown}, which version control cannot restore: ${unknown} is known only when it runs`;
    return [lossOf(path, 'may_delete', message, [word.source], context)];
  }
  // Files outside the workspace or on another machine are not looked at. If their path is known, an approval is bound to it.
  const unknown = removed.find(({ complete }) => !complete || isElsewhere(context));
  if (unknown === undefined || (context.rules.granted.length === 0 && !isElsewhere(context))) return [];
  const { source } = unknown.word;
  const message = `${use.program.name} may delete what ${source || 'its input'} stands for when it runs`;
  return [reason(undefined, 'may_delete', message, source)];
}

/** A path that may be lost through a link that the line makes, if the target or the rest of the path is known only at run time. */
function perhapsByLink(
  argument: Argument,
  cwds: readonly (string | undefined)[],
  context: CheckContext,
): string | undefined {
  const { span } = argument.word;
  const partial = byLinks(argument, cwds, context, true);
  const known = partial.paths.flatMap((path) =>
    lossRoot(path, context) === undefined ? [] : (context.versions?.lostWith(path) ?? []),
  );
  const rests = byLinks(argument, cwds, context, false).anywhere;
  const words = [
    ...rests.filter((rest) => rest !== '').map((rest) => literalWord(rest, span)),
    ...(partial.anywhere.length > 0 || rests.includes('') ? [ANYTHING] : []),
  ];
  return [...known, ...words.flatMap((word) => perhapsLost(word, [undefined], context) ?? [])][0];
}

/** Whether the command runs outside our sandbox, perhaps on another machine, so that the files here do not show what it may lose. */
const isElsewhere = ({ rules: { held } }: CheckContext) => !held.files;

/** The operands that a program removes. */
function removedBy(use: Use): readonly Argument[] {
  if (inherited(use, 'operands') !== 'removes' || inherited(use, 'keeps')?.(use) === true) return [];
  return use.operands;
}

/** Where a program moves its operands: the value of an option, or the last one of them. */
function destinationOf(use: Use): Argument | undefined {
  const targetOptions = use.program.targetOptions?.split(' ') ?? [];
  return use.options.find(({ name }) => targetOptions.includes(name))?.value ?? use.operands.at(-1);
}

/**
 * What is moved to where it does not stay: out of the workspace, to a place that is deleted with the command
 * (`mv notes.txt /tmp/`), or into what the line removes (`mv notes dist; rm -rf dist`).
 */
function movedOut(command: SimpleCommand, use: Use, context: CheckContext): readonly Argument[] {
  // `git mv` moves within its repository.
  if (use.program.operands !== 'moves-then-writes') return [];
  const to = destinationOf(use);
  const meanings = to === undefined ? [] : meaningsOf(to, command, context);
  const places = placesOf(meanings, directoriesOf(command, context), context);
  const leaves =
    to !== undefined &&
    // `mv notes "$(mktemp -d)"`.
    (meanings.length === 0 ||
      /^"?\$\{?TMPDIR\b/.test(to.word.source) ||
      places.some((path) => !staysAt(path, context)) ||
      removedPlaces(command, context).some((gone) =>
        places.some((path) => isBeneath(path, gone) || isBeneath(gone, path)),
      ));
  return leaves ? use.operands.filter((one) => one !== to) : [];
}

/** Whether what is moved to a path is there afterwards: it lies in the workspace, or in what the policy made writable. */
const staysAt = (path: string, { rules: { workspace, granted } }: CheckContext): boolean =>
  innermostAround(path, [workspace, ...granted]) !== undefined;

/** What the others of its line remove, as far as that is known. */
function removedPlaces(command: SimpleCommand, context: CheckContext): readonly string[] {
  return commandsOf(context.parsed).flatMap((other) => {
    const use = other === command ? undefined : useOf(other, context);
    const removed = use === undefined ? [] : removedBy(use);
    const meanings = removed.flatMap((argument) => meaningsOf(argument, other, context));
    return placesOf(meanings, directoriesOf(other, context), context);
  });
}

/** Where a command may run: in what links that the line makes lead to, and in a trap wherever the line goes. */
function placesToRun(command: SimpleCommand, context: CheckContext): readonly (string | undefined)[] {
  const own =
    command.directories === undefined
      ? [context.cwd, ...commandsOf(context.parsed).flatMap((one) => directoriesOf(one, context)), undefined]
      : directoriesOf(command, context);
  const linked = own.flatMap((cwd) => (cwd === undefined ? [] : reachedByLinks(`${cwd}/`, context).paths));
  return [...new Set([...own, ...linked])];
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
  const cwds = moves.reduce(go, placesToRun(command, context));
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
  return words.flatMap((word) => [
    ...pathsOf(word, cwds, context, { partial: false }).map(({ canonical }) => canonical),
    ...byLinks(word, cwds, context, false).paths,
  ]);
}

/** Where a word leads by names that the line makes links; `isPartial`: the directory of one that is known in part. */
function byLinks(
  word: Argument,
  cwds: readonly (string | undefined)[],
  context: CheckContext,
  isPartial: boolean,
): ReturnType<typeof reachedByLinks> {
  const all = cwds.flatMap((cwd) => {
    const texts = wordTexts(word.word, { home: context.rules.home, cwd }) ?? [];
    return texts.flatMap(({ text: whole, complete }) => {
      const text = whole.slice(word.start);
      if (complete === isPartial || (cwd === undefined && !text.startsWith('/'))) return [];
      const known = complete ? text : text.slice(0, text.lastIndexOf('/') + 1);
      return [reachedByLinks(known.startsWith('/') ? known : `${cwd}/${known}`, context)];
    });
  });
  return { paths: all.flatMap(({ paths }) => paths), anywhere: all.flatMap(({ anywhere }) => anywhere) };
}

function inWorkspace(path: string, { rules: { workspace } }: CheckContext): string {
  return isBeneath(path, workspace) && path !== workspace ? path.slice(workspace.length + 1) : path;
}

/*
 * What a command takes away whose words say it only when it runs: `rm "$f"`, `xargs rm`.
 */

/** Stands for what is not known in the text of a word. */
const UNKNOWN = '\0';
const ANYTHING: Word = {
  value: undefined,
  parts: [{ kind: 'input' }],
  source: '',
  span: { start: 0, end: 0 },
};

/**
 * The first file of the workspace that would be lost if it is what a word stands for that is known only when it runs.
 * `cwds`: where the command may run.
 */
function perhapsLost(
  word: Word,
  cwds: readonly (string | undefined)[],
  context: CheckContext,
): string | undefined {
  const { workspace, granted, gitOutside } = context.rules;
  // Granted paths come first: undo does not cover them. Git's own directory is left out: users keep no files there.
  const beside = granted.filter((one) => one !== gitOutside);
  const shape = word.parts.map((part, index) => shapeOf(part, index === 0, context)).join('');
  const names = shape.split('/');
  const isNew = names
    .slice(names.lastIndexOf('..') + 1)
    .some((name) => isRegenerableName(name.replaceAll(UNKNOWN, '*')));
  if (isNew) return undefined;
  for (const cwd of shape.startsWith('/') ? ['/'] : cwds) {
    if (cwd !== undefined && !shape.includes(UNKNOWN)) continue;
    const start = shape.slice(0, shape.indexOf(UNKNOWN));
    const prefix = shape.includes(UNKNOWN) ? start.slice(0, start.lastIndexOf('/') + 1) : '';
    const isAnywhere = cwd === undefined || shape.startsWith(UNKNOWN);
    const known = isAnywhere ? undefined : context.paths.resolve(resolve(cwd, prefix)).canonical;
    const roots = [...beside, workspace].filter((one) => !isSafe(one, context));
    const around = known && innermostAround(known, roots);
    const rest = isAnywhere ? shape : shape.slice(prefix.length);
    const isDeeper = isAnywhere || rest.startsWith(`${UNKNOWN}/`) || rest.includes('/../');
    const pattern = patternFor(isDeeper ? belowAnywhere(rest) : rest);
    const patterns = [pattern, `${pattern}/*`].flatMap((one) => (isDeeper ? [one, `*/${one}`] : [one]));
    const lostIn = (root: string) => {
      const directory = known ?? root;
      return context.versions?.lostWith(around === undefined ? root : directory, (path, isDirectory) => {
        const name = path.slice(path.lastIndexOf('/') + 1);
        if (path !== root && (name === '.git' || isRegenerableName(name))) return false;
        const inside = path.slice(directory.length).replace(/^\//, '');
        return isDirectory || patterns.some((one) => matchesPattern(inside, one));
      });
    };
    const within =
      around === undefined ? roots.filter((one) => known === undefined || isBeneath(one, known)) : [around];
    for (const root of within) {
      const lost = lostIn(root);
      if (lost !== undefined) return lost;
    }
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

/** A pattern for `matchesPattern`: unknown parts and shell patterns become `*`. */
function patternFor(shape: string): string {
  const bare = shape.replace(/^(?:\.\/)+|\/+$/g, '');
  return bare.replace(/(?:\0|\*|\?|\[[^\]]*\])+/g, '*');
}
