import { spawnSync } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { join, posix } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';

const ROOT = fileURLToPath(new URL('..', import.meta.url));

/**
 * The dependency direction (CONTRIBUTING.md, "Layers"): a folder of src/ imports from itself and from earlier rows, not
 * from its own row and not from later ones. biome.layers.json says the same to the linter.
 */
const LAYERS = [
  ['util', 'errors'],
  ['kernel'],
  ['native'],
  ['model'],
  ['programs'],
  ['shell', 'policy', 'checks', 'plan', 'backends', 'approvals', 'state', 'review', 'hooks', 'audit', 'host'],
  ['left-behind', 'changes', 'nats'],
  ['decide'],
  ['run'],
  ['serve'],
  ['integrations', 'fleet', 'attack'],
  ['cli'],
] as const satisfies readonly (readonly string[])[];

/** Files in src/ itself: what may import them, and what they may import. */
const ROOT_FILES: Readonly<Record<string, { readonly importedBy: RegExp; readonly imports: RegExp }>> = {
  // The public API: nobody inside goes through it.
  'index.ts': { importedBy: /^$/, imports: /./ },
  'version.ts': { importedBy: /./, imports: /^$/ },
};

/** Imports against the direction that are accepted, each with its reason. Empty is best. */
const EXCEPTIONS: readonly { readonly from: string; readonly to: string; readonly reason: string }[] = [];

/** No input or output here; what is not in the text of a request comes in as a port. */
const PURE = ['util', 'errors', 'kernel', 'model', 'programs', 'shell', 'policy', 'checks', 'plan'];
const IMPURE_FILES = new Map([['policy/load.ts', 'reads policy files']]);
/** What pure code may use of Node: path arithmetic, and the tables of numbers in node:os. */
const PURE_BUILTINS = /^import (\{[^}]*\} from 'node:path'|\{ constants \} from 'node:os');$/;

interface Import {
  readonly from: string;
  readonly to: string;
}

/** Every import among the files of src/, `import type` and `import()` included: the compiler is asked. */
function importGraph(): readonly Import[] {
  const compiler = join(ROOT, 'node_modules/typescript/bin/tsc');
  const options = '--explainFiles --noCheck --noEmit --emitDeclarationOnly false --declaration false';
  const listing = spawnSync(
    process.execPath,
    [compiler, '-p', 'tsconfig.types.json', ...options.split(' ')],
    {
      cwd: ROOT,
      encoding: 'utf8',
      maxBuffer: 64 * 1024 * 1024,
    },
  );
  const imports: Import[] = [];
  let to: string | undefined;
  for (const line of listing.stdout.split('\n')) {
    if (!line.startsWith(' ')) to = /^src\/(.*)$/.exec(line)?.[1];
    const from = /^\s+Imported via .* from file 'src\/(.*?)'/.exec(line)?.[1];
    if (from !== undefined && to !== undefined) imports.push({ from, to });
  }
  return imports;
}

function filesBeneath(folder: string, ending: RegExp): readonly string[] {
  return readdirSync(join(ROOT, folder), { recursive: true, encoding: 'utf8' })
    .filter((file) => ending.test(file))
    .sort();
}

const text = (path: string) => readFileSync(join(ROOT, path), 'utf8');
const folderOf = (file: string) => (file.includes('/') ? (file.split('/')[0] ?? '') : '');
const layerOf = (folder: string) => LAYERS.findIndex((row) => row.some((name) => name === folder));
const forbiddenTo = (folder: string): readonly string[] =>
  LAYERS.flat().filter((other) => other !== folder && layerOf(other) >= layerOf(folder));

const IMPORTS = importGraph();
const SOURCES = filesBeneath('src', /\.ts$/);
const describeImport = ({ from, to }: Import) => `${from} → ${to}`;

describe('the import graph of src', () => {
  it('is seen as a whole: values, types and dynamic imports', () => {
    const seen = IMPORTS.map(describeImport);
    expect(seen).toContain('run/resolve/plan-sandbox.ts → plan/plan.ts');
    expect(seen).toContain('model/launch-plan.ts → kernel/landlock/rights.ts');
    expect(seen).toContain('policy/load.ts → model/policy-file.ts');
  });

  it('has a layer for every folder and a rule for every file outside of one', () => {
    const folders = new Set(SOURCES.map(folderOf).filter((folder) => folder !== ''));
    expect([...folders].filter((folder) => layerOf(folder) === -1)).toEqual([]);
    expect(SOURCES.filter((file) => folderOf(file) === '')).toEqual(Object.keys(ROOT_FILES));
  });

  it.each(LAYERS.flat())('%s imports only itself and earlier layers', (folder) => {
    const wrong = IMPORTS.filter(
      ({ from, to }) => folderOf(from) === folder && forbiddenTo(folder).includes(folderOf(to)),
    )
      .filter(({ from, to }) => !EXCEPTIONS.some((known) => known.from === from && known.to === to))
      .map(describeImport);
    expect(wrong).toEqual([]);
  });

  it('has no exception that is no longer needed', () => {
    const seen = new Set(IMPORTS.map(describeImport));
    expect(EXCEPTIONS.filter((known) => !seen.has(describeImport(known)))).toEqual([]);
  });

  it.each(Object.entries(ROOT_FILES))('%s keeps to its rule', (file, rule) => {
    const importers = IMPORTS.filter(({ to }) => to === file).map(({ from }) => from);
    const imported = IMPORTS.filter(({ from }) => from === file).map(({ to }) => to);
    expect(importers.filter((from) => !rule.importedBy.test(from))).toEqual([]);
    expect(imported.filter((to) => !rule.imports.test(to))).toEqual([]);
  });

  it('ties decide to what has a state by ports of the model only', () => {
    const rooms = ['approvals', 'state', 'review', 'hooks', 'audit', 'backends'];
    const known = IMPORTS.filter(
      ({ from, to }) => folderOf(from) === 'decide' && rooms.includes(folderOf(to)),
    );
    expect(known.map(describeImport)).toEqual([]);
  });

  /** Starts a program of ours, which lies beside the addon wherever that is. */
  const USES_A_PROGRAM = 'backends/application.ts';

  it('loads the addon in run, serve, attack and cli only; everybody else knows its contract at most', () => {
    const others = IMPORTS.filter(({ from, to }) => {
      return (
        folderOf(to) === 'native' &&
        to !== 'native/contract.ts' &&
        folderOf(from) !== 'native' &&
        from !== USES_A_PROGRAM
      );
    }).map(({ from }) => folderOf(from));
    expect(
      [...new Set(others)].filter((folder) => !['run', 'serve', 'attack', 'cli'].includes(folder)),
    ).toEqual([]);
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

  it('is told to the linter, too', () => {
    const { overrides } = JSON.parse(text('biome.layers.json'));
    const told = overrides.map((override: { includes: string[] }) => {
      const pattern = /"group":\["([^"]*)"\]/.exec(JSON.stringify(override))?.[1] ?? '';
      return [override.includes[0], /^\*\*\/\{?(.*?)\}?\/\*\*$/.exec(pattern)?.[1]];
    });
    expect(told).toEqual(
      LAYERS.slice(0, -1)
        .flat()
        .map((folder) => [`src/${folder}/**`, forbiddenTo(folder).join(',')]),
    );
  });
});

describe('what is outside of src', () => {
  const outside = [
    ...filesBeneath('test', /\.ts$/)
      .filter((file) => !file.startsWith('unit/') && file !== 'layering.test.ts')
      .map((file) => `test/${file}`),
    ...filesBeneath('scripts', /\.ts$/).map((file) => `scripts/${file}`),
  ];
  const importsOf = (file: string) =>
    [...text(file).matchAll(/(?:\bfrom|\bimport\()\s*'(?:\.\.?\/)+src\/([^']+)'/g)].map(
      ([, path = '']) => path,
    );
  const imported = new Map(outside.map((file) => [file, importsOf(file)]));

  it('imports the public API and the index of a room, and nothing below it', () => {
    const allowed = /^([a-z-]+\/)?index\.ts$|^version\.ts$/;
    const below = [...imported].flatMap(([file, paths]) =>
      paths.filter((path) => !allowed.test(path)).map((path) => `${file} → ${path}`),
    );
    expect(below).toEqual([]);
    expect([...imported.values()].flat()).toContain('run/index.ts');
  });

  it('uses each name that an index exports', () => {
    const indexes = SOURCES.filter((file) => /^[a-z-]+\/index\.ts$/.test(file));
    const unused = indexes.flatMap((index) => {
      const users = outside.filter((file) => imported.get(file)?.includes(index)).map(text);
      const names = [...text(`src/${index}`).matchAll(/\{([^}]*)\}/g)].flatMap(([, list = '']) =>
        list.split(',').flatMap((name) => /\w+\s*$/.exec(name.trim())?.[0] ?? []),
      );
      return names
        .filter((name) => !users.some((user) => new RegExp(`\\b${name}\\b`).test(user)))
        .map((name) => `${index}: ${name}`);
    });
    expect(unused).toEqual([]);
    expect(indexes.length).toBeGreaterThan(20);
  });
});

describe('pure code', () => {
  const files = SOURCES.filter((file) => PURE.includes(folderOf(file)) && !IMPURE_FILES.has(file));

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
    ['landlock', 'notify', 'seccomp', 'warden', 'attack', 'portable', 'steps', 'client'],
    ['process'],
    ['binding', 'begin'],
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

  it('know Node-API in binding only', () => {
    const users = files.filter((file) =>
      /#include [<"](napi|node_api|uv|v8|node)\b/.test(text(`native/${file}`)),
    );
    expect(users.filter((file) => folderOf(file) !== 'binding')).toEqual([]);
    expect(users).not.toEqual([]);
  });
});
