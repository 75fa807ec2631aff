import { isObject } from '../../base/is-object.ts';
import { readableWord } from '../../base/shell-quote.ts';

/** A record as it was read from the trail. What it contains is as trustworthy as the file. */
export interface StoredRecord {
  readonly seq: number;
  /** Milliseconds since 1970; NaN if the text is no time. */
  readonly at: number;
  readonly type: string;
  /** All members, the envelope among them. */
  readonly fields: Readonly<Record<string, unknown>>;
}

/** `undefined`: it is no record. */
export function parseRecord(line: Buffer | string): StoredRecord | undefined {
  try {
    const fields: unknown = JSON.parse(line.toString());
    if (!isObject(fields)) return undefined;
    const { seq, time, type } = fields;
    if (typeof seq !== 'number' || typeof time !== 'string' || typeof type !== 'string') return undefined;
    return { seq, at: Date.parse(time), type, fields };
  } catch {
    return undefined;
  }
}

/** A member that is a text. */
export function textOf(fields: Readonly<Record<string, unknown>>, name: string): string | undefined {
  const value = fields[name];
  return typeof value === 'string' ? value : undefined;
}

/** The texts of a member that is a list. */
export function textsOf(fields: Readonly<Record<string, unknown>>, name: string): readonly string[] {
  const value = fields[name];
  return Array.isArray(value) ? value.filter((item) => typeof item === 'string') : [];
}

/** The objects of a member that is a list. */
export function objectsOf(
  fields: Readonly<Record<string, unknown>>,
  name: string,
): readonly Readonly<Record<string, unknown>>[] {
  const value = fields[name];
  return Array.isArray(value) ? value.filter(isObject) : [];
}

/** The command of a decision as one text; words of an argument vector that need quotes have them. */
export function commandText({ fields }: StoredRecord): string {
  const { command } = fields;
  if (typeof command === 'string') return command;
  return textsOf(fields, 'command').map(readableWord).join(' ');
}
