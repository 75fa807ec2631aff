// Rewrites imports from the index.ts of a directory of src/ into imports from the files that define the names. Otherwise a
// bundle, a part of dist/ or a test would load every file that the index names.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';

/** Returns the text of a module with its imports from an index rewritten. */
export function pastIndexes(path, text) {
  return text.replace(
    /^(import|export)( type)? \{([^}]*)\} from '(\.[^']*\/index\.ts)';$/gm,
    (_, keyword, isType, names, index) =>
      isType ? '' : statementsFor(keyword, names, join(path, '..', index)).join(' '),
  );
}

function statementsFor(keyword, names, index) {
  const sources = new Map();
  for (const [, list, from] of readFileSync(index, 'utf8').matchAll(/^export \{([^}]*)\} from '([^']+)';$/gm))
    for (const name of list.split(',')) sources.set(name.trim(), join(index, '..', from));
  return names
    .split(',')
    .map((name) => name.trim())
    .filter((name) => name !== '' && !name.startsWith('type '))
    .map((name) => {
      const source = sources.get(name.split(' as ')[0]);
      if (source === undefined) throw new Error(`${index} does not export ${name} as the others`);
      return `${keyword} { ${name} } from ${JSON.stringify(source)};`;
    });
}

/** The esbuild plugin. List it after plugins that load some modules in another way. */
export const pastIndexesPlugin = {
  name: 'past-indexes',
  setup({ onLoad }) {
    onLoad({ filter: /\/src\/.*\.ts$/ }, ({ path }) => {
      const text = readFileSync(path, 'utf8');
      return text.includes("/index.ts'") ? { contents: pastIndexes(path, text), loader: 'ts' } : undefined;
    });
  },
};
