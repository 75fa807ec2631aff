import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { basename, dirname, join, relative, resolve } from 'node:path';
import { build } from 'esbuild';
import { execa } from 'execa';
import { afterAll, describe, expect, it } from 'vitest';
import { LIBRARY, makePlace, ROOT } from '../library/support.ts';
import { expectNothingLeft } from '../support/leftovers.ts';

const place = makePlace();
afterAll(async () => {
  await expectNothingLeft(place);
  place.dispose();
});

/** What most programs that run commands have no use for. */
const OF_OTHERS = /^(?:fleet|agents|serve|cli)\/|^gate\/nats\/|^(?:run\/otel|model\/fleet)\./;

describe('import of sandbox-run', () => {
  it('takes no code of fleets, agents, servers, the command line or OpenTelemetry', async () => {
    const { metafile } = await build({
      ...{ entryPoints: ['src/index.ts'], absWorkingDir: ROOT, outdir: 'unwritten', write: false },
      ...{ bundle: true, splitting: true, format: 'esm', platform: 'node', packages: 'external' },
      metafile: true,
    });
    const chunks = new Set(Object.keys(metafile.outputs).filter((file) => basename(file) === 'index.js'));
    const packages = new Set<string>();
    for (const chunk of chunks)
      for (const { path, kind, external } of metafile.outputs[chunk]?.imports ?? []) {
        if (external && !path.startsWith('node:')) packages.add(`${kind} ${path}`);
        else if (kind !== 'dynamic-import' && !external) chunks.add(path);
      }
    const modules = [...chunks].flatMap((chunk) =>
      Object.entries(metafile.outputs[chunk]?.inputs ?? {})
        .filter(([, { bytesInOutput }]) => bytesInOutput > 0)
        .map(([path]) => path.replace(/^src\//, '')),
    );
    expect(modules).toContain('run/sandbox.ts');
    expect(modules.filter((path) => OF_OTHERS.test(path))).toEqual([]);
    expect(
      [...packages].filter((one) => /nats|opentelemetry|openai|anthropic|import-statement ai$/.test(one)),
    ).toEqual([]);
  });

  it('loads one part of the package, and no other package', async () => {
    const script = join(place.root, 'loaded.mjs');
    writeFileSync(
      script,
      `import { createRequire } from 'node:module';
      await import(${JSON.stringify(LIBRARY)});
      const loaded = Object.keys(createRequire(import.meta.url).cache);
      console.log(JSON.stringify(loaded));`,
    );
    const { stdout } = await execa(process.execPath, [script]);
    expect(JSON.parse(stdout).map((path: string) => basename(path))).toEqual(['part-core.cjs']);
  });

  it('needs no types of them', () => {
    const types = join(ROOT, 'dist/types');
    const files = new Set([join(types, 'index.d.ts')]);
    const packages = new Set<string>();
    for (const file of files)
      for (const [, from = ''] of readFileSync(file, 'utf8').matchAll(
        /(?:from |import\()['"]([^'"]+)['"]/g,
      )) {
        if (!from.startsWith('.')) packages.add(from);
        else files.add(resolve(dirname(file), from.replace(/\.(?:ts|js)$/, '.d.ts')));
      }
    expect([...files].filter((file) => !existsSync(file))).toEqual([]);
    expect([...files].map((file) => relative(types, file)).filter((file) => OF_OTHERS.test(file))).toEqual(
      [],
    );
    const { dependencies } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8'));
    const others = [...packages].filter(
      (name) => !Object.hasOwn(dependencies, name) && !/^(?:node:|url$)/.test(name),
    );
    expect(others).toEqual([]);
  });
});
