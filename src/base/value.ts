import { z } from 'zod';

/*
 * Every value that crosses a door of the program is written once, as a schema with described fields: JSON Schemas and what
 * doors validate with are derived from it, and its type has the schema's name. Inside, a value is imported by `import
 * type`: only doors load zod.
 */

/** What a schema describes, as the program holds it: read-only through and through. */
export type Value<Schema extends z.ZodType> = ReadOnly<z.output<Schema>>;

type Primitive = string | number | bigint | boolean | null | undefined;
type Whole = Primitive | Uint8Array | AbortSignal | URL | AsyncIterable<unknown>;
// biome-ignore lint/suspicious/noExplicitAny: any function there is
type Opaque = Whole | ((...args: any[]) => unknown);

type ReadOnly<T> = T extends Opaque
  ? T
  : T extends readonly unknown[]
    ? { readonly [Index in keyof T]: ReadOnly<T[Index]> }
    : { readonly [Key in keyof T]: ReadOnly<T[Key]> };

/**
 * For a key that is always there in the program, perhaps with `undefined`, so that one shape serves all cases and none is
 * forgotten. In JSON it is missing then. (`optional()` is for keys that may be missing in the program, too.)
 */
export function maybe<Schema extends z.ZodType>(schema: Schema) {
  // Typed as what is no optional key: the type of zod's objects goes by that.
  return schema.optional() as unknown as z.ZodType<z.output<Schema> | undefined>;
}

export const text = z.string();
export const texts = z.array(text);
export const count = z.number().int().nonnegative();
/** Milliseconds since 1970. */
export const time = z.number().int().nonnegative();
