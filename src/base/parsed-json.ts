/** JSON of anybody; `undefined`: it is none. */
export function parsedJson(value: Uint8Array | string): unknown {
  try {
    const isText = typeof value === 'string';
    return JSON.parse(
      isText ? value : Buffer.from(value.buffer, value.byteOffset, value.byteLength).toString('utf8'),
    );
  } catch {
    return undefined;
  }
}
