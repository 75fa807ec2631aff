/**
 * A path as text from which its bytes come back: a byte that is not UTF-8 is half of a surrogate pair, U+DC80 to U+DCFF, as
 * Python's `surrogateescape` has it. Every other path is the text that it is. `EncodePath` of native/binding/encode.h says the
 * same.
 *
 * Node writes U+FFFD for such a half, which is another name: what is handed to node:fs goes through `pathOf`.
 */
export function textOfPath(bytes: Buffer): string {
  const shown = bytes.toString();
  if (isOf(bytes, shown)) return shown;
  let text = '';
  for (let at = 0; at < bytes.length; ) {
    const length = LENGTHS.find((one) => isCharacter(bytes.subarray(at, at + one), one));
    text +=
      length === undefined
        ? String.fromCharCode(0xdc00 + (bytes[at] ?? 0))
        : bytes.toString('utf8', at, at + length);
    at += length ?? 1;
  }
  return text;
}

/** Whether a text says all of its bytes: what is not UTF-8 is shown as U+FFFD. */
const isOf = (bytes: Buffer, text: string) => !text.includes('\ufffd') || Buffer.from(text).equals(bytes);

const isCharacter = (bytes: Buffer, length: number) =>
  bytes.length === length && isOf(bytes, bytes.toString());

/** Of one character in UTF-8. None is the beginning of another one. */
const LENGTHS = [1, 2, 3, 4] as const;

/** Half of a pair that stands for a byte. With `u` both halves of a whole pair are one character, and not found. */
const BYTE = /[\udc80-\udcff]/u;

/** The bytes of a path that is text. */
export function bytesOfPath(text: string): Buffer {
  if (!BYTE.test(text)) return Buffer.from(text);
  const parts = text.split(/([\udc80-\udcff])/u);
  return Buffer.concat(
    parts.map((part, at) => (at % 2 === 0 ? Buffer.from(part) : Buffer.from([part.charCodeAt(0) - 0xdc00]))),
  );
}

/** For node:fs: a path that is text, by its bytes where Node would take the text for another name. */
export const pathOf = (text: string): string | Buffer => (BYTE.test(text) ? bytesOfPath(text) : text);

/** For people and programs that read UTF-8, and not for finding it again: what Node would show. */
export const shownPath = (text: string): string =>
  BYTE.test(text) ? text.replace(/[\udc80-\udcff]/gu, '\ufffd') : text;
