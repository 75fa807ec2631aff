// What the tests import as 'esbuild' in a virtual machine: bundles that were made beforehand, by the text they are made of.
import { createHash } from 'node:crypto';
import { cpSync, existsSync } from 'node:fs';
import { join } from 'node:path';

const { SANDBOX_RUN_PREBUILT: place, SANDBOX_RUN_PROJECT: project } = process.env;

export async function build(options) {
  const text = JSON.stringify([options.stdin.contents, options.format, options.banner]);
  const made = join(place, `bundle-${createHash('sha256').update(text).digest('hex').slice(0, 32)}`);
  if (!existsSync(made)) {
    if (project === undefined)
      throw new Error('this bundle was not made beforehand, cf. scripts/vm/tests/prebuild.ts');
    const real = await import(join(project, 'node_modules/esbuild/lib/main.js'));
    const stdin = { ...options.stdin, resolveDir: join(project, 'test/support') };
    await real.default.build({ ...options, stdin, outdir: made });
  }
  cpSync(made, options.outdir, { recursive: true });
}
