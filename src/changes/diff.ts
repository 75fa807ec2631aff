import { closeSync, constants, fstatSync, openSync, readFileSync } from 'node:fs';
import { createTwoFilesPatch } from 'diff';
import type { NativeAddon } from '../native/contract.ts';
import { orElse } from '../util/or-else.ts';
import { visibleText } from '../util/visible-text.ts';
import type { Contents, DescribedChange } from './describe.ts';
import { openToRead } from './held-paths.ts';
import { openAsLeft, STILL_WRITTEN } from './left-file.ts';
import type { After } from './operations.ts';
import type { StoredCopy, StoredSet } from './store.ts';

/** Larger files are not compared line by line, nor those for which that takes longer. */
const DIFFED_BYTES = 4 * 1024 * 1024;
const PATIENCE_MS = 2_000;

/** So much is shown at once, and compared for so long: a command can change any number of files. */
export const MOST_DIFF = { characters: 64 * 1024 * 1024, ms: 60_000 };

/**
 * One change as git shows it: a unified diff for text, one line for what is none. `isEnough`: its lines are not shown any
 * more.
 */
export function diffOf(
  { change, numbers }: DescribedChange,
  set: StoredSet,
  addon: NativeAddon,
  contents: Contents,
  isEnough: boolean,
): string {
  const { kind, mode, modeBefore } = change;
  // A name is one line: it says nothing about other files.
  const [path, from, target] = [change.path, change.from, change.target].map(
    (name) => name && visibleText(name),
  );
  const [first = -1, last = first] = numbers;
  const { after } = set.operations[last] ?? {};
  const before = set.operations[first]?.before;
  const head = [
    `diff a/${from ?? path} b/${path}`,
    ...(before === undefined ? [`new ${kind}${mode === undefined ? '' : ` mode ${mode}`}`] : []),
    ...(after === undefined ? [`deleted ${kind}`] : []),
    ...(modeBefore === undefined ? [] : [`mode ${modeBefore} -> ${mode}`]),
    ...(from === undefined ? [] : [`rename from ${from}`, `rename to ${path}`]),
    ...(target === undefined ? [] : [`leads to ${target}`]),
    ...(change.objects === undefined ? [] : [`with ${change.objects.toLocaleString('en-US')} objects in it`]),
  ].join('\n');
  if ((after ?? before)?.kind !== 'file') return `${head}\n`;
  if (isEnough)
    return `${head}\nnot shown, because so much else is: sandbox-run changes diff ${set.id} PATH shows it\n`;
  const left = after?.kind === 'file' ? leftFile(addon, contents.left(last), after) : undefined;
  if (left === 'changed') return `${head}\nnot shown: ${STILL_WRITTEN}\n`;
  if (from !== undefined) {
    if (left !== undefined) closeSync(left);
    return `${head}\n`;
  }
  const old = before?.kind === 'file' ? contentOf(openOrNot(contents.before(first))) : '';
  const now = after?.kind === 'file' ? contentOf(left) : '';
  if (old === undefined || now === undefined) return `${head}\nbinary, large or gone: not shown\n`;
  const names = [
    before === undefined ? '/dev/null' : `a/${path}`,
    after === undefined ? '/dev/null' : `b/${path}`,
  ] as const;
  return linesOf(head, names, old, now);
}

/** Settings of git. */
export function diffOfCopy({ source, before, after }: StoredCopy, workspace: string): string {
  const path = visibleText(source.slice(workspace.length + 1));
  const head = `diff a/${path} b/${path}`;
  if (after === undefined) return `${head}\nnot shown: it is no configuration that can be taken over\n`;
  const [old = '', now = ''] = [before, after].map((text) => Buffer.from(text, 'base64').toString());
  return linesOf(head, [`a/${path}`, `b/${path}`], old, now);
}

function linesOf(head: string, names: readonly [string, string], old: string, now: string): string {
  if (old === now) return `${head}\n`;
  if (old === '' || now === '') return `${head}\n${wholePatch(...names, old, now)}`;
  const patch: string | undefined = createTwoFilesPatch(...[...names, old, now, undefined, undefined], {
    context: 3,
    timeout: PATIENCE_MS,
  });
  const lines = patch?.split('\n').filter((line) => !/^=+$/.test(line));
  return lines === undefined ? `${head}\ntoo different to be shown\n` : `${head}\n${lines.join('\n')}`;
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

/** What a command left, open; `changed`: it is not that any more; `undefined`: it is gone. */
function leftFile(
  addon: NativeAddon,
  left: ReturnType<Contents['left']>,
  after: After,
): number | 'changed' | undefined {
  if (left === undefined) return undefined;
  try {
    return left.isMoved ? openToRead(left.at) : (openAsLeft(addon, left.at, after) ?? 'changed');
  } catch {
    return undefined;
  }
}

function openOrNot(path: Buffer | undefined): number | undefined {
  if (path === undefined) return undefined;
  const flags = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK;
  return orElse(() => openSync(path, flags), undefined);
}

/** Of a text file, which is closed; `undefined`: it is none, too large or gone. */
function contentOf(file: number | undefined): string | undefined {
  if (file === undefined) return undefined;
  try {
    const info = fstatSync(file);
    if (!info.isFile() || info.size > DIFFED_BYTES) return undefined;
    const bytes = readFileSync(file);
    const text = bytes.toString('utf8');
    return bytes.includes(0) || text.includes('\ufffd') ? undefined : text;
  } catch {
    return undefined;
  } finally {
    closeSync(file);
  }
}
