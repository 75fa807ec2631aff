import { relative } from 'node:path';
import { PACKAGE_CACHES } from '../../policy/profiles/package-caches.ts';
import { SYSTEM_PATHS } from '../../policy/profiles/system-paths.ts';
import { TOOL_CHAINS } from '../../policy/profiles/tool-chains.ts';
import { isBeneath } from '../../util/absolute-path.ts';
import type { AccessRules, Denial } from './access-words.ts';
import { as, type Draft, loss, type Outcome } from './draft.ts';
import type { ImportPlace } from './importer.ts';

/** What a denial of reading is weighed against. */
interface ReadingRules extends AccessRules {
  readonly allowed: readonly Denial[];
  /** What can be read in any case. */
  readonly open: readonly string[];
}

const overlaps = (one: string, other: string) => isBeneath(one, other) || isBeneath(other, one);

/** Keeps commands from writing it. */
export function keepFromWriting(draft: Draft, word: Denial, where: ImportPlace): Outcome {
  const { root, rest, isByLink } = word;
  const { workspace } = where;
  // `dir/*` is all of it.
  const isPattern = word.isPattern && !/^\*+$/.test(rest);
  if (isPattern && root === workspace && draft.profile !== 'read-only')
    return loss(
      'wider',
      'patterns cannot be protected here, and this one may match anywhere in the workspace',
      'name the paths in filesystem.protect, or use profile = "read-only"',
    );
  if (isBeneath(workspace, root)) {
    draft.profile = 'read-only';
    return as('profile = "read-only": the workspace cannot be written');
  }
  if (isByLink && isBeneath(root, workspace)) draft.protect.push(relative(workspace, root));
  if (isByLink && draft.profile !== 'read-only')
    return loss(
      'wider',
      'a link in the workspace leads to it, and a command can put something else in its place',
      'name what it leads to, or use profile = "read-only"',
    );
  if (!isBeneath(root, workspace)) return as('nothing there can be written');
  draft.protect.push(relative(workspace, root));
  if (!where.exists(root) && draft.profile !== 'read-only')
    return loss(
      'wider',
      'it is not there: a command that names it is refused, but a program that is run can make it',
      'make it first, and import again',
    );
  if (!isPattern) return as('filesystem.protect');
  return loss(
    'narrower',
    'patterns cannot be protected here, so the whole directory is',
    'name the paths in filesystem.protect instead, if the others have to be written',
  );
}

/** Keeps commands from reading it. */
export function keepFromReading(
  draft: Draft,
  word: Denial,
  where: ImportPlace,
  rules: ReadingRules,
): Outcome {
  const { root } = word;
  const isAllowed = (path: string) =>
    rules.innerAllowWins &&
    word.firm !== true &&
    rules.allowed.some(
      (allow) =>
        allow.firm !== true && !allow.isPattern && isBeneath(path, allow.root) && isBeneath(allow.root, root),
    );
  const { workspace } = where;
  if (overlaps(root, workspace) && !(isBeneath(workspace, root) && isAllowed(workspace)))
    return keepFromReadingInside(draft, word, where);
  const open = rules.open.filter((path) => overlaps(path, root) && !isAllowed(path));
  if (open.length > 0) {
    const shown = `${open.slice(0, 3).join(', ')}${open.length > 3 ? ', …' : ''}`;
    return loss(
      'wider',
      `programs and libraries have to be read: ${shown} can be`,
      'look whether they hold anything that a command must not see',
    );
  }
  return as('nothing there can be read');
}

/** What every sandbox lets commands read: of the system, and of tool chains that are there. */
export function readableAnyway({ home, exists, lookup }: ImportPlace): readonly string[] {
  const ofHome = [...TOOL_CHAINS, ...PACKAGE_CACHES].map(({ path }) => `${home}/${path}`).filter(exists);
  const all = [...SYSTEM_PATHS.map(({ path }) => path).filter(exists), ...ofHome];
  return [...new Set(all.map((path) => lookup.resolve(path).canonical))];
}

const IN_WORKSPACE = 'the workspace can be read as a whole';
const MOVE = 'move it out of the workspace';

/** The words of a command can be refused; a program that is run can still read it. */
function keepFromReadingInside(draft: Draft, word: Denial, { workspace }: ImportPlace): Outcome {
  const { root, isPattern, rest, text } = word;
  if (!isPattern && root !== workspace && isBeneath(root, workspace))
    draft.secret.push(relative(workspace, root));
  const inside = [relative(workspace, root), rest]
    .filter((part) => part !== '' && !part.startsWith('..'))
    .join('/');
  const pattern = wordPattern(inside);
  if (pattern === undefined)
    return loss('wider', IN_WORKSPACE, 'use security.autonomy = "readonly" if nothing may be read');
  // With and without a directory before it, and what is beneath it.
  for (const one of [pattern, `*/${pattern}`, `${pattern}/*`, `*/${pattern}/*`])
    draft.rules.push({ program: '*', words: [one], verdict: 'deny', reason: `${text} must not be read` });
  return loss(
    'wider',
    `${IN_WORKSPACE}: rules refuse commands that name it as it stands there, but it can be named otherwise (dir/./file, a link, < file), and a program that is run can read it`,
    MOVE,
  );
}

/** A pattern of paths as one of words, in which `*` stands for anything; `undefined`: it would match every word. */
function wordPattern(path: string): string | undefined {
  const pattern = path
    .replace(/(^|\/)(\*\*\/)+/g, '$1')
    .replace(/\{[^}]*\}|\[[^\]]*\]|[?{}[\]!]/g, '*')
    .replace(/\*+/g, '*');
  return /^[*/]*$/.test(pattern) ? undefined : pattern;
}
