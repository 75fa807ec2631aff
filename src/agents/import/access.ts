import { join, relative, resolve } from 'node:path';
import { isBeneath } from '../../base/absolute-path.ts';
import { problemOfHidePattern } from '../../model/index.ts';
import { PACKAGE_CACHES, SYSTEM_PATHS, TOOL_CHAINS } from '../../policy/index.ts';
import { whyNotProposed } from '../../run/index.ts';
import {
  as,
  type Draft,
  type ImportPlace,
  type NamedPath,
  narrower,
  type Outcome,
  type Part,
  wider,
} from './draft.ts';

/**
 * Takes down what the source says of a path: `base` is what relative ones are relative to. Links are followed after `..` is
 * taken away by text, as the products do.
 */
export function namePath(
  { where, paths }: Draft,
  use: keyof Draft['paths'],
  part: Part,
  { text, base, ...meaning }: Meaning & { readonly base: string },
): 'noted' {
  const { root, pattern } = readPattern(text, base, where.home, meaning.literal === true);
  const { canonical, links } = where.lookup.resolve(root);
  const isByLink = links.some(({ path }) => path !== where.workspace && isBeneath(path, where.workspace));
  paths[use].push({ ...part, ...meaning, text, root: canonical, named: root, pattern, isByLink });
  return 'noted';
}

type Meaning = Pick<NamedPath, 'text' | 'literal' | 'firm' | 'asked' | 'anyDepth'>;

/** `dir/**` is `dir` and what is beneath it. */
function readPattern(text: string, base: string, home: string, isLiteral: boolean) {
  const expanded = /^~(?=\/|$)/.test(text) ? `${home}${text.slice(1)}` : text;
  if (isLiteral) return { root: resolve(base, expanded), pattern: '' };
  const whole = /^\*\*(\/\*)?$/.test(expanded) ? '.' : expanded.replace(/\/\*\*(\/\*)?$/, '') || '/';
  const [before = ''] = /^(?:[^*?[\]{}!/]*(?:\/|$))*/.exec(whole) ?? [];
  return { root: resolve(base, before), pattern: whole.slice(before.length) };
}

/** Puts what the source says of paths into the policy: never more than it allows. */
export function translateAccess(draft: Draft): void {
  const { allowRead, allowWrite, denyWrite, denyRead } = draft.paths;
  const note = (path: NamedPath, outcome: Outcome) =>
    draft.note(path, path.asked === true && 'to' in outcome ? NOT_ASKED : outcome);
  for (const path of allowRead) note(path, grantRead(draft, path));
  for (const path of allowWrite) note(path, grantWrite(draft, path));
  for (const path of denyWrite) note(path, keepFromWriting(draft, path));
  const { read, write } = draft.policy.filesystem;
  const readable = [draft.where.workspace, ...readableAnyway(draft.where), ...read, ...write];
  for (const path of denyRead) note(path, keepFromReading(draft, path, readable));
}

const NOT_ASKED = narrower('files cannot be asked about here, so it is refused or hidden', 'no such rule');
const NO_PATTERNS = narrower('patterns of paths cannot be allowed here', 'the directory itself');
/** Here commands share no temporary directory with other programs. */
export const OWN_TMP = narrower(
  'each command has a /tmp of its own while it runs',
  'filesystem.tmp = "host"',
);

const overlaps = (one: string, other: string) => isBeneath(one, other) || isBeneath(other, one);

/** `dir/*` is all of it. */
const isWhole = ({ pattern }: NamedPath) => /^\**$/.test(pattern);

/** Whether a denial holds for something allowed in it. */
const winsOver = (denial: NamedPath, allowed: NamedPath) =>
  denial.firm === true || allowed.firm === true || denial.root === allowed.root;

/** Lets commands read it, if nothing in it is denied. */
function grantRead(draft: Draft, path: NamedPath): Outcome {
  const { root } = path;
  if (isBeneath(root, draft.where.workspace)) return as('the workspace, which can be read');
  if (path.pattern !== '') return NO_PATTERNS;
  const against = draft.paths.denyRead.find(
    (denial) => isBeneath(root, denial.root) && isWhole(denial) && winsOver(denial, path),
  );
  if (against === undefined) return grant(draft, 'read', path);
  return narrower(`it lies in what must not be read (${against.text})`, 'filesystem.read');
}

/** Lets commands write it, if nothing in it is denied. */
function grantWrite(draft: Draft, path: NamedPath): Outcome {
  const { root } = path;
  const { workspace } = draft.where;
  const { paths, policy } = draft;
  if (path.pattern !== '') return NO_PATTERNS;
  if (root === workspace) return as('profile = "workspace-write": the workspace can be written');
  if (isBeneath(workspace, root))
    return narrower('only the workspace is made writable of what it lies in', 'filesystem.write');
  if (isBeneath(root, workspace) && policy.profile === 'workspace-write')
    return keepNames(draft, root, as('the workspace, which can be written'));
  if (['/tmp', '/var/tmp', '/private/tmp'].includes(root)) return OWN_TMP;
  const against =
    paths.denyRead.find((denial) => isBeneath(root, denial.root)) ??
    paths.denyWrite.find((denial) => overlaps(denial.root, root));
  if (against !== undefined)
    return narrower(`it overlaps with what must not be used (${against.text})`, 'filesystem.write');
  return keepNames(draft, root, grant(draft, 'write', path));
}

/** What the product itself keeps read-only in it: only the workspace has protected paths here. */
function keepNames({ kept, policy, where }: Draft, root: string, outcome: Outcome): Outcome {
  if (kept.length === 0 || !('to' in outcome)) return outcome;
  if (!isBeneath(root, where.workspace))
    return wider(`${kept.join(', ')} in it cannot be written there`, 'filesystem.write for parts of it only');
  policy.filesystem.protect.push(...kept.map((name) => relative(where.workspace, join(root, name))));
  return outcome;
}

function grant({ policy, where }: Draft, use: 'read' | 'write', { root, isByLink }: NamedPath): Outcome {
  const key = `filesystem.${use}`;
  // Neither the root nor a whole home should be given to a command; the sandbox would refuse to start.
  if (root === '/' || isBeneath(where.home, root))
    return narrower('it is a whole home directory, or more', `${key} for parts of it`);
  if (isByLink) return narrower('a link in the workspace leads to it, and such a link allows nothing', key);
  // A policy whose paths are not there cannot be used.
  if (!where.exists(root)) return narrower('it is not there', `${key} once it is`);
  const why = whyNotProposed(root, { ...where, secret: [] }, key);
  if (why !== undefined) return narrower(why, `${key} by hand`);
  policy.filesystem[use].push(root);
  return as(key);
}

/** Keeps commands from writing it. */
function keepFromWriting({ policy, where }: Draft, path: NamedPath): Outcome {
  const { root, isByLink } = path;
  const { workspace } = where;
  const isReadOnly = policy.profile === 'read-only';
  const otherwise = 'filesystem.protect or profile = "read-only"';
  if (!isWhole(path) && root === workspace && !isReadOnly)
    return wider('a pattern cannot be protected here, and it may match anywhere in the workspace', otherwise);
  if (isBeneath(workspace, root)) {
    policy.profile = 'read-only';
    return as('profile = "read-only": the workspace cannot be written');
  }
  const isInside = isBeneath(root, workspace);
  if (isInside) policy.filesystem.protect.push(relative(workspace, root));
  if (isByLink && !isReadOnly)
    return wider('a link leads to it, and a command can put another in the place of the link', otherwise);
  if (!isInside) return as('nothing there can be written');
  if (!where.exists(root) && !isReadOnly)
    return wider('it is not there, so a program that is run can make it', otherwise);
  if (isWhole(path)) return as('filesystem.protect');
  return narrower('a pattern cannot be protected here, so the whole directory is', otherwise);
}

/** Keeps commands from reading it; `readable`: what can be read. */
function keepFromReading(draft: Draft, path: NamedPath, readable: readonly string[]): Outcome {
  const { root, anyDepth = false } = path;
  const { workspace, home } = draft.where;
  const opened = draft.paths.allowRead.filter(
    (allow) => isBeneath(allow.root, root) && !winsOver(path, allow),
  );
  const isOpened = (inner: string) =>
    opened.some((allow) => allow.pattern === '' && isBeneath(inner, allow.root));
  if (!anyDepth && isWhole(path) && isBeneath(workspace, root) && !isOpened(workspace))
    return wider('the workspace can be read as a whole', 'security.autonomy = "readonly"');
  const left = readable.filter((one) => overlaps(one, root) && !isOpened(one));
  if (!anyDepth && left.length === 0) return as('nothing there can be read');
  // Of what lies in it, that is hidden which can be read at all.
  const within = left.filter((one) => isWhole(path) && isBeneath(one, root));
  const needed = within.filter((one) => !isBeneath(one, home));
  if (needed.length > 0)
    return wider(
      `programs and libraries can be read: ${needed.join(', ')}`,
      'filesystem.hide for parts of it',
    );
  const patterns =
    within.length > 0 ? within.map((one) => patternOf(draft.where, one, '')) : patternsOf(draft.where, path);
  const problem = patterns.map(problemOfHidePattern).find((one) => one !== undefined);
  if (problem !== undefined) return wider(`as a pattern of filesystem.hide it ${problem}`, 'another pattern');
  draft.policy.filesystem.hide.push(...patterns);
  const hidden = opened.find((allow) => allow.root !== root);
  if (hidden === undefined || !isWhole(path) || isBeneath(workspace, hidden.root))
    return as('filesystem.hide');
  return narrower(
    `what is allowed in it (${hidden.text}) is hidden with it`,
    'filesystem.hide for parts of it',
  );
}

/** A denial by all names of what it is about. */
function patternsOf(where: ImportPlace, path: NamedPath): readonly string[] {
  if (path.anyDepth === true) return [path.text];
  const roots = new Set([path.root, path.named]);
  return [...roots].map((one) => patternOf(where, one, isWhole(path) ? '' : path.pattern));
}

/** A pattern of `filesystem.hide`: in the workspace from there on, elsewhere from the home or the root on. */
function patternOf({ workspace, home }: ImportPlace, root: string, rest: string): string {
  // Not in all of a home or a machine, most of which cannot be read: where something can that is the user's.
  if (isBeneath(workspace, root) && rest.startsWith('**/')) return rest;
  const isInHome = root !== home && isBeneath(root, home);
  const [base, around] = isBeneath(root, workspace) ? ['.', workspace] : isInHome ? ['~', home] : ['', '/'];
  const inner = relative(around, root).replace(/[*?[\]{}\\!]/g, '\\$&');
  return [base, inner, rest].filter((part, at) => at === 0 || part !== '').join('/');
}

/** What every sandbox lets commands read: of the system, and of tool chains that are there. */
function readableAnyway({ home, exists, lookup }: ImportPlace): readonly string[] {
  const ofHome = [...TOOL_CHAINS, ...PACKAGE_CACHES].map(({ path }) => `${home}/${path}`);
  const all = [...SYSTEM_PATHS.map(({ path }) => path), ...ofHome].filter(exists);
  return [...new Set(all.map((path) => lookup.resolve(path).canonical))];
}
