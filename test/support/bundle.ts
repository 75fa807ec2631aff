import { createRequire } from 'node:module';
import { join } from 'node:path';
import { build } from 'esbuild';

const require = createRequire(import.meta.url);

/** Makes a program that node can run as a process of its own from TypeScript that may import the sources. */
export async function bundleProgram(directory: string, name: string, source: string): Promise<string> {
  const outfile = join(directory, `${name}.cjs`);
  await build({
    stdin: { contents: source, resolveDir: import.meta.dirname, loader: 'ts' },
    bundle: true,
    platform: 'node',
    format: 'cjs',
    outfile,
    define: { 'import.meta.url': '__moduleUrl' },
    banner: { js: "const __moduleUrl = require('node:url').pathToFileURL(__filename).href;" },
    plugins: [
      {
        // It finds its binary beside its own files.
        name: 'native-packages',
        setup: ({ onResolve }) => {
          onResolve({ filter: /^@photostructure\/sqlite$/ }, ({ path }) => ({
            path: require.resolve(path),
            external: true,
          }));
        },
      },
    ],
    logLevel: 'error',
  });
  return outfile;
}
