// What the tests import as 'esbuild' in a virtual machine: bundles that were made beforehand, by the text they are made of.
import { createHash } from 'node:crypto';
import { cpSync, existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

const { SANDBOX_RUN_PREBUILT: place, SANDBOX_RUN_PROJECT: project } = process.env;

export async function build(options) {
  const text = JSON.stringify([options.stdin.contents, options.format, options.banner]);
  const made = join(place, `bundle-${createHash('sha256').update(text).digest('hex').slice(0, 32)}`);
  if (!existsSync(made)) {
    if (project === undefined)
      throw new Error('this bundle was not made beforehand, cf. scripts/vm/tests/prebuild.ts');
    const real = await import(join(project, 'node_modules/esbuild/lib/main.js'));
    const { fromProduct } = await import(join(project, 'scripts/vm/product.mjs'));
    const stdin = { ...options.stdin, resolveDir: join(project, 'test/support') };
    const plugins = [fromProduct(JSON.parse(readFileSync(join(place, 'product.json'), 'utf8')))];
    await real.default.build({ ...options, stdin, plugins, outdir: made });
  }
  cpSync(made, options.outdir, { recursive: true });
  for (const name of ['part-product.cjs', `part-product.${process.version}.code`, 'grammars'])
    cpSync(new URL(name, import.meta.url), join(options.outdir, name), { recursive: true });
}
