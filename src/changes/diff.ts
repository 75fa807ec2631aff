import { closeSync, constants, fstatSync, openSync, readFileSync } from 'node:fs';
import { createTwoFilesPatch } from 'diff';
import { visibleText } from '../util/visible-text.ts';
import { joined } from './below.ts';
import type { DescribedChange } from './describe.ts';
import { openToRead } from './held-paths.ts';
import type { ChangeStore, StoredSet } from './store.ts';

/** Larger files are not compared line by line, nor those for which that takes longer. */
const DIFFED_BYTES = 4 * 1024 * 1024;
const PATIENCE_MS = 2_000;

/**
 * One change as git shows it: a unified diff for text, one line for what is none. `beforeAt`: where the content of what an
 * operation found can be read.
 */
export function diffOf(
  { change, numbers }: DescribedChange,
  set: StoredSet,
  store: ChangeStore,
  beforeAt: (number: number) => Buffer | undefined,
): string {
  const { kind, mode, modeBefore } = change;
  // A name is one line: it says nothing about other files.
  const [path, from, target] = [change.path, change.from, change.target].map(
    (name) => name && visibleText(name),
  );
  const [first = -1, last = first] = numbers;
  const after = set.operations[last]?.after;
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
  if ((after ?? before)?.kind !== 'file' || from !== undefined) return `${head}\n`;
  const [old, now] = [
    before?.kind === 'file' ? contentOf(beforeAt(first)) : '',
    after === undefined
      ? ''
      : contentOf(joined(store.upperOf(set.id), set.operations[last]?.path ?? ''), after.mode),
  ];
  if (old === undefined || now === undefined) return `${head}\nbinary, large or gone: not shown\n`;
  if (old === now) return `${head}\n`;
  const patch: string | undefined = createTwoFilesPatch(
    before === undefined ? '/dev/null' : `a/${path}`,
    after === undefined ? '/dev/null' : `b/${path}`,
    ...[old, now, undefined, undefined],
    { context: 3, timeout: PATIENCE_MS },
  );
  const lines = patch?.split('\n').filter((line) => !/^=+$/.test(line));
  return lines === undefined ? `${head}\ntoo different to be shown\n` : `${head}\n${lines.join('\n')}`;
}

/** Of a text file; `undefined`: it is none, too large or gone. `ownMode`: of a file of the layer, which is ours. */
function contentOf(path: Buffer | undefined, ownMode?: number): string | undefined {
  if (path === undefined) return undefined;
  try {
    const flags = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK;
    const file = ownMode === undefined ? openSync(path, flags) : openToRead(path, ownMode);
    try {
      const info = fstatSync(file);
      if (!info.isFile() || info.size > DIFFED_BYTES) return undefined;
      const bytes = readFileSync(file);
      const text = bytes.toString('utf8');
      return bytes.includes(0) || text.includes('\ufffd') ? undefined : text;
    } finally {
      closeSync(file);
    }
  } catch {
    return undefined;
  }
}
