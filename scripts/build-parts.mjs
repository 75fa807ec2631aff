// Builds the parts of dist/. Each module of src and of the bundled libraries is in exactly one part and is evaluated on first
// use. A part loads modules of another part from that part.

/**
 * The order matters: a part holds what its modules import, except what an earlier part holds; the last part holds the rest. So a
 * start reads and compiles only what it needs, and no module is in two parts.
 */
const PARTS = [
  {
    name: 'core',
    modules: [
      ...[
        'src/index.ts',
        'src/containment.ts',
        'src/cli/dispatch.ts',
        'src/cli/run/run.ts',
        'src/cli/hook/hook.ts',
        'src/cli/sh/sh.ts',
      ],
      ...['src/gate/decide/judge.ts', 'src/gate/decide/judgement.ts'],
    ],
  },
  { name: 'lists', modules: ['src/run/listed-network.ts', 'src/run/hidden-files.ts'] },
  // With its libraries: finding and loading their files takes longer than what they do.
  {
    name: 'validation',
    // Those behind the first are imported later: without this they would be in the last part, which has no code cache.
    modules: ['src/run/validation.ts', 'src/model/policy-file.ts', 'node_modules/smol-toml/dist/index.js'],
  },
  {
    name: 'stateful',
    modules: [
      ...['src/run/stateful-parts.ts', 'src/run/fleet-parts.ts'],
      // Imported later, as those of validation.
      'node_modules/@photostructure/sqlite/dist/index.mjs',
    ],
  },
  { name: 'commands', modules: [] },
];
/** The parts that get a code cache, see compiled-code.mjs. */
export const COMPILED = ['core', 'lists', 'validation', 'stateful'];
/** Finds and evaluates a part. Built as a file of its own, because it loads the parts. */
const LOADER = 'src/run/load-compiled.ts';

/**
 * Divides what is reached from `starts`, which are in no part, and from `library`, and builds the parts. `common`: of esbuild,
 * for all files; `build`: runs it. Returns a plugin that makes bundles take all that from there.
 */
export async function buildParts({ starts, library }, common, build) {
  const { inputs, exportsOf } = await lookAt([...starts, ...library], common, build);
  const partOf = divide(inputs, [...starts, LOADER]);
  const asked = takenElsewhere(inputs, partOf);
  // An entry file has its own copy of the modules that it needs before it can load a part.
  const ofStarts = closure(inputs, starts);
  for (const path of library) asked.add(path);
  const exported = await exportsOf([...asked].filter((path) => inputs[path].format === 'esm'));
  const taken = (own) => ({
    name: 'parts',
    setup({ onResolve, onLoad }) {
      onResolve({ filter: /^\.\/load\.cjs$/ }, ({ path }) => ({ path, external: true }));
      onLoad({ filter: /\.[cm]?[jt]s$/ }, ({ path }) => {
        const name = relativeTo(common.absWorkingDir, path);
        const part = partOf.get(name);
        const isOwn = own === undefined ? ofStarts.has(name) : part === own;
        return part === undefined || isOwn ? undefined : { contents: takes(name, part), loader: 'js' };
      });
    },
  });
  /** The text of a module that takes another one from its part. */
  const takes = (name, part) => {
    const module = `require('./load.cjs').loadCompiled('${part}')['${name}']()`;
    if (exported[name] === undefined) return `module.exports = ${module};`;
    const names = exported[name].filter((each) => each !== 'default');
    return [
      `const taken = ${module};`,
      names.length > 0 && `export const { ${names.join(', ')} } = taken;`,
      exported[name].includes('default') && 'export default taken.default;',
    ]
      .filter(Boolean)
      .join('\n');
  };
  const options = {
    ...{ ...common, outdir: undefined },
    // One byte for each character: read without decoding.
    charset: 'ascii',
  };
  await build({ ...options, entryPoints: [LOADER], outfile: 'dist/load.cjs' });
  for (const { name } of PARTS) {
    const modules = [...asked].filter((path) => partOf.get(path) === name);
    const rows = modules.map((path) => `'${path}': () => require('./${path}'),`);
    await build({
      ...options,
      stdin: {
        contents: `module.exports = {\n${rows.join('\n')}\n};`,
        resolveDir: common.absWorkingDir,
      },
      outfile: `dist/part-${name}.cjs`,
      plugins: [taken(name), ...(common.plugins ?? [])],
    });
  }
  return taken(undefined);
}

/** The modules that are reached, what each imports, and a function for the names that some of them export. */
async function lookAt(entries, common, build) {
  const look = async (entryPoints) => {
    const options = { ...common, format: 'esm', splitting: true, supported: {}, outdir: 'dist', banner: {} };
    return (await build({ ...options, entryPoints, write: false })).metafile;
  };
  const { inputs } = await look(entries);
  const exportsOf = async (paths) => {
    const { outputs } = await look(paths);
    return Object.fromEntries(
      Object.values(outputs).flatMap(({ entryPoint, exports }) =>
        paths.includes(entryPoint) ? [[entryPoint, exports]] : [],
      ),
    );
  };
  return { inputs, exportsOf };
}

const importsOf = ({ imports }) => imports.filter(({ external }) => external !== true);

/** Modules, and what they import before they run. */
function closure(inputs, modules, isWanted = () => true) {
  const found = new Set(modules);
  // A set grows while it is walked.
  for (const path of found)
    for (const one of importsOf(inputs[path]))
      if (one.kind !== 'dynamic-import' && inputs[one.path] !== undefined && isWanted(one.path))
        found.add(one.path);
  return found;
}

/** The part of each module; entry files and modules made by a plugin have none. */
function divide(inputs, without) {
  const partOf = new Map();
  const isDivided = (path) => !path.includes(':') && !without.includes(path);
  for (const { name, modules } of PARTS) {
    const wanted = modules.length > 0 ? modules : Object.keys(inputs).filter(isDivided);
    for (const path of closure(inputs, wanted, isDivided)) if (!partOf.has(path)) partOf.set(path, name);
  }
  return partOf;
}

/** The modules that another part or an entry file imports. */
function takenElsewhere(inputs, partOf) {
  const asked = new Set(PARTS.flatMap(({ modules }) => modules));
  for (const [path, input] of Object.entries(inputs))
    for (const one of importsOf(input))
      if (partOf.has(one.path) && partOf.get(one.path) !== partOf.get(path)) asked.add(one.path);
  return asked;
}

const relativeTo = (root, path) => path.slice(root.replace(/\/$/, '').length + 1);
