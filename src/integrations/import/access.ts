import { join, relative, resolve } from 'node:path';
import { problemOfHidePattern } from '../../model/policy-keys.ts';
import { PACKAGE_CACHES } from '../../policy/profiles/caches.ts';
import { SYSTEM_PATHS, TOOL_CHAINS } from '../../policy/profiles/system-paths.ts';
import { isBeneath } from '../../util/absolute-path.ts';
import {
  as,
  type Draft,
  type ImportPlace,
  type NamedPath,
  narrower,
  type Outcome,
  type Part,
  type PathMeaning,
  type PathUse,
  wider,
} from './draft.ts';

/**
 * Takes down what the source says of a path: `base` is what relative ones are relative to. Links are followed after `..` is
 * taken away by text, as the products do.
 */
export function namePath(
  { where, paths }: Draft,
  use: PathUse,
  part: Part,
  { text, base, ...meaning }: PathMeaning & { readonly text: string; readonly base: string },
): 'noted' {
  const { root, pattern } = readPattern(text, base, where.home, meaning.literal === true);
  const { canonical, links } = where.lookup.resolve(root);
  const isByLink = links.some(({ path }) => path !== where.workspace && isBeneath(path, where.workspace));
  paths[use].push({ ...part, ...meaning, text, root: canonical, named: root, pattern, isByLink });
  return 'noted';
}

/** `dir/**` is `dir` and what is beneath it. */
function readPattern(text: string, base: string, home: string, isLiteral: boolean) {
  const expanded = /^~(?=\/|$)/.test(text) ? `${home}${text.slice(1)}` : text;
  if (isLiteral) return { root: resolve(base, expanded), pattern: '' };
  const whole = /^\*\*(\/\*)?$/.test(expanded) ? '.' : expanded.replace(/\/\*\*(\/\*)?$/, '') || '/';
  const parts = whole.split('/');
  const first = parts.findIndex((part) => /[*?[\]{}!]/.test(part));
  if (first === -1) return { root: resolve(base, whole), pattern: '' };
  const before = parts.slice(0, first).join('/');
  const root = before === '' && whole.startsWith('/') ? '/' : before;
  return { root: resolve(base, root), pattern: parts.slice(first).join('/') };
}

/** Puts what the source says of paths into the policy: never more than it allows. */
export function translateAccess(draft: Draft): void {
  const { allowRead, allowWrite, denyWrite, denyRead } = draft.paths;
  const note = (path: NamedPath, outcome: Outcome, instead: Outcome) =>
    draft.note(path, path.asked === true && 'to' in outcome ? instead : outcome);
  for (const path of allowRead) draft.note(path, grantRead(draft, path));
  for (const path of allowWrite) draft.note(path, grantWrite(draft, path));
  for (const path of denyWrite) note(path, keepFromWriting(draft, path), REFUSED);
  const readable = [
    ...readableAnyway(draft.where),
    ...draft.policy.filesystem.read,
    ...draft.policy.filesystem.write,
  ];
  for (const path of denyRead) note(path, keepFromReading(draft, path, readable), HIDDEN);
}

const HIDDEN = narrower(
  'files cannot be asked about here, so it is hidden',
  'take it out of filesystem.hide if it may be read',
);

const REFUSED = narrower('files cannot be asked about here, so it is refused', 'allow it if it may be used');

const overlaps = (one: string, other: string) => isBeneath(one, other) || isBeneath(other, one);

const NO_PATTERNS = narrower(
  'patterns of paths are not known here',
  'name the directory or file itself, if it may be allowed',
);

/** Lets commands read it, if nothing in it is denied. */
function grantRead(draft: Draft, path: NamedPath): Outcome {
  const { root } = path;
  if (isBeneath(root, draft.where.workspace)) return as('the workspace, which can be read');
  if (path.pattern !== '') return NO_PATTERNS;
  const { denyRead } = draft.paths;
  const against = denyRead.find(
    (denial) => isBeneath(root, denial.root) && isWhole(denial) && winsOver(denial, path),
  );
  if (against === undefined) return grant(draft, 'read', path);
  return narrower(
    `it lies in what must not be read (${against.text})`,
    'put it into filesystem.read if it may be read all the same',
  );
}

/** `dir/*` is all of it. */
const isWhole = ({ pattern }: Pick<NamedPath, 'pattern'>) => /^\**$/.test(pattern);

/** Whether a denial holds for something allowed in it. */
const winsOver = (denial: NamedPath, allowed: NamedPath) =>
  denial.firm === true || allowed.firm === true || denial.root === allowed.root;

/** Here commands share no temporary directory with other programs. */
export const OWN_TMP = narrower(
  'here each command has its own temporary directory, which is deleted when the command ends',
  'set filesystem.tmp = "host" if commands have to share files there with other programs',
);

/** Lets commands write it, if nothing in it is denied. */
function grantWrite(draft: Draft, path: NamedPath): Outcome {
  const { root } = path;
  const { workspace } = draft.where;
  if (path.pattern !== '') return NO_PATTERNS;
  if (root === workspace) return as('profile = "workspace-write": the workspace can be written');
  if (isBeneath(workspace, root))
    return narrower(
      'it holds the workspace and more, and only the workspace is made writable',
      'add filesystem.write for what else has to be written',
    );
  if (isBeneath(root, workspace) && draft.policy.profile === 'workspace-write')
    return keepNames(draft, path, as('the workspace, which can be written'));
  if (['/tmp', '/var/tmp', '/private/tmp'].includes(root)) return OWN_TMP;
  const { denyRead, denyWrite } = draft.paths;
  const against = [
    ...denyRead.filter((denial) => isBeneath(root, denial.root)),
    ...denyWrite.filter((denial) => overlaps(denial.root, root)),
  ][0];
  if (against === undefined) return keepNames(draft, path, grant(draft, 'write', path));
  return narrower(
    `it overlaps with what must not be used (${against.text}), which cannot be kept back from a path that is allowed here`,
    'put the parts that may be written into filesystem.write',
  );
}

/** What the product itself keeps read-only in it: only the workspace has protected paths here. */
function keepNames({ policy, where }: Draft, { kept = [], root }: NamedPath, outcome: Outcome): Outcome {
  if (kept.length === 0 || !('to' in outcome)) return outcome;
  if (isBeneath(root, where.workspace)) {
    policy.filesystem.protect.push(...kept.map((name) => relative(where.workspace, join(root, name))));
    return outcome;
  }
  return wider(
    `${kept.join(', ')} in it cannot be written there, and only paths in the workspace can be protected here`,
    'put the parts that may be written into filesystem.write',
  );
}

function grant({ policy, where }: Draft, use: 'read' | 'write', { root, isByLink }: NamedPath): Outcome {
  const key = `filesystem.${use}`;
  // Neither the root nor a whole home should be given to a command; the sandbox would refuse to start.
  if (root === '/' || isBeneath(where.home, root))
    return narrower(
      'it is the root or a whole home directory, which holds what no command should have',
      `put the directories that are needed into ${key}`,
    );
  if (isByLink)
    return narrower(
      'a link in the workspace leads to it, and what lies in the workspace can allow nothing',
      `put ${key} there yourself, if it may be used`,
    );
  if (!where.exists(root))
    return narrower(
      'it is not there, and a policy whose paths are not there cannot be used',
      `make it, and add it to ${key}`,
    );
  policy.filesystem[use].push(root);
  return as(key);
}

/** Keeps commands from writing it. */
function keepFromWriting({ policy, where }: Draft, { root, pattern, isByLink }: NamedPath): Outcome {
  const { workspace } = where;
  const isReadOnly = policy.profile === 'read-only';
  const isPattern = !isWhole({ pattern });
  if (isPattern && root === workspace && !isReadOnly)
    return wider(
      'patterns cannot be protected here, and this one may match anywhere in the workspace',
      'name the paths in filesystem.protect, or use profile = "read-only"',
    );
  if (isBeneath(workspace, root)) {
    policy.profile = 'read-only';
    return as('profile = "read-only": the workspace cannot be written');
  }
  const isInside = isBeneath(root, workspace);
  if (isInside) policy.filesystem.protect.push(relative(workspace, root));
  if (isByLink && !isReadOnly)
    return wider(
      'a link in the workspace leads to it, and a command can put something else in its place',
      'name what it leads to, or use profile = "read-only"',
    );
  if (!isInside) return as('nothing there can be written');
  if (!where.exists(root) && !isReadOnly)
    return wider(
      'it is not there: a command that names it is refused, but a program that is run can make it',
      'make it first, and import again',
    );
  if (!isPattern) return as('filesystem.protect');
  return narrower(
    'patterns cannot be protected here, so the whole directory is',
    'name the paths in filesystem.protect instead, if the others have to be written',
  );
}

/** Keeps commands from reading it; `readable`: what can be read beside the workspace. */
function keepFromReading(draft: Draft, path: NamedPath, readable: readonly string[]): Outcome {
  const { root } = path;
  const { workspace, home } = draft.where;
  const isAllowed = (inner: string) =>
    draft.paths.allowRead.some(
      (allow) =>
        !winsOver(path, allow) &&
        allow.pattern === '' &&
        isBeneath(inner, allow.root) &&
        isBeneath(allow.root, root),
    );
  if (path.anyDepth !== true && isWhole(path) && isBeneath(workspace, root) && !isAllowed(workspace))
    return wider(
      'the workspace can be read as a whole',
      'use security.autonomy = "readonly" if nothing may be read',
    );
  const left = [workspace, ...readable].filter((one) => overlaps(one, root) && !isAllowed(one));
  if (path.anyDepth !== true && left.length === 0) return as('nothing there can be read');
  // Of what lies in it, that is hidden which can be read at all.
  const within = left.filter((one) => isWhole(path) && isBeneath(one, root));
  const kept = within.filter((one) => !isBeneath(one, home));
  if (kept.length > 0)
    return wider(
      `programs and libraries have to be read: ${kept.slice(0, 3).join(', ')}${kept.length > 3 ? ', …' : ''} can be`,
      'look whether they hold anything that a command must not see',
    );
  const patterns =
    within.length > 0 ? within.map((one) => patternOf(draft.where, one, '')) : patternsOf(draft.where, path);
  const problem = patterns.map(problemOfHidePattern).find((one) => one !== undefined);
  if (problem !== undefined)
    return wider(
      `as a pattern of filesystem.hide it ${problem}`,
      'write it into filesystem.hide in another way',
    );
  draft.policy.filesystem.hide.push(...patterns);
  const again = draft.paths.allowRead.find(
    (allow) => allow.root !== root && isBeneath(allow.root, root) && !winsOver(path, allow),
  );
  if (again !== undefined && isWhole(path) && !isBeneath(workspace, again.root))
    return narrower(
      `what is allowed again in it (${again.text}) is hidden with it`,
      'name in filesystem.hide what of it is not to be seen',
    );
  return as('filesystem.hide');
}

/** A denial by all names of what it is about. */
function patternsOf(
  where: ImportPlace,
  { root, named, pattern, text, anyDepth }: NamedPath,
): readonly string[] {
  if (anyDepth === true) return [text];
  const rest = isWhole({ pattern }) ? '' : pattern;
  return [...new Set([root, named])].map((one) => patternOf(where, one, rest));
}

/** A pattern of `filesystem.hide`: in the workspace from there on, elsewhere from the home or the root on. */
function patternOf({ workspace, home }: ImportPlace, root: string, rest: string): string {
  const plain = (path: string) => path.replace(/[*?[\]{}\\!]/g, '\\$&');
  // Not in all of a home or a machine, most of which cannot be read: where something can that is the user's.
  if (isBeneath(workspace, root) && rest.startsWith('**/')) return rest;
  const isIn = (around: string) => root !== around && isBeneath(root, around);
  const [base, inner] = isBeneath(root, workspace)
    ? ['.', relative(workspace, root)]
    : isIn(home)
      ? ['~', relative(home, root)]
      : ['', root.slice(1)];
  return [base, plain(inner), rest].filter((part, at) => at === 0 || part !== '').join('/');
}

/** What every sandbox lets commands read: of the system, and of tool chains that are there. */
function readableAnyway({ home, exists, lookup }: ImportPlace): readonly string[] {
  const ofHome = [...TOOL_CHAINS, ...PACKAGE_CACHES].map(({ path }) => `${home}/${path}`);
  const all = [...SYSTEM_PATHS.map(({ path }) => path), ...ofHome].filter(exists);
  return [...new Set(all.map((path) => lookup.resolve(path).canonical))];
}
