import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { transform } from 'esbuild';
import { parseAst } from 'vite';
import { describe, expect, it } from 'vitest';

const SRC = fileURLToPath(new URL('../../../../src', import.meta.url));

/** Functions of node:fs and node:fs/promises that make or change something at a path, without their `Sync`. */
const CHANGES = new Set([
  ...['appendFile', 'chmod', 'chown', 'copyFile', 'cp', 'createWriteStream', 'lchmod', 'lchown', 'link'],
  ...['lutimes', 'mkdir', 'mkdtemp', 'rename', 'symlink', 'truncate', 'utimes', 'writeFile'],
]);
/** Flags with which open(2) changes nothing. */
const READS =
  /^(?:'r'|"r"|(?:(?:constants\.)?O_(?:RDONLY|PATH|DIRECTORY|NOFOLLOW|NONBLOCK|NOCTTY|CLOEXEC)|READ|\s|\|)+)$/;

interface Node {
  readonly type: string;
  readonly [key: string]: unknown;
}
const isNode = (value: unknown): value is Node =>
  typeof value === 'object' && value !== null && typeof (value as Node).type === 'string';

/** What changes a path in a text of TypeScript: the name of the function around it, with what it calls. */
async function changesIn(typescript: string): Promise<ReadonlySet<string>> {
  const { code } = await transform(typescript, { loader: 'ts', target: 'esnext' });
  const found = new Set<string>();
  const names = new Map<string, string>();
  const walk = (node: Node, around: string, parent: Node | undefined): void => {
    if (node.type === 'ImportDeclaration') {
      if (!/^(?:node:)?fs(?:\/promises)?$/.test((node.source as { value: string }).value)) return;
      for (const specifier of node.specifiers as readonly Node[]) {
        const { name } = specifier.local as { name: string };
        const imported = (specifier.imported as { name?: string } | undefined)?.name;
        // What is not named one by one cannot be followed.
        if (imported === undefined) found.add(`all of node:fs as ${name}`);
        else names.set(name, imported.replace(/Sync$/, ''));
      }
      return;
    }
    if (node.type === 'ImportExpression' && /\bfs\b/.test(String((node.source as Node).value)))
      found.add('import() of node:fs');
    const original = node.type === 'Identifier' ? names.get(String(node.name)) : undefined;
    const isProperty =
      (parent?.type === 'MemberExpression' && parent.property === node && parent.computed !== true) ||
      (parent?.type === 'Property' && parent.key === node && parent.shorthand !== true) ||
      (parent?.type === 'MethodDefinition' && parent.key === node);
    if (original !== undefined && !isProperty) {
      const isCall = parent?.type === 'CallExpression' && parent.callee === node;
      const flags = isCall ? (parent.arguments as readonly { start: number; end: number }[])[1] : undefined;
      const isOpening = original === 'open' && flags !== undefined;
      if (CHANGES.has(original) || (isOpening && !READS.test(code.slice(flags.start, flags.end))))
        found.add(`${around}: ${String(node.name)}`);
      if (original === 'open' && !isCall) found.add(`${around}: ${String(node.name)}`);
    }
    const own = nameOf(node, parent);
    for (const [key, value] of Object.entries(node)) {
      if (key === 'start' || key === 'end') continue;
      for (const child of Array.isArray(value) ? value : [value])
        if (isNode(child)) walk(child, own ?? around, node);
    }
  };
  walk(parseAst(code) as unknown as Node, '(module)', undefined);
  return found;
}

/** The name that a function has, which people look for. */
function nameOf(node: Node, parent: Node | undefined): string | undefined {
  const text = (id: unknown) => (isNode(id) ? String(id.name ?? id.value ?? '') : undefined);
  if (node.type === 'FunctionDeclaration') return text(node.id);
  if (node.type === 'MethodDefinition') return `${node.static === true ? 'static ' : ''}${text(node.key)}`;
  const isFunction = node.type === 'ArrowFunctionExpression' || node.type === 'FunctionExpression';
  if (isFunction && parent?.type === 'VariableDeclarator') return text(parent.id);
  return undefined;
}

const ANEW = 'the one way to write a file that a user names: src/workspace/host/written-file.ts';
const HELD =
  'at a name in a held directory: exclusively, by a rename, or by its own handle, so that no link is followed';
const STATE = 'in the state directory or the audit trail, which no command can write (own-paths)';
const FRESH = 'in a directory that mkdtemp has just made, beneath no workspace that a command has';
const DEVICE = 'a terminal, or a file that is only looked at';
const BUILD = 'run by the build, not by users';
const ATTACK = 'in the arena of doctor --attack, before the attack begins';
const CACHE = 'in the directory of a cache, of which commands can write only what lies in `places`';

/** THE table of what changes files by a path: the file, the function, and why no command can have put a link there. */
const KNOWN: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  'gate/approvals/terminal.ts': { openTerminal: DEVICE, takeKeysAgain: DEVICE, columnsOf: DEVICE },
  'cli/services/records.ts': { claimRecord: STATE, noteState: STATE },
  'cli/attack/arena.ts': { inRoot: ATTACK, makeOutside: ATTACK, make: ATTACK, fillWorkspace: ATTACK },
  'cli/attack/file-attacks.ts': { victimIn: ATTACK, leaves: ATTACK, '(module)': ATTACK },
  'cli/attack/kernel-attacks.ts': { inDirectory: ATTACK, setUidProgram: ATTACK },
  'gate/audit/older-files.ts': { takeOver: STATE, lockHead: STATE },
  'gate/audit/publisher.ts': { note: STATE, trailName: STATE },
  'run/change-sets/apply.ts': { carryOut: STATE, readJournal: STATE, noteIntent: STATE, openJournal: STATE },
  'run/change-sets/copies.ts': { ofOpened: STATE, copyTree: STATE, copyLink: STATE },
  'run/change-sets/diff.ts': { diffWithin: DEVICE, openOrNot: DEVICE },
  'run/change-sets/file-clock.ts': { openNameless: HELD },
  'run/change-sets/index-outside.ts': { keepIndex: STATE },
  'run/change-sets/held-paths.ts': { widen: HELD, openToRead: HELD },
  'run/change-sets/operations.ts': { madeReadable: HELD, haveSameBytes: DEVICE },
  'run/change-sets/place.ts': { make: HELD, removeMarks: HELD, linkTo: HELD },
  'run/change-sets/places.ts': { finish: HELD, drop: HELD },
  'run/change-sets/renames.ts': {
    ...{ renameVacant: HELD, renameOurs: HELD, widened: HELD },
    ...{ exchangeNames: HELD, isLinked: HELD, finishExchange: HELD },
  },
  'run/change-sets/store.ts': {
    makeDirectory: STATE,
    save: STATE,
    tryLock: STATE,
    setAside: STATE,
    openLayer: STATE,
  },
  'cli/describe/generate.ts': { '(module)': BUILD },
  'cli/doctor/examine.ts': { temporaryWorkspace: FRESH },
  'cli/fleet/worker.ts': { worker: 'makes a directory, and writes nothing: commands of jobs lie in it' },
  'cli/warm/start.ts': { noteEnd: STATE, forgetEnds: STATE },
  'fleet/archive/fetch.ts': { unpack: HELD, make: HELD },
  'fleet/archive/receive.ts': { holdEmpty: ANEW, holdChanges: FRESH },
  'fleet/sandboxes.ts': { fresh: FRESH },
  'workspace/host/held-directory.ts': { inWritableDirectoryOf: HELD, replaceFile: HELD, takeLock: HELD },
  'workspace/host/user-directories.ts': { makeDirectories: STATE },
  'workspace/host/written-file.ts': {
    atPlaceOf: ANEW,
    replaceAt: ANEW,
    writeExclusively: ANEW,
    chmodItself: ANEW,
  },
  'workspace/left-behind/baseline.ts': { make: HELD },
  'workspace/left-behind/git-config.ts': { changeGitConfig: HELD, overwrite: HELD },
  'workspace/left-behind/hook-copies.ts': { keep: STATE, keepPath: STATE, writeTree: STATE },
  'workspace/left-behind/kept.ts': { keep: STATE, move: HELD, rest: HELD, moveAway: HELD, putBack: HELD },
  'workspace/left-behind/settle-git.ts': { writeNew: HELD },
  'policy/load.ts': { readText: DEVICE },
  'run/embed/handover.ts': {
    namelessFile: 'a file that has no name',
    openAt: 'a descriptor of another process, which is written once it is known to be such a file',
  },
  'run/launch/failed-lines.ts': { write: STATE },
  'run/made-files.ts': { append: STATE, shorten: STATE },
  'run/output/named-files.ts': { openRegular: HELD },
  'run/output/spill.ts': { openSpill: STATE },
  'run/remove-tree.ts': { removeTree: 'what is removed: the directory around it is not the command’s' },
  'run/resolve/resolve-policy.ts': { canMakeDirectory: FRESH },
  'run/resolve/saved-index.ts': { saveIndex: STATE },
  'run/resolve/seed-npm-cache.ts': { seedNpmCache: CACHE, takeOver: HELD, openInside: HELD },
  'run/resolve/trim-caches.ts': { isDue: CACHE },
  'run/resolve/workspace-cache.ts': {
    ...{ openIfThere: CACHE, makeCache: CACHE, makePlaces: HELD, ownDirectory: CACHE },
  },
  'run/resolve/workspace-findings.ts': { closeHooksGap: HELD },
  'gate/state/database-file.ts': { makeFile: STATE, putInPlace: STATE },
};

const SOURCES = readdirSync(SRC, { recursive: true, encoding: 'utf8' })
  .filter((file) => file.endsWith('.ts'))
  .sort();

describe('what changes files by their paths', () => {
  it('is all in the table, so that nothing is written where a command could have put a link', async () => {
    const found = await Promise.all(
      SOURCES.map(async (file) => ({
        file,
        all: [...(await changesIn(readFileSync(join(SRC, file), 'utf8')))],
      })),
    );
    const unknown = found.flatMap(({ file, all }) =>
      all
        .filter((one) => KNOWN[file]?.[one.split(': ')[0] ?? ''] === undefined)
        .map(
          (one) =>
            `src/${file}: ${one}: write it with src/workspace/host/written-file.ts, or say here why not`,
        ),
    );
    expect(unknown).toEqual([]);
    const gone = Object.entries(KNOWN).flatMap(([file, functions]) =>
      Object.keys(functions)
        .filter(
          (name) =>
            !found.some((one) => one.file === file && one.all.some((at) => at.startsWith(`${name}: `))),
        )
        .map((name) => `${file}: ${name}`),
    );
    expect(gone).toEqual([]);
  });

  it.each([
    [
      "import { writeFileSync } from 'node:fs'; function a(p: string) { writeFileSync(p, ''); }",
      'a: writeFileSync',
    ],
    ["import { writeFile as put } from 'node:fs/promises'; const b = () => put('p', '');", 'b: put'],
    ["import { openSync } from 'fs'; class C { d() { return openSync('p', 'w'); } }", 'd: openSync'],
    ["import { openSync } from 'node:fs'; export const e = [openSync];", '(module): openSync'],
    [
      "import { cpSync } from 'node:fs'; export function f() { return [1].map(() => cpSync('a', 'b')); }",
      'f: cpSync',
    ],
    ["import * as fs from 'node:fs'; fs.writeFileSync('p', '');", 'all of node:fs as fs'],
    ["export const g = async () => (await import('node:fs')).writeFileSync('p', '');", 'import() of node:fs'],
  ])('is found in %s', async (source, found) => {
    expect([...(await changesIn(source))]).toEqual([found]);
  });

  it.each([
    "import { openSync } from 'node:fs'; openSync('p', 'r');",
    "import { openSync } from 'node:fs'; openSync('p');",
    "import { constants, openSync } from 'node:fs'; openSync('p', constants.O_RDONLY | constants.O_NOFOLLOW);",
    "import { readFileSync } from 'node:fs'; readFileSync('p');",
  ])('is not found in %s', async (source) => {
    expect([...(await changesIn(source))]).toEqual([]);
  });
});
