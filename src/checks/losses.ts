import { dirname, resolve } from 'node:path';
import type { SimpleCommand, Word } from '../model/command-line.ts';
import type { Reason } from '../model/decision.ts';
import { leadingText, literalWord, mergeLiterals } from '../model/word.ts';
import { type Argument, inherited, type Loss, type Use } from '../programs/behaviour.ts';
import { argumentOf, wordOf } from '../programs/options.ts';
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
  scriptsRunBy,
} from './inner-lines.ts';
import { alternatives, directoriesOf, pathsOf, useOf } from './locations.ts';
import { isHeldBack, matchesPattern } from './own-rules.ts';

const reason = reasonFor('losses');

/**
 * The sandbox protects what is outside the workspace. Version control brings back what it knows inside. A loss that neither
 * prevents is asked about.
 */
export const lossesCheck: Check = {
  name: 'losses',
  summary:
    'contained: asks before a command deletes work in the workspace that version control does not have; at every level, such a command is approved for once only',
  judge: (context) => {
    // Of a preview nothing is lost: what it takes away is there until it is applied.
    // Nor of what can be taken back.
    if (context.autonomy === 'readonly' || isHeldBack(context)) return [];
    if (context.effect === 'undoable' && context.rules.undoes === true) return [];
    const found = judgeLine([context]);
    if (context.autonomy === 'contained') return found;
    // No reason to ask; but an answer to a question for another reason is good for once only.
    return andThen(found, (reasons) => reasons.map((one) => ({ ...one, verdict: undefined })));
  },
};

/** Lines that run each other are not followed further. */
const DEEPEST_LINE = 4;

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
        isCopy && granted.length === 0 ? [] : judgeVerb(command, use, context),
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
  return together(scriptsRunBy(command, use, nesting).map((line) => judgeInnerLine(line, nesting, inner)));
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
  { text, cwd, of, file }: InnerLine,
  nesting: Nesting,
  inner: InnerTexts,
): MaybePromise<readonly Reason[]> {
  const [context] = nesting;
  const line = { ...context, parsed: inner.parse(text), text, cwd };
  // What a person committed is asked about only where it is sure.
  const isCommitted = file !== undefined && context.versions?.lostWith(file) === undefined;
  const told = (reasons: readonly Reason[]) =>
    reasons
      .filter(({ code }) => !isCommitted || code !== 'may_delete')
      .map((one) => ({ ...one, message: `${one.message} (in ${of})` }));
  return andThen(judgeLine([line, ...nesting]), told);
}

/**
 * `remove='rm -rf'; $remove notes`: what runs, where the line itself says it. Each word of a value could be the program, and
 * where there is none the next word is: `sudo=; $sudo rm notes`.
 */
function writtenOut(command: SimpleCommand, context: CheckContext): readonly SimpleCommand[] {
  const [first, ...others] = command.words;
  if (first === undefined || first.value !== undefined) return [command];
  const values = valuesOf(first, command, context, DEEPEST).slice(0, MOST);
  const programs = values.filter(({ value }) => value !== '');
  const without = programs.length < values.length ? writtenOut({ ...command, words: others }, context) : [];
  return [
    ...programs.map((_, at) => ({ ...command, words: [...programs.slice(at), ...others] })),
    ...without,
  ];
}

/** `git reset --hard`, `git clean -f`: rows of the table say what they throw away. */
function judgeVerb(command: SimpleCommand, use: Use, context: CheckContext): readonly Reason[] {
  const loss = inherited(use, 'loses')?.(use);
  if (loss === undefined) return [];
  const words = [[use.program.name, ...use.verbs].join(' ')];
  if (loss.what === 'always') return [reason('ask', 'loses', `${words[0]} ${loss.message}`, ...words)];
  const cwds = directoriesFor(command, use, context);
  const lost = cwds.flatMap((cwd) => {
    const from = context.paths.resolve(cwd ?? context.rules.workspace).canonical;
    const paths = loss.paths === undefined ? [undefined] : placesOf(loss.paths, [from], context);
    return paths.flatMap((path) => lostFrom(from, path, loss.what, context) ?? []);
  });
  const [first] = lost;
  if (first !== undefined)
    return [reason('ask', 'loses', `${words[0]} ${loss.message}: ${inWorkspace(first, context)}`, ...words)];
  return isElsewhere(context) ? [reason(undefined, 'loses', `${words[0]} ${loss.message}`, ...words)] : [];
}

/** The first file that such a loss takes something from. */
function lostFrom(
  from: string,
  path: string | undefined,
  what: Loss['what'],
  { versions }: CheckContext,
): string | undefined {
  switch (what) {
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
  // What lies elsewhere is not looked at. Where its place is known, an approval is bound to it.
  const unknown = removed.find(({ complete }) => !complete || isElsewhere(context));
  if (unknown === undefined || (context.rules.granted.length === 0 && !isElsewhere(context))) return [];
  const { source } = unknown.word;
  const message = `${use.program.name} may delete what ${source || 'its input'} stands for when it runs`;
  return [reason(undefined, 'may_delete', message, source)];
}

/** Nothing is held by us, and the files may be those of another machine: what is lost cannot be told by looking here. */
const isElsewhere = ({ rules: { held } }: CheckContext) => !held.files;

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

/** Variables within each other are not followed further, nor more possibilities. */
const DEEPEST = 4;
const MOST = 64;

/**
 * What an argument may stand for, with the variables put in that the line sets. Without what names only new files, or work
 * that tools make anew: `tmp=$(mktemp -d); rm -rf "$tmp"`, `find . -name '*.pyc' | xargs rm`.
 */
function meaningsOf(argument: Argument, command: SimpleCommand, context: CheckContext): readonly Argument[] {
  const word = wordOf(argument);
  const [first, ...others] = word.parts;
  const isPlain = others.every((part) => part.kind === 'literal');
  if (first?.kind === 'input' && isPlain && !climbs(word) && isSettledByInput(command, context)) return [];
  return valuesOf(word, command, context, DEEPEST)
    .filter(({ value }) => value !== '')
    .slice(0, MOST)
    .map((one) => argumentOf(one));
}

/** All words that one may stand for, with what the line gives its variables; `undefined`: it is known only when it runs. */
export function settledWords(
  word: Word,
  command: SimpleCommand,
  context: CheckContext,
  depth = DEEPEST,
): readonly Word[] | undefined {
  const at = word.parts.findIndex(
    (part) =>
      !/^(?:literal|glob|tilde|brace)$/.test(part.kind) &&
      !(part.kind === 'parameter' && part.plain && /^(?:HOME|PWD)$/.test(part.name)),
  );
  const part = word.parts[at];
  if (part === undefined) return [word];
  if (part.kind !== 'parameter' || !part.plain || depth === 0) return undefined;
  const values = assignedTo(part.name, word, command, context);
  if (values === undefined || values.length === 0 || values.length > MOST) return undefined;
  const all = values.map((value) => {
    if (isSplit(part, value)) return undefined;
    const parts = mergeLiterals([...word.parts.slice(0, at), ...value.parts, ...word.parts.slice(at + 1)]);
    const isKnown = parts.every((one) => one.kind === 'literal');
    const text = isKnown ? parts.map((one) => one.text).join('') : undefined;
    return settledWords({ ...word, parts, value: text }, command, context, depth - 1);
  });
  return all.every((some) => some !== undefined) ? all.flat() : undefined;
}

/** Whether nothing stands before a part that makes another path of it. */
const isAtStart = ({ parts }: Word, at: number) =>
  parts.slice(0, at).every((part) => part.kind === 'literal' && /^(?:\.\/)*$/.test(part.text));

/** Whether it leads out of what it begins with: `"$tmp/../notes"`. */
const climbs = ({ parts: [, ...others] }: Word) =>
  others.some((part) => 'text' in part && part.text.includes('..'));

function valuesOf(word: Word, command: SimpleCommand, context: CheckContext, depth: number): readonly Word[] {
  if (word.value !== undefined) return [word];
  if (isSubstitutedByNew(word, context)) return [];
  if (depth === 0) return [word];
  for (const [at, part] of word.parts.entries()) {
    const values =
      part.kind === 'brace'
        ? branchesOf(part.text, word)
        : part.kind === 'parameter'
          ? heldBy(part, word, command, context)
          : undefined;
    if (values === undefined) continue;
    const isNew = values.every((value) => valuesOf(value, command, context, depth - 1).length === 0);
    // New is only what such a name begins: not `"notes/$name"`, nor `"$name/../notes"`.
    if (isNew && (!isAtStart(word, at) || climbs(word))) continue;
    return values
      .flatMap((value) => valuesOf(value, command, context, depth - 1))
      .slice(0, MOST)
      .flatMap((value) => {
        if (isSplit(part, value)) return word.parts.length === 1 ? wordsOf(value) : [word];
        const parts = mergeLiterals([
          ...word.parts.slice(0, at),
          ...value.parts,
          ...word.parts.slice(at + 1),
        ]);
        const texts = parts.map((one) => (one.kind === 'literal' ? one.text : undefined));
        const isKnown = texts.every((text) => text !== undefined);
        const now = { ...word, parts, value: isKnown ? texts.join('') : undefined };
        return valuesOf(now, command, context, depth - 1);
      });
  }
  return [word];
}

/** All that an expansion may give; `undefined`: that is not known. */
function heldBy(
  { name, plain }: Extract<Word['parts'][number], { readonly kind: 'parameter' }>,
  word: Word,
  command: SimpleCommand,
  context: CheckContext,
): readonly Word[] | undefined {
  const [, operator, text = ''] = new RegExp(`\\$\\{${name}:?([-?])([^{}]*)\\}`).exec(word.source) ?? [];
  // `${name:?}` is the value, or the end of the command.
  if (plain || operator === '?') return assignedTo(name, word, command, context);
  // `${name:-text}`, unless its value comes from outside.
  const isOnly = word.source.split(name).length === 2;
  if (operator !== '-' || !isOnly || !/^[\w./-]*$/.test(text) || mayBeGiven(name, context)) return undefined;
  return assignedTo(name, word, command, context, literalWord(text, word.span));
}

/** Variables that a shell sets by itself: they may hold anything wherever they stand. */
const OF_SHELL = /^(?:_|PWD|OLDPWD|REPLY|OPTARG|DIRSTACK|MAPFILE|COPROC|BASH|BASH_\w+|FUNCNAME|SHELL)$/;

/** Whether a variable may come from elsewhere: the environment, the words of the command (`$1`), a file that the shell reads. */
function mayBeGiven(name: string, context: CheckContext): boolean {
  const { parsed, rules, variables, shell } = context;
  const { environment } = rules;
  if (environment === undefined || shell !== undefined || !/^[A-Za-z_]/.test(name)) return true;
  const isSourced = () =>
    commandsOf(parsed).some((one) => /^(?:source|\.)$/.test(useOf(one, context)?.program.name ?? ''));
  if (!parsed.understood || isSourced()) return true;
  const isNamed = (entry: string) =>
    entry === name || (entry.endsWith('*') && name.startsWith(entry.slice(0, -1)));
  return [...environment, ...Object.keys(variables ?? {})].some(isNamed);
}

/** Whether the shell makes several words of a value, as it does without quotes. */
function isSplit(part: Word['parts'][number], value: Word): boolean {
  if (part.kind !== 'parameter' || part.quoted === true) return false;
  return value.parts.some((one) => one.kind === 'literal' && /\s/.test(one.text));
}

/** The words of such a value; what is not known of it may be anything. */
function wordsOf({ parts, span }: Word): readonly Word[] {
  return parts.flatMap((part): readonly Word[] =>
    part.kind === 'literal'
      ? (part.text.match(/\S+/g) ?? []).map((text) => literalWord(text, span))
      : [{ value: undefined, parts: [part], source: '', span }],
  );
}

/** `{a,b}`; `undefined`: of another form. */
function branchesOf(brace: string, { span }: Word): readonly Word[] | undefined {
  const texts = alternatives(brace);
  return texts.length === 1 ? undefined : texts.map((text) => literalWord(text, span));
}

/**
 * All that the line gives to a variable, and what it holds otherwise; `undefined`: where the word stands, it may hold
 * something else.
 */
function assignedTo(
  name: string,
  word: Word,
  { runsLater }: SimpleCommand,
  context: CheckContext,
  otherwise?: Word,
): readonly Word[] | undefined {
  if (OF_SHELL.test(name)) return undefined;
  const { parsed } = context;
  const { loops, variables } = parsed.understood ? parsed.line : parsed.problem;
  const sources = [
    ...loops.filter((loop) => loop.name === name).map(ofLoop),
    ...commandsOf(parsed).flatMap((one) => sourcesIn(one, name, word, context)),
  ];
  const values = sources.map((source) => source.values);
  const isExplained = !variables.includes(name) || sources.some(({ isImplicit }) => isImplicit);
  const first = Math.min(...sources.map(({ at }) => at));
  const isBefore = first <= word.span.start || (runsLater === true && first < Number.POSITIVE_INFINITY);
  if (!isExplained || (!isBefore && otherwise === undefined)) return undefined;
  if (!values.every((some) => some !== undefined)) return undefined;
  return [...values.flat(), ...(otherwise === undefined ? [] : [otherwise])];
}

/** Something that gives a variable its value. */
interface Source {
  /** `undefined`: they are not known. */
  readonly values: readonly Word[] | undefined;
  /** Where it begins; infinite if that is for one command alone. */
  readonly at: number;
  /** It is why the variable is listed as set by other means than an assignment. */
  readonly isImplicit: boolean;
}

function ofLoop({ words }: { readonly words: readonly Word[] }): Source {
  const values = words.length === 0 ? undefined : words;
  return { values, at: Math.min(...words.map(({ span }) => span.start)), isImplicit: true };
}

/** What one command does to a variable. */
function sourcesIn(
  command: SimpleCommand,
  name: string,
  word: Word,
  context: CheckContext,
): readonly Source[] {
  const sources: Source[] = [];
  for (const { name: set, append, value } of command.assignments) {
    // What it gets is what it holds already: `name=${name:-text}`.
    if (set !== name || (value.span.start === word.span.start && value.source === word.source)) continue;
    const isKnown = !append && !value.source.startsWith('(');
    // What stands before a program is for that alone, which may be a shell.
    const at = command.words.length === 0 ? value.span.start : Number.POSITIVE_INFINITY;
    sources.push({ values: isKnown ? [value] : undefined, at, isImplicit: false });
  }
  const use = useOf(command, context);
  const declared = use === undefined ? [] : (inherited(use, 'assigns')?.(use) ?? []);
  for (const one of declared) {
    const text = leadingText(one);
    const at = one.span.start;
    if (text.startsWith(`${name}+=`)) sources.push({ values: undefined, at, isImplicit: false });
    else if (text.startsWith(`${name}=`))
      sources.push({ values: [wordOf(argumentOf(one, name.length + 1))], at, isImplicit: false });
    else if (one.value === name)
      sources.push({ values: valuesGivenBy(use, one, context), at, isImplicit: true });
  }
  // `: "${name:=text}"`
  for (const { source, span } of command.words) {
    const [, text] = new RegExp(`\\$\\{${name}:?=([\\w./-]*)\\}`).exec(source) ?? [];
    if (text === undefined) continue;
    const values = mayBeGiven(name, context) ? undefined : [literalWord(text, span)];
    sources.push({ values, at: span.start, isImplicit: true });
  }
  const isOther = !context.parsed.understood && !declared.some(({ value }) => value === name);
  if (isOther && command.words.slice(1).some(({ value }) => value === name))
    sources.push({ values: undefined, at: command.span.start, isImplicit: true });
  return sources;
}

/** `local name`, `unset name`: nothing. `find dist | while read -r name`: each line, which is new. */
function valuesGivenBy(use: Use | undefined, name: Word, context: CheckContext): readonly Word[] | undefined {
  if (use === undefined) return undefined;
  if (inherited(use, 'descriptors') === undefined) return [literalWord('', name.span)];
  const isWhole = inherited(use, 'splitsInput') === true && use.operands.length === 1;
  return isWhole && namesNew(use.command, context) ? [] : undefined;
}

/** `$(mktemp)`, `$(find . -name '*.pyc')`, `<(find build)`. */
function isSubstitutedByNew(word: Word, context: CheckContext): boolean {
  const [first, ...others] = word.parts;
  if (first?.kind !== 'command-substitution' && first?.kind !== 'process-substitution') return false;
  if (!others.every((part) => part.kind === 'literal' && !part.text.includes('..'))) return false;
  const [, text] = /^"?[$`]\(?([^()`]+)[)`]/.exec(word.source) ?? [];
  // In a text that a shell reads, all have the place of that text.
  const inside = commandsOf(context.parsed).filter(
    ({ span, words, redirects }) =>
      (span.start > word.span.start && span.end < word.span.end) ||
      (redirects.length === 0 && words.map(({ source }) => source).join(' ') === text),
  );
  return inside.length > 0 && inside.every((command) => namesNew(command, context));
}

function namesNew(command: SimpleCommand | undefined, context: CheckContext): boolean {
  const use = command === undefined ? undefined : useOf(command, context);
  if (command === undefined || use === undefined) return false;
  if (inherited(use, 'namesNew')?.(use) === true) return true;
  return passesOn(command, use) && getsNew(command, context);
}

/** What comes to its standard input. */
function getsNew(command: SimpleCommand, context: CheckContext): boolean {
  const [around, ...others] = commandsOf(context.parsed).filter(
    ({ words, span, redirects }) =>
      words.length === 0 &&
      span.start <= command.span.start &&
      command.span.end <= span.end &&
      redirects.some(({ operator }) => operator.startsWith('<')),
  );
  // A pipe within that: `while read d; do ls "$d" | xargs rm; done < list`.
  const before = around === undefined ? '' : context.text.slice(around.span.start, command.span.start);
  if (around === undefined || /(?<!\|)\|(?!\|)|>\(/.test(before))
    return namesNew(pipedInto(command, context), context);
  const [redirect, ...more] = around.redirects.filter(({ operator }) => operator.startsWith('<'));
  return (
    others.length === 0 &&
    more.length === 0 &&
    redirect !== undefined &&
    isSubstitutedByNew(redirect.target, context)
  );
}

/** It prints, or hands to what it runs, nothing but what it is piped: `sort -u`, `xargs -0`. */
function passesOn(command: SimpleCommand, use: Use): boolean {
  const harmless = inherited(use, 'passesOn')?.split(' ');
  return (
    harmless !== undefined &&
    use.unknown.length === 0 &&
    use.openEnded.length === 0 &&
    use.options.every(
      ({ name, value }) => harmless.includes(name) || harmless.includes(`${name}=${value?.text}`),
    ) &&
    // What it reads by a name, what it finds itself, and what comes in from elsewhere.
    pathUses(command, use).length === 0 &&
    use.program.searchesAll?.(use) !== true &&
    !command.redirects.some(({ operator }) => operator.startsWith('<'))
  );
}

/** The runner says itself what is lost (`find -exec rm`), or gets only such names: `find … | xargs rm`. */
function isSettledByInput({ runBy }: SimpleCommand, context: CheckContext): boolean {
  const commands = commandsOf(context.parsed);
  const runner = runBy === undefined ? undefined : commands[runBy];
  const use = runner === undefined ? undefined : useOf(runner, context);
  if (runner === undefined || use === undefined) return false;
  if (inherited(use, 'loses') !== undefined) return true;
  return passesOn(runner, use) && getsNew(runner, context);
}

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
