import { isUtf8 } from 'node:buffer';
import { createHash } from 'node:crypto';
import { closeSync, constants, fstatSync, openSync, readFileSync, readSync } from 'node:fs';
import { createTwoFilesPatch, OMIT_HEADERS } from 'diff';
import { errnoOf } from '../../base/errno-of.ts';
import { orElse } from '../../base/or-else.ts';
import { visibleText } from '../../base/visible-text.ts';
import { linkBytes } from '../../confine/link-bytes.ts';
import type { NativeAddon } from '../../confine/native/contract.ts';
import type { Change } from '../../model/index.ts';
import { Below, lookAt } from './below.ts';
import { type Contents, type DescribedChange, octal } from './describe.ts';
import { HeldPaths, openToRead } from './held-paths.ts';
import { numberOf } from './in-words.ts';
import { openAsLeft, STILL_WRITTEN } from './left-file.ts';
import type { After } from './operations.ts';
import type { StoredCopy, StoredSet } from './store.ts';
import { bytesOf, type RawPath, type Stamp } from './tree.ts';

/** Larger files are not compared line by line, nor those for which that takes longer. */
const DIFFED_BYTES = 4 * 1024 * 1024;
const PATIENCE_MS = 2_000;

/** So much is shown at once, and compared for so long: a command can change any number of files. */
export const MOST_DIFF = { characters: 64 * 1024 * 1024, ms: 60_000 };

/** What is in a larger directory that goes is shown where a path is named: it may be a tree of modules. */
export const MOST_WITHIN = 1_000;

/** What was there, or is to be. */
type Side = Pick<Stamp, 'kind' | 'mode'>;

/** What a file or a link holds, or why that is not shown. */
type Content = { readonly text: string } | { readonly binary: Buffer } | { readonly why: string };

/** One object that comes, goes or becomes another one of its kind. */
interface Part {
  readonly from: RawPath;
  readonly path: RawPath;
  readonly before?: Side | undefined;
  readonly after?: Side | undefined;
  /** In a directory that goes. */
  readonly objects?: number | undefined;
  /** Only its time is another one, or its name is one of several. */
  readonly isSame: boolean;
  /** Why applying it would leave it as it is. */
  readonly stays?: string | undefined;
  readonly old: () => Content;
  readonly now: () => Content;
}

/**
 * One change as git shows it, and takes it: a unified diff for text and for where links lead, words for what git does not
 * know. What would not be applied git does not take, either. `isEnough`: its lines are not shown any more.
 */
export function diffOf(
  { change, numbers }: DescribedChange,
  set: StoredSet,
  addon: NativeAddon,
  contents: Contents,
  isEnough: boolean,
): string {
  const [first = -1, last = first] = numbers;
  const { after, path = '' } = set.operations[last] ?? {};
  const { before, path: from = '' } = set.operations[first] ?? {};
  const tooMuch: Content = { why: notShown(set) };
  const old = () => (isEnough ? tooMuch : contentBefore(before, contents.before(first)));
  const now = () => (isEnough ? tooMuch : contentLeft(addon, contents.left(last), after));
  const isSame = change.change === 'times' || change.change === 'mode' || change.change === 'renamed';
  const isGone = !isSame && before !== undefined && !isStill(before, contents.before(first));
  const stays =
    change.applied === true
      ? undefined
      : (change.refused ?? change.conflict ?? (isGone ? CHANGED_SINCE : undefined));
  const part: Part = { from, path, before, after, objects: change.objects, isSame, stays, old, now };
  if (before === undefined || after === undefined || before.kind === after.kind) return lookOf(part);
  // As git does it, too.
  return `${lookOf({ ...part, after: undefined })}${lookOf({ ...part, before: undefined, objects: undefined })}`;
}

const notShown = ({ id }: StoredSet): string =>
  `not shown, because so much else is: sandbox-run changes diff ${id} PATH shows it`;

/** What is in a directory that goes, file by file. `isEnough`: as of `diffOf`. */
export function diffWithin(
  { numbers }: DescribedChange,
  set: StoredSet,
  addon: NativeAddon,
  contents: Contents,
  isEnough: (text: string) => boolean,
): string {
  const [number = -1] = numbers;
  const { path: around = '', tree, conflict, isOwn } = set.operations[number] ?? {};
  const isKept = set.placed.some((one) => one.number === number && one.isKept);
  const staysOf = ({ changed, modified }: Stamp): string | undefined => {
    if (isKept) return undefined;
    // What was of a layer beneath came to the workspace later.
    const apart = BigInt(isOwn === true ? changed : modified) - BigInt(tree?.changed ?? 0);
    const isLater = apart >= (isOwn === true ? 1n : ALIKE_NS);
    return conflict ?? (isLater ? CHANGED_SINCE : undefined);
  };
  const at = contents.before(number);
  const flags = constants.O_RDONLY | constants.O_DIRECTORY | constants.O_NOFOLLOW;
  const root = at && orElse(() => openSync(at, flags), undefined);
  if (root === undefined) return '';
  const texts: string[] = [];
  try {
    using held = new HeldPaths(`/proc/self/fd/${root}/.`);
    let isOver = false;
    for (const [inner, before] of new Below(addon, `/proc/self/fd/${root}/.`).within('')) {
      if (isOver && before.kind === 'directory') continue;
      const path = `${around}/${inner}`;
      const more: Content = { why: `${notShown(set)}, and what else is in ${gitName('', around)}` };
      const old = () => (isOver ? more : contentBefore(before, held.nameOf(inner)));
      const stays = staysOf(before);
      const text = lookOf({ from: path, path, before, isSame: false, stays, old, now: () => GONE });
      texts.push(text);
      if (isOver) break;
      isOver = isEnough(text);
    }
  } catch (error) {
    // What may not be read does not go.
    if (errnoOf(error) !== 'EACCES') throw error;
  } finally {
    closeSync(root);
  }
  return texts.join('');
}

/** Times of a copy are not exactly those of what it is one of. */
const ALIKE_NS = 1_000_000n;

function lookOf(part: Part): string {
  const look = gitLookOf(part);
  return part.stays === undefined ? look : forPeople(look, part.stays);
}

const CHANGED_SINCE = 'it changed in the workspace since';

/** Whether that is there which a command found, or what was kept of it. */
function isStill({ kind, bytes, modified }: Stamp, at: Buffer | undefined): boolean {
  const now = at && lookAt(at);
  if (now?.kind !== kind) return false;
  const apart = BigInt(now.modified) - BigInt(modified);
  return kind === 'directory' || (now.bytes === bytes && apart > -ALIKE_NS && apart < ALIKE_NS);
}

/** A part as git refuses it, with all that comes with it: it would make something else of that. */
function forPeople(part: string, why: string): string {
  const remark = `for reading, not for git apply: ${why}\n`;
  // That it refuses as it is.
  if (/(?<=\n)Binary files .* differ\n/.test(part)) return `${part}${remark}`;
  const look = part.replace(/^diff --git /, 'diff ');
  const remarked = look.replace(/^--- .*\n\+\+\+ .*\n(?=@@ )/m, () => remark);
  return remarked === look ? `${look}${remark}` : remarked;
}

/** A diff for a terminal, which would obey or not show some of it. Git would make files of what is shown in its place. */
export function visibleDiff(diff: string): string {
  const parts = diff.split(/(?<=\n)(?=diff )/).map((part) => {
    const shown = visibleText(part, { keep: '\n\t' });
    return shown === part ? part : forPeople(shown, ESCAPED);
  });
  return parts.join('');
}

const ESCAPED = 'what a terminal would obey or not show is written as \\u{...} (--raw: as it is)';

function gitLookOf({ from, path, before, after, objects, isSame, old, now }: Part): string {
  const is = after ?? before;
  const [a, b] = [gitName('a/', from), gitName('b/', path)];
  const modes =
    before === undefined || after === undefined || before.mode === after.mode || is?.kind === 'link'
      ? undefined
      : ([before.mode, after.mode] as const);
  if (is?.kind !== 'file' && is?.kind !== 'link') {
    return `${[
      `diff ${a} ${b}`,
      ...(before === undefined ? [`new ${is?.kind} mode ${octal(is?.mode ?? 0)}`] : []),
      ...(after === undefined ? [`deleted ${is?.kind}`] : []),
      ...(modes === undefined ? [] : [`mode ${modes.map(octal).join(' -> ')}`]),
      ...(objects === undefined ? [] : [`with ${numberOf(objects, 'object')} in it`]),
    ].join('\n')}\n`;
  }
  const head = [
    `diff --git ${a} ${b}`,
    ...(before === undefined ? [`new file mode ${gitMode(is)}`] : []),
    ...(after === undefined ? [`deleted file mode ${knownMode(is)}`] : []),
    ...(modes === undefined ? [] : [`old mode 10${octal(modes[0])}`, `new mode 10${octal(modes[1])}`]),
    ...(from === path
      ? []
      : ['similarity index 100%', `rename from ${gitName('', from)}`, `rename to ${gitName('', path)}`]),
  ].join('\n');
  // Nothing that git could do.
  const inWords = (words: string) => `diff ${a} ${b}\n${words}\n`;
  if (isSame) return head.includes('\n') ? `${head}\n` : inWords('the content is the same');
  const was = before === undefined ? undefined : old();
  const left = after === undefined ? undefined : now();
  const sides = [left, was].filter((one) => one !== undefined);
  const names = [before === undefined ? '/dev/null' : a, after === undefined ? '/dev/null' : b] as const;
  const differ = `Binary files ${names.join(' and ')} differ\n`;
  // As git has files that are too large for it. It would leave out what is not in its form, and nobody would know.
  const without = (why: string) => `${head}\n${differ}${why}\n`;
  for (const side of sides) if ('why' in side) return without(side.why);
  const hasMode = modes === undefined && before !== undefined && after !== undefined;
  const index = `index ${blobOf(was)}..${blobOf(left)}${hasMode ? ` ${knownMode(is)}` : ''}`;
  if (sides.some((one) => 'binary' in one)) return `${head}\n${index}\n${differ}`;
  const lines = linesOf(names, textOf(was), textOf(left));
  if (lines === undefined) return without(TOO_DIFFERENT);
  return lines === '' && !head.includes('\n')
    ? inWords('the content is the same')
    : `${head}\n${index}\n${lines}`;
}

const TOO_DIFFERENT = 'not shown: it is too different from what was there';
const NONE = '0'.repeat(7);

const textOf = (content: Content | undefined): string =>
  content !== undefined && 'text' in content ? content.text : '';

/** What git calls it. */
function blobOf(content: Content | undefined): string {
  if (content === undefined) return NONE;
  const bytes = 'binary' in content ? content.binary : Buffer.from(textOf(content));
  return createHash('sha1')
    .update(`blob ${bytes.length}\0`)
    .update(bytes)
    .digest('hex')
    .slice(0, NONE.length);
}

const gitMode = ({ kind, mode }: Side): string => (kind === 'link' ? '120000' : `10${octal(mode)}`);

/** As git keeps it, of what is there: it says of each other one that it did not expect that. */
const knownMode = ({ kind, mode }: Side): string =>
  gitMode({ kind, mode: (mode & 0o100) === 0 ? 0o644 : 0o755 });

/**
 * A name as git writes it: in quotes, with bytes in octal, where it would not be seen as what it is, or would end a line or
 * the quotes.
 */
function gitName(side: 'a/' | 'b/' | '', path: RawPath): string {
  // Most are.
  if (/^[ !#-[\]-~]*$/.test(path)) return `${side}${path}`;
  const bytes = bytesOf(path);
  const isUnicode = isUtf8(bytes);
  const text = bytes.toString(isUnicode ? 'utf8' : 'latin1');
  const isOdd = (character: string) =>
    /["\\]/.test(character) || (!isUnicode && character > '~') || visibleText(character) !== character;
  const written = [...text].map((character) => {
    if (!isOdd(character)) return character;
    const raw = isUnicode ? Buffer.from(character) : bytesOf(character);
    return [...raw].map((byte) => `\\${byte.toString(8).padStart(3, '0')}`).join('');
  });
  const name = written.join('');
  return name === text ? `${side}${text}` : `"${side}${name}"`;
}

/** Settings of git. */
export function diffOfCopy({ source, before, after }: StoredCopy, workspace: string): string {
  const path = visibleText(source.slice(workspace.length + 1));
  const head = `diff a/${path} b/${path}`;
  if (after === undefined) return `${head}\nnot shown: it is no configuration that can be taken over\n`;
  const [old = '', now = ''] = [before, after].map((text) => Buffer.from(text, 'base64').toString());
  const lines = linesOf([`a/${path}`, `b/${path}`], old, now) ?? `${TOO_DIFFERENT}\n`;
  return `${head}\n${lines}`;
}

/** `undefined`: it takes too long to find out. */
function linesOf(names: readonly [string, string], old: string, now: string): string | undefined {
  if (old === now) return '';
  if (old === '' || now === '') return wholePatch(...names, old, now);
  const patch: string | undefined = createTwoFilesPatch(...[...names, old, now, undefined, undefined], {
    ...{ context: 3, timeout: PATIENCE_MS, headerOptions: OMIT_HEADERS },
  });
  return patch && `--- ${names[0]}\n+++ ${names[1]}\n${patch}`;
}

/** All lines of a file come or go: nothing is to be compared, which takes long for many. */
function wholePatch(from: string, to: string, old: string, now: string): string {
  const text = old + now;
  const isEnded = text.endsWith('\n');
  const lines = (isEnded ? text.slice(0, -1) : text).split('\n');
  const rest = isEnded ? '' : '\\ No newline at end of file\n';
  const [range, sign] = old === '' ? [`-0,0 +1,${lines.length}`, '+'] : [`-1,${lines.length} +0,0`, '-'];
  return `--- ${from}\n+++ ${to}\n@@ ${range} @@\n${sign}${lines.join(`\n${sign}`)}\n${rest}`;
}

function contentBefore(before: Side | undefined, at: Buffer | undefined): Content {
  if (at === undefined) return GONE;
  if (before?.kind === 'link') return orElse(() => contentOfLink(linkBytes(at)), GONE);
  return contentOf(openOrNot(at));
}

function openOrNot(path: Buffer): number | undefined {
  const flags = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK;
  return orElse(() => openSync(path, flags), undefined);
}

function contentLeft(
  addon: NativeAddon,
  left: ReturnType<Contents['left']>,
  after: After | undefined,
): Content {
  if (after?.kind === 'link') return contentOfLink(bytesOf(after.target ?? ''));
  if (left === undefined || after === undefined) return GONE;
  try {
    if (left.isMoved) return contentOf(openToRead(left.at));
    const file = openAsLeft(addon, left.at, after);
    return file === undefined ? { why: `not shown: ${STILL_WRITTEN}` } : contentOf(file);
  } catch {
    return GONE;
  }
}

const contentOfLink = (target: Buffer): Content =>
  isUtf8(target) ? { text: target.toString('utf8') } : { why: 'not shown: where it leads is no UTF-8' };

const GONE: Content = { why: 'not shown: it is gone, or cannot be read' };

/** Of a file, which is closed. */
function contentOf(file: number | undefined): Content {
  if (file === undefined) return GONE;
  try {
    const info = fstatSync(file);
    if (!info.isFile()) return GONE;
    if (info.size > DIFFED_BYTES) return { why: 'not shown: it is larger than 4 MiB' };
    const bytes = readFileSync(file);
    return isText(bytes) ? { text: bytes.toString('utf8') } : { binary: bytes };
  } catch {
    return GONE;
  } finally {
    closeSync(file);
  }
}

const isText = (bytes: Buffer): boolean => isUtf8(bytes) && !bytes.includes(0);

/** So much of a file says what it holds. */
const BEGINNING = 8_192;

/** What a file holds now, or did before it went, by its beginning. */
export function contentKindOf(
  { numbers }: DescribedChange,
  set: StoredSet,
  contents: Contents,
): Change['content'] {
  const number = numbers.at(-1) ?? -1;
  const { before, after } = set.operations[number] ?? {};
  if ((after ?? before)?.kind !== 'file') return undefined;
  const at = after === undefined ? contents.before(number) : contents.left(number)?.at;
  const file = at === undefined ? undefined : openOrNot(at);
  return file === undefined ? undefined : orElse(() => beginningOf(file), undefined);
}

function beginningOf(file: number): Change['content'] {
  try {
    if (!fstatSync(file).isFile()) return undefined;
    const bytes = Buffer.alloc(BEGINNING);
    const length = readSync(file, bytes, 0, BEGINNING, 0);
    // A character may be cut off.
    const cut = length < BEGINNING ? [length] : [0, 1, 2, 3].map((less) => length - less);
    return cut.some((end) => isText(bytes.subarray(0, end))) ? 'text' : 'binary';
  } finally {
    closeSync(file);
  }
}
