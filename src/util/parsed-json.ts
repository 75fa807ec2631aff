/** JSON of anybody; `undefined`: it is none. */
export function parsedJson(value: Uint8Array): unknown {
  try {
    return JSON.parse(Buffer.from(value.buffer, value.byteOffset, value.byteLength).toString('utf8'));
  } catch {
    return undefined;
  }
}
