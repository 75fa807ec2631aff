import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { CONTROL_IDS } from '../../../src/model/enforcement-report.ts';
import { policyFileSchema } from '../../../src/policy/schema.ts';

interface Node {
  readonly type?: string;
  readonly description?: string;
  readonly properties?: Readonly<Record<string, Node>>;
  readonly additionalProperties?: unknown;
  readonly propertyNames?: { readonly enum?: readonly string[] };
}

/** Every key of the schema with its node: `limits.umask`. */
function keysOf(node: Node, prefix = ''): readonly (readonly [string, Node])[] {
  return Object.entries(node.properties ?? {}).flatMap(([name, child]) => [
    [`${prefix}${name}`, child] as const,
    ...keysOf(child, `${prefix}${name}.`),
  ]);
}

const schema = z.toJSONSchema(policyFileSchema) as Node;
const keys = keysOf(schema);

describe('the schema of policy files', () => {
  const leaves = keys.filter(([, node]) => node.properties === undefined);
  it.each(leaves)('describes %s', (_, node) => {
    expect(node.description).toMatch(/^\S.*\.$/);
  });
  it.each(keys.filter(([, node]) => node.properties !== undefined))(
    'takes no unknown key in %s',
    (_, node) => {
      expect(node.additionalProperties).toBe(false);
    },
  );

  it('names every control in demand', () => {
    expect(schema.properties?.demand?.propertyNames?.enum).toEqual(CONTROL_IDS);
  });
});
