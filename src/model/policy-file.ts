import { z } from 'zod';
import type { PolicyKey } from './policy-key.ts';
import { POLICY_KEYS, type PolicyFile } from './policy-keys.ts';

/**
 * Who wrote a file. A file inside the workspace can take away and not give, as commands and strangers write it, too
 * (`workspace`). What it may ask for (`project`) holds only once a person has trusted it.
 */
type FileKind = 'operator' | 'workspace' | 'project';

/** A table of keys, or a part of one: a row, or rows by their names. */
interface KeyTable {
  readonly [name: string]: PolicyKey | KeyTable;
}

function isRow(entry: PolicyKey | KeyTable): entry is PolicyKey {
  return typeof entry.schema === 'function';
}

function keySchema(row: PolicyKey, kind: FileKind): z.ZodType | undefined {
  if (kind === 'operator') return row.schema(z).optional().describe(row.text);
  const { workspace, trust } = row;
  if (kind === 'project' && trust !== undefined)
    return (trust.schema ?? row.schema)(z).optional().describe(row.text);
  if (workspace === undefined) return undefined;
  const { only, schema = only === undefined ? row.schema : () => z.literal(only) } = workspace;
  return schema(z)
    .optional()
    .describe(workspace.text ?? row.text);
}

function shapeOf(table: KeyTable, kind: FileKind): Record<string, z.ZodType> {
  return Object.fromEntries(
    Object.entries(table).flatMap(([name, entry]): [string, z.ZodType][] => {
      if (isRow(entry)) {
        const schema = keySchema(entry, kind);
        return schema === undefined ? [] : [[name, schema]];
      }
      const shape = shapeOf(entry, kind);
      return Object.keys(shape).length === 0 ? [] : [[name, z.strictObject(shape).optional()]];
    }),
  );
}

/** The schema of a file: TOML, every key optional, unknown keys are errors. Made from the table of keys. */
export function fileSchema(kind: FileKind, table: object = POLICY_KEYS): z.ZodType<PolicyFile> {
  // The type of a file and the schema are made from the same rows; zod cannot follow a shape that is computed.
  return z.strictObject(shapeOf(table as KeyTable, kind)) as unknown as z.ZodType<PolicyFile>;
}

/** A policy file of the operator. */
export const policyFileSchema = fileSchema('operator');

/** A file inside the workspace. */
export const workspaceFileSchema = fileSchema('workspace');

/** What a file inside the workspace may take away and ask for. */
export const projectFileSchema = fileSchema('project');
