import { spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, posix } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { roomOf } from '../scripts/test-projects.mjs';

const ROOT = fileURLToPath(new URL('..', import.meta.url));

/**
 * The dependency direction (docs/design.md): a house of src/ imports from itself and from earlier rows, not from its own row and not
 * from later ones.
 */
const HOUSES: readonly (readonly string[])[] = [
  ...[['base'], ['confine'], ['model'], ['judge', 'policy'], ['workspace'], ['gate'], ['run']],
  ...[['serve', 'agents', 'fleet'], ['cli']],
];

/** The same within a house, where its rooms (folders, and the rest of the house) have an order. */
const ROOMS: readonly (readonly string[])[] = [
  ...[['confine/kernel'], ['confine/native'], ['confine/plan'], ['confine/backends'], ['confine']],
  ...[['judge/programs'], ['judge/shell', 'judge/checks']],
  ...[['workspace/host'], ['workspace/left-behind']],
  ['gate/state'],
  ['gate/approvals', 'gate/review', 'gate/hooks', 'gate/audit'],
  ...[['gate/nats'], ['gate/decide']],
  ...[['run/change-sets', 'run/other-backends'], ['run'], ['cli/attack'], ['cli']],
];

/** Houses whose files other houses import by themselves: their README says why. */
const WITHOUT_INDEX = ['base', 'confine'];
/** What others may import of a house besides its index; the README of the house says why. */
const SECOND_ENTRIES = ['gate/nats/index.ts', 'model/fleet.ts'];
/**
 * Modules that other houses load by `import()` when they are needed, and that no `import` of another house names. By an index, a
 * bundle would have to load all that the index names.
 */
const LOADED_LATER = [
  'agents/mcp/server.ts',
  'gate/decide/judge.ts',
  'gate/decide/judgement.ts',
  'gate/decide/rule-examples.ts',
  'model/policy-file.ts',
  'policy/load.ts',
  'policy/locate-key.ts',
  'run/resolve/policy-layers.ts',
  'run/stateful-parts.ts',
  'run/validation.ts',
  'serve/approvals/web/web-server.ts',
  'serve/core/listener.ts',
  'serve/gate/ask-gate.ts',
  'serve/gate/gate-service.ts',
  'serve/sandbox/service.ts',
];

/** Files in src/ itself: what may import them, and what they may import. */
const ROOT_FILES: Readonly<Record<string, { readonly importedBy: RegExp; readonly imports: RegExp }>> = {
  // The core with a look at its input: nobody inside goes through it, as what it gives is made here.
  'containment.ts': { importedBy: /^$/, imports: /^(?:base|confine)\// },
  // The public API: nobody inside goes through it. It names files: by the indexes, compilers of users would read the declarations of
  // all that these name, with libraries that users need not have.
  'index.ts': { importedBy: /^$/, imports: /./ },
  'version.ts': { importedBy: /./, imports: /^$/ },
};

/** No input or output here; what is not in the text of a request comes in as a port. */
const PURE = [
  ...['base', 'confine/kernel', 'model', 'judge/programs', 'judge/shell', 'policy', 'judge/checks'],
  'confine/plan',
];
const IMPURE_FILES = new Map([
  ['policy/load.ts', 'reads policy files'],
  ['judge/programs/grammars.ts', 'reads data of this package, which is as constant as its code'],
]);
/** What pure code may use of Node: path arithmetic, and the tables of numbers in node:os. */
const PURE_BUILTINS =
  /^import (\{[^}]*\} from 'node:path'|\{ constants \} from 'node:os'|\{ fileURLToPath \} from 'node:url');$/;

/** Where calls come in: what a caller brings (`Surroundings`) is read here and handed on. */
const DOORS = [
  // Of the command line, and by way of it of all servers.
  'cli/shared/caller.ts',
  // The library's.
  'run/sandbox.ts',
  'fleet/sandboxes.ts',
  'fleet/archive/receive.ts',
  // Of a process that has taken a command over, with its variables.
  'run/embed/embedded.ts',
];
const SURROUNDINGS = 'workspace/host/surroundings.ts';

interface Import {
  readonly from: string;
  readonly to: string;
  /** By `import()`. */
  readonly how?: 'later';
}

/** Whether one file may import another, of another house or of its own. */
function mayEnter(from: string, to: string, how?: 'later'): boolean {
  if (folderOf(from) === folderOf(to)) return !/^[a-z-]+\/index\.ts$/.test(to);
  if (how === 'later') return LOADED_LATER.includes(to);
  return isIndex(to) || WITHOUT_INDEX.includes(folderOf(to));
}

/** By all of `import('…')` and none of `from '…'`: later. */
function howLoaded(from: string, spelled: string): Pick<Import, 'how'> {
  const path = spelled.slice(1, -1);
  return text(`src/${from}`).includes(`from '${path}'`) ? {} : { how: 'later' };
}

/** Every import among the files of src/, `import type` and `import()` included: the compiler is asked. */
function importGraph(): readonly Import[] {
  const compiler = join(ROOT, 'node_modules/typescript/bin/tsc');
  const listing = spawnSync(process.execPath, [compiler, '--explainFiles', '--noCheck'], {
    cwd: ROOT,
    encoding: 'utf8',
    maxBuffer: 64 * 1024 * 1024,
  });
  const imports: Import[] = [];
  let to: string | undefined;
  for (const line of listing.stdout.split('\n')) {
    if (!line.startsWith(' ')) to = /^src\/(.*)$/.exec(line)?.[1];
    const [, spelled = '', from] = /^\s+Imported via (\S+) from file 'src\/(.*?)'/.exec(line) ?? [];
    if (from !== undefined && to !== undefined) imports.push({ from, to, ...howLoaded(from, spelled) });
  }
  return imports;
}

function filesBeneath(folder: string, ending: RegExp): readonly string[] {
  return readdirSync(join(ROOT, folder), { recursive: true, encoding: 'utf8' })
    .filter((file) => ending.test(file))
    .sort();
}

const text = (path: string) => readFileSync(join(ROOT, path), 'utf8');
/** A class that is longer has several jobs. */
const CLASS_LINES = 350;

const folderOf = (file: string) => (file.includes('/') ? (file.split('/')[0] ?? '') : '');
const isIndex = (file: string) => /^[a-z-]+\/index\.ts$/.test(file) || SECOND_ENTRIES.includes(file);
const rowOf = (rows: typeof HOUSES, name: string) => rows.findIndex((row) => row.includes(name));
/** Of the houses, or of the rooms of a house: what `name` must not import. */
const forbiddenTo = (rows: typeof HOUSES, name: string): readonly string[] =>
  rows
    .slice(rowOf(rows, name))
    .flat()
    .filter((other) => other !== name);

const IMPORTS = importGraph();
const SOURCES = filesBeneath('src', /\.ts$/);
const describeImport = ({ from, to }: Import) => `${from} → ${to}`;

describe('the import graph of src', () => {
  it('is seen as a whole: values, types and dynamic imports', () => {
    const seen = IMPORTS.map(describeImport);
    expect(seen).toContain('confine/confine.ts → confine/plan/plan.ts');
    expect(seen).toContain('confine/plan/launch-plan.ts → confine/kernel/landlock/rights.ts');
    expect(seen).toContain('policy/load.ts → model/policy-file.ts');
    expect(seen).toContain('cli/run/run.ts → run/index.ts');
  });

  it('has a layer for every house, and a rule for every file outside of one', () => {
    const houses = new Set(SOURCES.map(folderOf).filter((house) => house !== ''));
    expect([...houses].toSorted()).toEqual(HOUSES.flat().toSorted());
    expect(SOURCES.filter((file) => folderOf(file) === '')).toEqual(Object.keys(ROOT_FILES));
    const rooms = new Set(SOURCES.map(roomOf));
    expect(ROOMS.flat().filter((room) => !rooms.has(room))).toEqual([]);
  });

  it.each(HOUSES.flat())('%s imports only itself and earlier houses', (house) => {
    const forbidden = forbiddenTo(HOUSES, house);
    const wrong = IMPORTS.filter(
      ({ from, to }) => folderOf(from) === house && forbidden.includes(folderOf(to)),
    );
    expect(wrong.map(describeImport)).toEqual([]);
  });

  it.each(ROOMS.flat())('%s imports only earlier rooms of its house', (room) => {
    const forbidden = forbiddenTo(ROOMS, room).filter(
      (other) => folderOf(`${other}/`) === folderOf(`${room}/`),
    );
    const wrong = IMPORTS.filter(
      ({ from, to }) => roomOf(from) === room && !isIndex(from) && forbidden.includes(roomOf(to)),
    );
    expect(wrong.map(describeImport)).toEqual([]);
  });

  it('enters a house by its index, from another one, and by nothing else', () => {
    const wrong = (imports: readonly Import[]) =>
      imports.filter(
        ({ from, to, how }) => folderOf(from) !== '' && folderOf(to) !== '' && !mayEnter(from, to, how),
      );
    expect(wrong(IMPORTS).map(describeImport)).toEqual([]);
    // A control: these are seen.
    const deep = { from: 'run/sandbox.ts', to: 'gate/decide/controls.ts' };
    const later = { from: 'run/sandbox.ts', to: 'gate/index.ts', how: 'later' } as const;
    const now = { from: 'run/sandbox.ts', to: 'gate/decide/judgement.ts' };
    const own = { from: 'gate/decide/decide.ts', to: 'gate/index.ts' };
    expect(wrong([deep, later, now, own])).toEqual([deep, later, now, own]);
  });

  it('loads later what is said to be, and only that', () => {
    const loaded = IMPORTS.filter(({ from, to, how }) => how === 'later' && folderOf(from) !== folderOf(to));
    expect([...new Set(loaded.map(({ to }) => to))].toSorted()).toEqual(LOADED_LATER);
  });

  it.each(Object.entries(ROOT_FILES))('%s keeps to its rule', (file, rule) => {
    const importers = IMPORTS.filter(({ to }) => to === file).map(({ from }) => from);
    const imported = IMPORTS.filter(({ from }) => from === file).map(({ to }) => to);
    expect(importers.filter((from) => !rule.importedBy.test(from))).toEqual([]);
    expect(imported.filter((to) => !rule.imports.test(to))).toEqual([]);
  });

  it('ties decide to what has a state by ports of the model only', () => {
    const rooms = ['approvals', 'state', 'review', 'hooks', 'audit'].map((name) => `gate/${name}`);
    const known = IMPORTS.filter(
      ({ from, to }) => roomOf(from) === 'gate/decide' && [...rooms, 'confine/backends'].includes(roomOf(to)),
    );
    expect(known.map(describeImport)).toEqual([]);
  });

  /** Starts a program of ours, which lies beside the addon wherever that is. */
  const USES_A_PROGRAM = 'run/other-backends/application.ts';

  it('loads the addon in confine, run, serve, attack and cli only; everybody else knows its contract at most', () => {
    const others = IMPORTS.filter(({ from, to }) => {
      return (
        roomOf(to) === 'confine/native' &&
        to !== 'confine/native/contract.ts' &&
        roomOf(from) !== 'confine/native' &&
        from !== USES_A_PROGRAM &&
        from !== 'confine/index.ts'
      );
    }).map(({ from }) => roomOf(from));
    // By the index its name says so.
    const byIndex = SOURCES.filter((file) =>
      /\{[^}]*\bloadAddon\b[^}]*\} from '[^']*\/confine\/index\.ts'/.test(text(`src/${file}`)),
    ).map(roomOf);
    expect(
      [...new Set([...others, ...byIndex])].filter(
        (folder) => !['confine', 'run', 'serve', 'cli/attack', 'cli'].includes(folder),
      ),
    ).toEqual([]);
  });

  it('asks at the doors who called and from where, and nowhere behind them', () => {
    const asks = (file: string, source: string) => {
      const code = source.replace(/^\s*(?:\/?\*|\/\/).*$/gm, '');
      const isDoor = DOORS.includes(file) || file === SURROUNDINGS || file === 'workspace/index.ts';
      const ambient = folderOf(file) !== 'cli' && !file.startsWith('serve/warm/') && /\bcaller\(/.test(code);
      return ambient || (!isDoor && /\bOF_THIS_PROCESS\b|\bprocess\.cwd\(/.test(code));
    };
    expect(SOURCES.filter((file) => asks(file, text(`src/${file}`)))).toEqual([]);
    // Each is one.
    expect(DOORS.filter((file) => !text(`src/${file}`).includes('OF_THIS_PROCESS'))).toEqual([]);
    // A control: these are seen.
    expect(asks('run/a.ts', 'const { env } = caller();')).toBe(true);
    expect(asks('run/sandbox.ts', 'const { env } = caller();')).toBe(true);
    expect(asks('cli/a.ts', 'const { env } = caller();')).toBe(false);
    expect(asks('cli/a.ts', 'resolve(process.cwd())')).toBe(true);
    expect(asks('gate/a.ts', 'judge(OF_THIS_PROCESS.env)')).toBe(true);
    expect(asks('gate/a.ts', '// Not caller(): a server has many.')).toBe(false);
  });

  it(`has no class over ${CLASS_LINES} lines on the way of a command, and finds one that is`, () => {
    const long = (source: string) =>
      [...source.matchAll(/^(?:export )?(?:abstract )?class (\w+).*?^\}/gms)].flatMap(([text, name]) =>
        text.split('\n').length > CLASS_LINES ? [name] : [],
      );
    expect(long(`class Long {\n${'  x;\n'.repeat(CLASS_LINES)}}\n`)).toEqual(['Long']);
    const onTheWay = SOURCES.filter((file) => ['run', 'gate'].includes(folderOf(file)));
    expect(onTheWay.flatMap((file) => long(text(`src/${file}`)))).toEqual([]);
  });

  it('has no cycles', () => {
    const left = new Map(SOURCES.map((file) => [file, new Set<string>()]));
    for (const { from, to } of IMPORTS) left.get(from)?.add(to);
    // Takes away files that import nothing that is left, until there are none: what remains is in a cycle.
    for (let size = -1; size !== left.size; ) {
      size = left.size;
      for (const [file, imported] of left) {
        if (![...imported].some((other) => left.has(other))) left.delete(file);
      }
    }
    expect([...left.keys()]).toEqual([]);
  });

  it('is told to the linter, by a row for each house (-u writes it)', async () => {
    const rowFor = (includes: readonly string[], group: readonly string[], message: string) => {
      const noRestrictedImports = { level: 'error', options: { patterns: [{ group, message }] } };
      return JSON.stringify({ includes, linter: { rules: { style: { noRestrictedImports } } } });
    };
    const oneOf = (names: readonly string[]) => (names.length === 1 ? names[0] : `{${names.join(',')}}`);
    const inside = (houses: readonly string[], at = '**/') =>
      houses.length === 0 ? [] : [`${at}${oneOf(houses)}/**`];
    const entries = (houses: readonly string[], at = '!**/') => {
      const closed = houses.filter((house) => !WITHOUT_INDEX.includes(house));
      return closed.length === 0 ? [] : [`${at}${oneOf(closed)}/index.ts`];
    };
    const others = (files: readonly string[], houses: readonly string[], at = '!**/') => {
      const open = files.filter((file) => houses.includes(folderOf(file)));
      return open.length === 0 ? [] : [`${at}${oneOf(open)}`];
    };
    const rows = HOUSES.flat().map((house) => {
      // A room of the same name is no house: what is said of that house here is about its rooms only.
      const rooms = new Set(
        SOURCES.filter((file) => folderOf(file) === house).map((file) => file.split('/')[1]),
      );
      const later = forbiddenTo(HOUSES, house).filter((other) => !rooms.has(other));
      const earlier = HOUSES.slice(0, rowOf(HOUSES, house)).flat();
      const closed = earlier.filter((other) => !WITHOUT_INDEX.includes(other));
      const [alike, plain] = [true, false].map((is) => closed.filter((other) => rooms.has(other) === is));
      return rowFor(
        [`src/${house}/**`],
        [
          ...inside([...(plain ?? []), ...later]),
          ...(alike ?? []).map((other) => `**/${other}/*/**`),
          ...entries(earlier),
          ...others([...SECOND_ENTRIES, ...LOADED_LATER], earlier),
        ],
        'A house is entered by its index, by later houses only: see test/layering.test.ts.',
      );
    });
    const closed = HOUSES.flat().filter((house) => !WITHOUT_INDEX.includes(house));
    const outside = rowFor(
      ['test/**', 'scripts/**', '!test/unit/**'],
      [
        ...inside(closed, '**/src/'),
        ...entries(closed, '!**/src/'),
        ...others(SECOND_ENTRIES, closed, '!**/src/'),
      ],
      'A house is entered by its index: see test/layering.test.ts.',
    );
    const told = `{\n  "overrides": [\n    ${[...rows, outside].join(',\n    ')}\n  ]\n}\n`;
    await expect(told).toMatchFileSnapshot('../biome.layers.json');
  });

  it('is held by the linter', () => {
    const allowed = [
      ['src/agents/a.ts', '../run/index.ts'],
      ['src/serve/sandbox/b.ts', '../gate/gate-service.ts'],
      ['src/run/c.ts', '../gate/nats/index.ts'],
      ['test/unit/gate/d.ts', '../../../src/gate/decide/decide.ts'],
    ] as const;
    const refused = [
      ['src/agents/e.ts', '../run/sandbox.ts'],
      ['src/run/f.ts', '../fleet/index.ts'],
      ['src/serve/sandbox/g.ts', '../../gate/decide/decide.ts'],
      ['test/library/h.ts', '../../src/gate/decide/decide.ts'],
    ] as const;
    const root = mkdtempSync(join(tmpdir(), 'layers-'));
    try {
      writeFileSync(join(root, 'biome.json'), text('biome.layers.json'));
      for (const [file, from] of [...allowed, ...refused]) {
        mkdirSync(join(root, file, '..'), { recursive: true });
        writeFileSync(join(root, file), `export { a } from '${from}';\n`);
      }
      const biome = join(ROOT, 'node_modules/@biomejs/biome/bin/biome');
      const { stdout } = spawnSync(process.execPath, [biome, 'lint', '--reporter=github'], {
        ...{ cwd: root, encoding: 'utf8' },
      });
      const told = [...stdout.matchAll(/title=lint\/style\/noRestrictedImports,file=([^,]*)/g)];
      expect(told.map(([, file = '']) => file).toSorted()).toEqual(refused.map(([file]) => join(root, file)));
    } finally {
      rmSync(root, { recursive: true });
    }
  });
});

describe('what is outside of src', () => {
  /** They have the text of an import of a file. */
  const WRITERS = ['test/layering.test.ts', 'scripts/build.mjs'];
  const outside = ['test', 'scripts', 'bench', 'examples'].flatMap((top) =>
    filesBeneath(top, /\.(ts|mts|mjs)$/)
      .map((file) => `${top}/${file}`)
      .filter((file) => !WRITERS.includes(file) && !file.includes('/node_modules/')),
  );
  /** The tests of a house's inside. */
  const houseOf = (file: string) => /^test\/unit\/([a-z-]+)\//.exec(file)?.[1];
  const importsOf = (file: string, code = text(file)) =>
    [...code.matchAll(/(?:\bfrom|\bimport\()\s*'(?:\.\.?\/)+src\/([^']+)'/g)].map(([, path = '']) => path);

  /** base is, and the rooms of confine by their index; to the tests of other houses' insides, all of both. */
  const isOpenTo = (file: string, path: string) =>
    folderOf(path) === 'base' ||
    (folderOf(path) === 'confine' &&
      (houseOf(file) !== undefined || /^confine\/[a-z-]+\/index\.ts$/.test(path)));
  const deepIn = (file: string, code?: string) =>
    importsOf(file, code).filter(
      (path) => !isIndex(path) && !isOpenTo(file, path) && !['', houseOf(file)].includes(folderOf(path)),
    );

  it('enters a house by its index, unless it is a test of that house', () => {
    expect(outside.flatMap((file) => deepIn(file).map((path) => `${file} → ${path}`))).toEqual([]);
    expect(outside.flatMap((file) => importsOf(file))).toContain('run/index.ts');
    // A control: this is seen.
    const code = "import { a } from '../../../src/gate/decide/decide.ts';";
    expect(deepIn('test/unit/run/a.test.ts', code)).toEqual(['gate/decide/decide.ts']);
    expect(deepIn('test/unit/gate/a.test.ts', code)).toEqual([]);
  });

  it('or another house uses each name that an index exports', () => {
    const users = [...SOURCES.map((file) => `src/${file}`), ...outside].map((file) => ({
      file,
      code: text(file),
    }));
    // An entry that is no list of names has what its own house uses, too.
    const isList = (file: string) => isIndex(file) && file.endsWith('/index.ts');
    const unused = SOURCES.filter((file) => isList(file) && !WITHOUT_INDEX.includes(folderOf(file))).flatMap(
      (index) => {
        // By its path from anywhere; what is in braces is looked for in all of them.
        const imported = users.flatMap(({ file, code }) =>
          [...code.matchAll(/\{([^}]*)\}\s*from '([^']+)'/g)]
            .filter(([, , path = '']) => posix.join(posix.dirname(file), path) === `src/${index}`)
            .map(([, names = '']) => names),
        );
        const names = [...text(`src/${index}`).matchAll(/\{([^}]*)\}/g)].flatMap(([, list = '']) =>
          list.split(',').flatMap((name) => /\w+\s*$/.exec(name.trim())?.[0] ?? []),
        );
        return names
          .filter((name) => !imported.some((list) => new RegExp(`\\b${name}\\b`).test(list)))
          .map((name) => `${index}: ${name}`);
      },
    );
    expect(unused).toEqual([]);
  });

  it('finds each entry of a house in its README', () => {
    const named = [...SECOND_ENTRIES, ...LOADED_LATER].filter(
      (file) => !text(`src/${folderOf(file)}/README.md`).includes(`\`${file.slice(file.indexOf('/') + 1)}\``),
    );
    expect(named).toEqual([]);
  });
});

describe('pure code', () => {
  const files = SOURCES.filter((file) => PURE.includes(roomOf(file)) && !IMPURE_FILES.has(file));

  it.each(files)('%s does no input or output', (file) => {
    const lines = text(`src/${file}`).split('\n');
    const builtins = lines.filter((line) => /['"]node:/.test(line) && !PURE_BUILTINS.test(line));
    expect(builtins).toEqual([]);
    // Outside of comments and text, as far as that can be told from a line.
    const code = lines.filter((line) => !/^\s*(\/?\*|\/\/)/.test(line));
    const outside =
      /\bprocess\.|\bconsole\.|\bDate\.now\b|new Date\b|Math\.random|\bfetch\(|\bsetTimeout\b|\brequire\(/;
    expect(code.filter((line) => outside.test(line.replace(/'[^']*'|`[^`]*`/g, "''")))).toEqual([]);
  });
});

describe('the includes of native', () => {
  const NATIVE_LAYERS = [
    ['base'],
    ['sys'],
    ['core', 'attack', 'portable', 'steps', 'client'],
    ['notify', 'index', 'shell', 'begin'],
    ['guests', 'publish'],
    ['binding'],
  ];
  const nativeLayer = (folder: string) => NATIVE_LAYERS.findIndex((row) => row.includes(folder));
  const files = filesBeneath('native', /\.(cc|h)$/);

  it.each(files)('%s includes only its own folder and earlier ones', (file) => {
    const included = [...text(`native/${file}`).matchAll(/^#include "([^"]+)"/gm)].map(
      (match) => match[1] ?? '',
    );
    const wrong = included.filter((header) => {
      const [mine, theirs] = [folderOf(file), folderOf(header)];
      return theirs !== mine && (nativeLayer(theirs) === -1 || nativeLayer(theirs) >= nativeLayer(mine));
    });
    expect(nativeLayer(folderOf(file))).not.toBe(-1);
    expect(wrong).toEqual([]);
    expect(included.filter((header) => !files.includes(posix.normalize(header)))).toEqual([]);
  });

  /** What has to be read to vouch for containment: native/core, and what it may include. */
  const CORE = ['base', 'sys', 'core'];
  const CORE_LINES = 12_000;
  const coreFiles = files.filter((file) => CORE.includes(folderOf(file)));

  it('lead out of native/core to base and sys only', () => {
    const included = coreFiles.flatMap((file) =>
      [...text(`native/${file}`).matchAll(/^#include "([^"]+)"/gm)].map(([, header = '']) => header),
    );
    expect(included.filter((header) => !CORE.includes(folderOf(header)))).toEqual([]);
    expect(included).toContain('core/guest.h');
    // A guest by its class would need no include to be known.
    const guests = files.filter((file) => ['notify', 'index', 'shell', 'guests'].includes(folderOf(file)));
    const classes = guests.flatMap((file) =>
      [...text(`native/${file}`).matchAll(/^(?:class|struct) (\w+)/gm)].map(([, name = '']) => name),
    );
    const named = coreFiles.filter((file) => {
      const code = text(`native/${file}`).replace(/\/\/.*$/gm, '');
      return classes.some((name) => new RegExp(`\\b${name}\\b(?!::)`).test(code));
    });
    expect(classes).toContain('NetworkSupervisor');
    expect(named).toEqual([]);
  });

  it(`of native/core cover at most ${CORE_LINES} lines`, () => {
    const lines = coreFiles.map((file) => text(`native/${file}`).split('\n').length - 1);
    const all = lines.reduce((sum, count) => sum + count, 0);
    expect(all).toBeLessThanOrEqual(CORE_LINES);
    expect(all).toBeGreaterThan(CORE_LINES / 2);
  });

  it('know Node-API in binding only', () => {
    const users = files.filter((file) =>
      /#include [<"](napi|node_api|uv|v8|node)\b/.test(text(`native/${file}`)),
    );
    expect(users.filter((file) => folderOf(file) !== 'binding')).toEqual([]);
    expect(users).not.toEqual([]);
  });
});
