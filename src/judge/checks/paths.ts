import { basename, dirname, join, resolve } from 'node:path';
import { directoriesBetween, innermostAround, isBeneath } from '../../base/absolute-path.ts';
import { isJudgedPlace } from '../../base/secret-files.ts';
import { LOOKS_OUTSIDE } from '../../base/words.ts';
import type { ResolvedPath } from '../../confine/plan/path-lookup.ts';
import type { Reason, SimpleCommand } from '../../model/index.ts';
import type { Argument, PathUse } from '../programs/behaviour.ts';
import { argumentOf, beginsWithPath, isHarmlessDevice, wordOf } from '../programs/options.ts';
import { pathUses } from '../programs/path-uses.ts';
import { reachOf } from '../programs/risk.ts';
import { type Check, type CheckContext, commandsOf, reasonFor } from './check.ts';
import {
  directoriesOf,
  isForeignTo,
  type Location,
  locationsOf,
  mayWrite,
  placeAsShown,
  useOf,
  wordTexts,
} from './locations.ts';
import { settledWords } from './word-values.ts';

const reason = reasonFor('paths');

/** Paths stay inside the workspace and the other places of the policy, and what is protected is not written. */
export const pathsCheck: Check = {
  name: 'paths',
  summary:
    'refuses writing outside the workspace and what the policy makes writable, writing protected paths, and secrets that could be read; reading elsewhere where the kernel does not hold it',
  judge: (context) => {
    const reasons: Reason[] = judgeDirectory(context);
    for (const command of commandsOf(context.parsed)) {
      const uses = pathUses(command, useOf(command, context));
      if (uses.length === 0) continue;
      const cwds = directoriesOf(command, context);
      for (const use of uses) {
        for (const one of meantBy(use, command, context)) {
          const found =
            one === undefined
              ? notKnown(use)
              : judgePath(one, cwds, context, isHeldRead(one, command, context));
          if (found !== undefined) reasons.push(found);
        }
      }
    }
    return reasons;
  },
};

/**
 * Under an allow-list only the workspace is meant, so that where a path leads has to be known: variables that the line gives their
 * values are put in, and patterns are matched, as one of the names may be a link. `undefined`: it is known only when it runs.
 */
function meantBy(
  use: PathUse,
  command: SimpleCommand,
  context: CheckContext,
): readonly (PathUse | undefined)[] {
  // What only looks like a path is no reason to refuse.
  if (context.rules.allow === undefined || use.guessed === true) return [use];
  const words = settledWords(wordOf(use.argument), command, context);
  if (words === undefined) return [isFoundAsFile(use, command, context) ? use : undefined];
  return words.map((word) => ({ ...use, argument: argumentOf(word) }));
}

function notKnown({ argument: { word } }: PathUse): Reason {
  return reason(
    'deny',
    'dynamic_path',
    `${word.source} is known only when it runs; name the path`,
    word.source,
  );
}

/** `find . -type f -exec cat {} +`: no link is among what it finds. */
function isFoundAsFile({ argument }: PathUse, { runBy }: SimpleCommand, { parsed }: CheckContext): boolean {
  const [part, ...others] = argument.word.parts;
  const words = runBy === undefined || !parsed.understood ? [] : (parsed.line.commands[runBy]?.words ?? []);
  const texts = words.map(({ value }) => value ?? '');
  return (
    part?.kind === 'input' &&
    part.path === true &&
    others.length === 0 &&
    texts[texts.indexOf('-type') + 1] === 'f' &&
    !texts.some((text) => /^(?:-[HP]*L|-follow|-o|-or|!|-not|,)$/.test(text))
  );
}

/**
 * A read that the kernel answers: what is not granted is absent or denied, so that looking needs no refusal. A server behind a
 * socket reads with its own rights, and an allow-list is about the words of a line.
 */
function isHeldRead({ effect }: PathUse, command: SimpleCommand, context: CheckContext): boolean {
  const { held, allow, onlyChecks, asksServers } = context.rules;
  if (effect !== 'reads' || !held.files || allow !== undefined || onlyChecks === true) return false;
  return asksServers !== true || reachOf(command, isForeignTo(context)) === 'local';
}

/** The directory in which the whole line starts comes with the request, like a path in it. */
function judgeDirectory(context: CheckContext): Reason[] {
  // One that does not exist is the launch's business: nothing runs there.
  const { canonical } = context.paths.resolve(context.cwd);
  if (mayRead(canonical, context)) return [];
  return [reason('deny', 'escapes_workspace', `${canonical} lies outside of the workspace`)];
}

/** True if a command may read there. */
function mayRead(path: string, context: CheckContext): boolean {
  if (mayWrite(path, context)) return true;
  const { readable, hidden } = context.rules;
  const granted = innermostAround(path, readable);
  return granted !== undefined && (innermostAround(path, hidden)?.length ?? 0) <= granted.length;
}

/** Whether the kernel lets a command read a path, also one that may be secret and lies in a granted directory. */
const isShown = (path: string, context: CheckContext) =>
  mayRead(path, context) || (context.rules.shown ?? []).some((root) => isBeneath(path, root));

function judgePath(
  use: PathUse,
  cwds: readonly (string | undefined)[],
  context: CheckContext,
  isHeld: boolean,
): Reason | undefined {
  const { source } = use.argument.word;
  if (context.rules.allow !== undefined && use.guessed !== true && isAnywhere(use.argument, cwds, context))
    return reason(
      'deny',
      'unknown_directory',
      `${source} depends on a directory that cannot be told; name the path from the root on`,
      source,
    );
  const locations = foundAt(use.argument, cwds, context);
  if (locations === undefined) return notKnown(use);
  if (locations === 'foreign-home') {
    return reason('deny', 'foreign_home', `${source} is the home of another user`, source);
  }
  let outside: Reason | undefined;
  let looks: Reason | undefined;
  let inside = false;
  for (const location of locations) {
    const found = judgeLocation(use, location, context, isHeld);
    if (found === undefined) inside = true;
    else if (found.code === LOOKS_OUTSIDE) looks ??= found;
    else if (found.code !== 'escapes_workspace') return found;
    else outside ??= found;
  }
  if (outside === undefined && looks !== undefined && use.guessed !== true) return looks;
  // `node cli.js /api/users`, `./configure --prefix=/opt/x`: should it be a path, the kernel holds what is read there.
  if (use.guessed === true && use.effect === 'reads' && context.autonomy === 'contained') return undefined;
  if (outside === undefined || !inside || !dependsOnDirectory(use, cwds)) return outside;
  // `cd a; cat ../b`: outside only if the first command fails. The kernel says what then, but a list is about its words.
  if (context.rules.allow !== undefined)
    return {
      ...outside,
      code: 'may_escape_workspace',
      message: `${outside.message}, if the cd before it fails; write && behind the cd`,
    };
  return context.autonomy === 'autonomous' || context.autonomy === 'contained'
    ? undefined
    : { ...outside, verdict: 'ask', code: 'may_escape_workspace' };
}

/** A relative path, behind `cd -` or `popd`. */
function isAnywhere(
  argument: Argument,
  cwds: readonly (string | undefined)[],
  { rules }: CheckContext,
): boolean {
  // What find puts in is beneath where it started.
  if (!cwds.includes(undefined) || beginsWithPath(argument.word)) return false;
  const texts = wordTexts(argument.word, { home: rules.home, cwd: undefined }) ?? [];
  return texts.some(({ text }) => !/^(?:\/|-$)/.test(text.slice(argument.start)));
}

/** Where it leads; under an allow-list, all that its patterns match. `undefined`: they match too much to be looked at. */
function foundAt(
  argument: Argument,
  cwds: readonly (string | undefined)[],
  context: CheckContext,
): ReturnType<typeof locationsOf> | undefined {
  const locations = locationsOf(argument, cwds, context);
  const isPattern = argument.word.parts.some(({ kind }) => kind === 'glob');
  if (context.rules.allow === undefined || !isPattern || locations === 'foreign-home') return locations;
  const found: Location[] = [];
  for (const cwd of cwds) {
    if (cwd === undefined) return undefined;
    for (const { text } of locations) {
      const paths = context.paths.expand(text.startsWith('/') ? text : `${cwd}/${text}`);
      if (paths === undefined) return undefined;
      for (const path of paths)
        found.push({ text: path, resolved: context.paths.resolve(path), partial: false });
    }
  }
  // With no match, a pattern stands for itself.
  return found.length === 0 ? locations : found;
}

/** Whether a path has several meanings, because a `cd` before it may fail. */
function dependsOnDirectory({ argument }: PathUse, cwds: readonly (string | undefined)[]): boolean {
  return cwds.length > 1 && argument.complete && !argument.text.startsWith('/');
}

function judgeLocation(
  use: PathUse,
  { text: place, resolved, partial }: Location,
  context: CheckContext,
  isHeld: boolean,
): Reason | undefined {
  const { source } = use.argument.word;
  const { rules } = context;
  const text = placeAsShown(place, rules);
  if (resolved === undefined) {
    return reason('deny', 'unresolved', `it cannot be told where ${text} leads`, source);
  }
  const path = resolved.canonical;
  if (isHarmlessDevice(place) || isHarmlessDevice(path)) return undefined;
  // No file: `syntax` judges what bash makes of it.
  if (/^\/dev\/(?:tcp|udp)\//.test(text)) return undefined;
  const writes = use.effect !== 'reads';
  // What a command writes into its private home is not a secret of the user.
  const homes = writes ? [rules.userHome] : [rules.home, rules.userHome];
  if (homes.some((home) => isBeneath(path, home) && isJudgedPlace(path.slice(home.length + 1)))) {
    return reason('deny', 'secret_path', `${text} holds credentials`, source);
  }
  if (isHeld && (!isShown(path, context) || isOfUserAlone(path, context)))
    return isAbove(path, context) && use.byOption !== true ? undefined : looksOutside(text, source);
  // `/$x` says nothing about where it leads; the kernel does.
  if (partial && leadsToRoot(path, context)) return undefined;
  // Under an allow-list only the workspace is meant, not what the system needs to run programs.
  const inside = writes || rules.allow !== undefined ? mayWrite(path, context) : mayRead(path, context);
  if (!inside && rules.held.files && rules.allow === undefined) {
    // `cp f ..` where `../f` may be written: the kernel answers for the rest of the directory.
    const written = partial ? undefined : writtenIn(use, resolved);
    const one = written === undefined ? undefined : context.paths.resolve(written).canonical;
    if (one !== undefined && mayWrite(one, context) && !touchesProtected(one, use, context)) return undefined;
  }
  if (!inside && !(rules.allow !== undefined && isProgramWord(use) && mayRead(path, context))) {
    const refusal = reason('deny', 'escapes_workspace', `${text} lies outside of the workspace`, source);
    // Where only the text is judged, nothing is said of what a pattern or a link leads to.
    const isHeld = rules.held.files && rules.allow === undefined && rules.onlyChecks !== true;
    return isHeld ? { ...refusal, needs: [neededFor(use, resolved, partial, context)] } : refusal;
  }
  if (writes && !partial && touchesProtected(path, use, context)) {
    return reason(
      'deny',
      'protected',
      rules.protected.includes(rules.workspace)
        ? `${text} cannot be written: the workspace can only be read`
        : (beneathFile(text, path, context) ??
            `${text} is protected: what is written there is run or obeyed later by something trusted`),
      source,
    );
  }
  return undefined;
}

const looksOutside = (text: string, source: string) =>
  reason(
    'allow',
    LOOKS_OUTSIDE,
    `${text} lies outside of what commands may read: the kernel answers`,
    source,
  );

/** A directory that leads to what a command sees is there, with nothing else in it. */
const isAbove = (path: string, { rules }: CheckContext) =>
  [rules.workspace, ...rules.readable, ...rules.writable].some((root) => isBeneath(root, path));

/** `~/notes`, where the home is private and the user's has such a file: the command does not see it. */
function isOfUserAlone(path: string, { rules: { home, homeShown }, paths }: CheckContext): boolean {
  if (homeShown === undefined || path === home || !isBeneath(path, home)) return false;
  return paths.resolve(`${homeShown}${path.slice(home.length)}`).kind !== 'missing';
}

/** What a policy has to list for it: where a file comes or goes by its name, what is above it. */
function neededFor(
  use: PathUse,
  resolved: ResolvedPath,
  partial: boolean,
  context: CheckContext,
): NonNullable<Reason['needs']>[number] {
  const { canonical, kind } = resolved;
  if (use.effect === 'reads') return { key: 'filesystem.read', value: canonical };
  const isDirectory = use.directory === true || receivesDirectory(use, context);
  const isRemoved = use.effect === 'removes' && (use.replaced === true || kind !== 'directory');
  const isReplaced = isRemoved || (kind !== 'directory' && use.replaced === true && !isDirectory);
  const value = isReplaced && !partial ? dirname(canonical) : (writtenIn(use, resolved) ?? canonical);
  return { key: 'filesystem.write', value, ...(isDirectory || isReplaced ? { isDirectory: true } : {}) };
}

/** `cp -r source target`, where the source is a directory. */
const receivesDirectory = ({ receives }: PathUse, { cwd, paths }: CheckContext): boolean =>
  receives?.complete === true && paths.resolve(resolve(cwd, receives.text)).kind === 'directory';

/** What alone is written of a directory: the file of that name. `undefined`: it is not known, or the directory itself. */
function writtenIn({ replaced, receives }: PathUse, { canonical, kind }: ResolvedPath): string | undefined {
  if (kind !== 'directory' || replaced === true || receives?.complete !== true) return undefined;
  const name = basename(receives.text);
  return /^\.{0,2}$/.test(name) ? undefined : join(canonical, name);
}

function leadsToRoot(path: string, { rules }: CheckContext): boolean {
  return [rules.workspace, ...rules.writable].some((root) => isBeneath(root, path));
}

/** The program of a command may lie where programs lie. */
function isProgramWord({ argument, effect }: PathUse): boolean {
  return (
    effect === 'reads' &&
    argument.word.span.start >= 0 &&
    /^\/(?:usr\/)?(?:local\/)?s?bin\//.test(argument.text)
  );
}

/** The reason if a part of the path is a file, like `.git` in a worktree or a submodule. `undefined`: none is. */
function beneathFile(text: string, path: string, { rules, paths }: CheckContext): string | undefined {
  const file = directoriesBetween(path, rules.workspace).find((one) => paths.resolve(one).kind === 'other');
  if (file === undefined) return undefined;
  const where = file.endsWith('/.git')
    ? ', and what git obeys is protected where that leads (git rev-parse --git-common-dir)'
    : '';
  return `${text} cannot be written: ${file} is a file and not a directory${where}`;
}

/**
 * Beneath a protected path, or a directory above one that is removed. What fills such a directory may do so, as the kernel keeps
 * what is protected in it: but not where it keeps nothing, and not git's own directory, of which most is.
 */
function touchesProtected(path: string, use: PathUse, { rules }: CheckContext): boolean {
  const isTaken = use.effect === 'removes' || !rules.held.files || path.endsWith('/.git');
  const isAbove = (root: string) =>
    path !== rules.workspace && isBeneath(root, path) && isBeneath(path, rules.workspace);
  return rules.protected.some((root) => isBeneath(path, root) || (isTaken && isAbove(root)));
}
