/** Most bytes of a character that can be on one side of a cut through it. */
const MOST_BYTES_OF_A_PART = 3;

const isContinuation = (byte: number | undefined) => byte !== undefined && (byte & 0xc0) === 0x80;

function bytesOfCharacter(first: number): number {
  if (first < 0xc0) return 1;
  if (first < 0xe0) return 2;
  return first < 0xf0 ? 3 : 4;
}

/** Where UTF-8 that was cut at its end ends, without the beginning of a character that goes on behind the cut. */
export function wholeCharactersEnd(bytes: Uint8Array): number {
  for (let back = 1; back <= Math.min(MOST_BYTES_OF_A_PART, bytes.length); back += 1) {
    const byte = bytes[bytes.length - back] ?? 0;
    if (!isContinuation(byte)) return bytesOfCharacter(byte) > back ? bytes.length - back : bytes.length;
  }
  return bytes.length;
}

/** Where UTF-8 that was cut at its beginning begins, without the end of a character from before the cut. */
export function wholeCharactersStart(bytes: Uint8Array): number {
  let start = 0;
  while (start < MOST_BYTES_OF_A_PART && isContinuation(bytes[start])) start += 1;
  return start;
}
