import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { effectivePolicy } from '../../../src/policy/effective.ts';
import { type LayerName, mergeLayers, type PolicyLayer } from '../../../src/policy/merge.ts';
import { explainPolicy } from '../../../src/policy/provenance.ts';
import { type PolicyFile, policyFileSchema } from '../../../src/policy/schema.ts';
import { LIST_SETTINGS, SCALAR_SETTINGS } from '../../../src/policy/settings.ts';

/** Lists of which a later one is the whole list. What is not named here must add up. */
const REPLACED = ['commands.allow', 'reviewer.command'];
const LAYERS: readonly LayerName[] = ['system', 'user', 'option'];

interface JsonSchema {
  readonly type?: string;
  readonly properties?: Readonly<Record<string, JsonSchema>>;
}

/** Every key of a policy file that has a list, by the schema itself: a new one is here on its own. */
function listKeys({ type, properties }: JsonSchema, above: readonly string[] = []): readonly string[] {
  if (type === 'array') return [above.join('.')];
  return Object.entries(properties ?? {}).flatMap(([name, schema]) => listKeys(schema, [...above, name]));
}

const LISTS = listKeys(z.toJSONSchema(policyFileSchema) as JsonSchema);
const ADDING_UP = LISTS.filter((key) => !REPLACED.includes(key));

/** Items of each kind of list; a list of a new kind fails here until it has its own. */
const ITEMS: readonly ((name: string) => unknown)[] = [
  (name) => `/${name}`,
  (name) => name,
  (name) => ({ path: `/${name}.mjs` }),
  (name) => ({ program: name, verdict: 'ask' }),
];

const tableOf = (key: string, items: readonly unknown[]) =>
  key.split('.').reduceRight<unknown>((inner, name) => ({ [name]: inner }), items);

function fileOf(key: string, names: readonly string[]): PolicyFile {
  for (const item of ITEMS) {
    const parsed = policyFileSchema.safeParse(tableOf(key, names.map(item)));
    if (parsed.success) return parsed.data;
  }
  throw new Error(`no item is known that ${key} takes`);
}

/** One file of each layer, with items that are all different. */
const filesOf = fc
  .array(fc.integer({ min: 0, max: 4 }), { minLength: 3, maxLength: 3 })
  .map((counts) => counts.map((count, at) => Array.from({ length: count }, (_, i) => `item${at}x${i}`)));

const layersOf = (key: string, names: readonly (readonly string[])[]): readonly PolicyLayer[] =>
  LAYERS.flatMap((name, at): PolicyLayer[] => {
    const items = names[at] ?? [];
    // A layer that does not say it, rather than one that says nothing.
    const file = items.length === 0 ? {} : fileOf(key, items);
    return [{ name, path: `/${name}.toml`, text: undefined, file }];
  });

describe('a list of a policy', () => {
  it('is one of those that add up, or of those that are replaced', () => {
    expect(LISTS).toEqual(expect.arrayContaining(['filesystem.secret', 'hooks.plugins', ...REPLACED]));
    expect(LIST_SETTINGS.map(({ key }) => key).sort()).toEqual([...ADDING_UP].sort());
    // `policy show` says of them that they are the whole list.
    for (const key of REPLACED)
      expect(
        SCALAR_SETTINGS.some((setting) => key === setting.key || key.startsWith(`${setting.key}.`)),
      ).toBe(true);
  });

  it.each(ADDING_UP)('%s: every item of every layer is in force, in their order', (key) => {
    const setting = LIST_SETTINGS.find((candidate) => candidate.key === key);
    fc.assert(
      fc.property(filesOf, (names) => {
        const base = effectivePolicy({}, '/w', '/h');
        const policy = effectivePolicy({ file: mergeLayers(layersOf(key, names)) }, '/w', '/h');
        const added = (setting?.of(policy) ?? []).slice(setting?.of(base).length);
        const expected = names.flat();
        expect(added).toHaveLength(expected.length);
        for (const [at, name] of expected.entries()) expect(JSON.stringify(added[at])).toContain(name);
      }),
    );
  });

  it.each(ADDING_UP)('%s: every item is told with the file that says it', (key) => {
    fc.assert(
      fc.property(filesOf, (names) => {
        const layers = layersOf(key, names);
        const base = effectivePolicy({}, '/w', '/h');
        const operators = effectivePolicy({ file: mergeLayers(layers) }, '/w', '/h');
        const told = explainPolicy({ base, layers, operators, narrowed: operators, workspaceFile: undefined })
          .filter((value) => value.key === key && value.source.layer !== 'profile')
          .map(({ item, source }) => `${item} ${source.layer}`);
        expect(told).toEqual(names.flatMap((items, at) => items.map(() => `true ${LAYERS[at]}`)));
      }),
    );
  });

  it.each(REPLACED)('%s: the strongest layer that says it has the whole list', (key) => {
    const files = LAYERS.map((name) => fileOf(key, [`${name}1`, `${name}2`]));
    const layers = LAYERS.map(
      (name, at): PolicyLayer => ({
        ...{ name, path: `/${name}.toml`, text: undefined, file: files[at] ?? {} },
      }),
    );
    expect(mergeLayers(layers)).toEqual(files.at(-1));
  });
});
