import type { SimpleCommand } from '../model/command-line.ts';
import type { Reason } from '../model/decision.ts';
import { LOOKS_OUTSIDE } from '../model/words.ts';
import type { Argument, PathUse } from '../programs/behaviour.ts';
import { argumentOf, beginsWithPath, isHarmlessDevice, wordOf } from '../programs/options.ts';
import { pathUses } from '../programs/path-uses.ts';
import { reachOf } from '../programs/risk.ts';
import { directoriesBetween, innermostAround, isBeneath } from '../util/absolute-path.ts';
import { isJudgedPlace } from '../util/secret-files.ts';
import { type Check, type CheckContext, commandsOf, reasonFor } from './check.ts';
import {
  directoriesOf,
  isForeignTo,
  type Location,
  locationsOf,
  mayWrite,
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
  return [reason('deny', 'escapes_workspace', `path escapes the workspace root: ${canonical}`)];
}

/** True if a command may read there. */
function mayRead(path: string, context: CheckContext): boolean {
  if (mayWrite(path, context)) return true;
  const { readable, hidden } = context.rules;
  const granted = innermostAround(path, readable);
  return granted !== undefined && (innermostAround(path, hidden)?.length ?? 0) <= granted.length;
}

/** Whether the kernel lets a command read there, be it something that the policy gave with a whole directory and that may be secret. */
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
    return reason(
      'deny',
      'foreign_home',
      `path escapes the workspace root: ${source} is the home of another user`,
      source,
    );
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

/** The same words lead to several places because of a `cd` that may fail. */
function dependsOnDirectory({ argument }: PathUse, cwds: readonly (string | undefined)[]): boolean {
  return cwds.length > 1 && argument.complete && !argument.text.startsWith('/');
}

function judgeLocation(
  use: PathUse,
  { text, resolved, partial }: Location,
  context: CheckContext,
  isHeld: boolean,
): Reason | undefined {
  const { source } = use.argument.word;
  const { rules } = context;
  if (resolved === undefined) {
    return reason('deny', 'unresolved', `it cannot be told where ${text} leads`, source);
  }
  const path = resolved.canonical;
  if (isHarmlessDevice(text) || isHarmlessDevice(path)) return undefined;
  // No file: `syntax` judges what bash makes of it.
  if (/^\/dev\/(?:tcp|udp)\//.test(text)) return undefined;
  const writes = use.effect !== 'reads';
  // What a command writes into its private home is not a secret of the user.
  const homes = writes ? [rules.userHome] : [rules.home, rules.userHome];
  if (homes.some((home) => isBeneath(path, home) && isJudgedPlace(path.slice(home.length + 1)))) {
    // The name of the command's own home says nothing to whoever wrote `~`.
    const named = isBeneath(text, rules.home) ? `~${text.slice(rules.home.length)}` : text;
    return reason('deny', 'secret_path', `${named} holds credentials`, source);
  }
  if (isHeld && !isShown(path, context))
    return isAbove(path, context) ? undefined : looksOutside(text, source);
  // `/$x` says nothing about where it leads; the kernel does.
  if (partial && leadsToRoot(path, context)) return undefined;
  // Under an allow-list only the workspace is meant, not what the system needs to run programs.
  const inside = writes || rules.allow !== undefined ? mayWrite(path, context) : mayRead(path, context);
  if (!inside && !(rules.allow !== undefined && isProgramWord(use) && mayRead(path, context))) {
    return reason('deny', 'escapes_workspace', `path escapes the workspace root: ${text}`, source);
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

/** What is to be said where a file is on the way: in a worktree or a submodule `.git` is one. `undefined`: there is none. */
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
