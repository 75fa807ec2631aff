import { isObject } from './is-object.ts';
import { parsedJson } from './parsed-json.ts';

/**
 * The one JSON object that a text is, with nothing around it, no key twice, and nothing but strings, numbers, booleans and
 * null in it; `undefined`: it is none. JSON.parse takes the last of two equal keys, other readers the first.
 */
export function flatObject(text: string): Readonly<Record<string, unknown>> | undefined {
  const read = parsedJson(text);
  if (!isObject(read)) return undefined;
  const values = Object.values(read);
  if (values.some((value) => typeof value === 'object' && value !== null)) return undefined;
  const strings = values.length + values.filter((value) => typeof value === 'string').length;
  return text.match(/"(?:[^"\\]|\\.)*"/g)?.length === (strings === 0 ? undefined : strings)
    ? read
    : undefined;
}
