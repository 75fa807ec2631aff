import { visibleDeceit } from '../../base/visible-text.ts';

/**
 * A sequence that is not closed is taken for text if it is longer; also how far before the tail of cut output one is
 * looked for that reaches into it.
 */
export const LONGEST_OPEN_SEQUENCE = 4096;

// ECMA-48: a control sequence; a string up to its terminator (operating system commands also end with a bell); whatever
// else begins with ESC. What a string may not contain would cancel it, so no search runs further than one of those.
const ESC = '\u001b';
const CONTROL_SEQUENCE = `(?:${ESC}\\[|\u009b)[0-?]*[ -/]*`;
const TITLE = `(?:${ESC}\\]|\u009d)[^\u0007\n\u0018\u001a${ESC}\u0080-\u009f]*`;
const DEVICE_STRING = `(?:${ESC}[PX^_]|[\u0090\u0098\u009e\u009f])[^\u0018\u001a${ESC}\u0080-\u009f]*`;
const TERMINATOR = `(?:${ESC}\\\\|\u009c)`;
const CLOSED = `${CONTROL_SEQUENCE}[@-~]|${TITLE}(?:\u0007|${TERMINATOR})|${DEVICE_STRING}${TERMINATOR}`;
const OPEN = `(?:${CONTROL_SEQUENCE}|(?:${TITLE}|${DEVICE_STRING})${ESC}?|${ESC}[ -/]*)$`;
const SHORT = `${ESC}[ -/]*[0-~]`;
const SEQUENCE = new RegExp(`${CLOSED}|${SHORT}`, 'g');
const SEQUENCE_OR_OPEN = new RegExp(`${CLOSED}|(?<open>${OPEN})|${SHORT}`, 'g');

// A run of returns is looked at once, from its beginning.
const BREAKS = /(?<!\r)\r+\n|[\v\f\u0085]/g;
const RETURNS_AT_END = /(?<!\r)\r+$/;
const CONTROL = '[\u0000-\u0008\u000b-\u001f\u007f-\u009f]';
const CONTROLS = new RegExp(CONTROL, 'g');
const HAS_CONTROLS = new RegExp(CONTROL);

/** The sequence that a text ends within, unless it is too long to be one. */
export function openSequence(text: string): string {
  // Whatever this cuts off: a sequence that is looked for begins behind it.
  const end = text.slice(-LONGEST_OPEN_SEQUENCE);
  if (!HAS_CONTROLS.test(end)) return '';
  let open = '';
  for (const { groups } of end.matchAll(SEQUENCE_OR_OPEN)) open = groups?.open ?? '';
  return open;
}

/** Without sequences, and the one that is open at the end. */
function withoutSequences(text: string): { readonly text: string; readonly open: string } {
  const open = openSequence(text);
  return { text: text.slice(0, text.length - open.length).replace(SEQUENCE, ''), open };
}

/** The last state of a line that was overwritten. */
function lastState(line: string): string {
  const redrawn = line.replace(RETURNS_AT_END, '');
  const last = redrawn.slice(redrawn.lastIndexOf('\r') + 1);
  if (!last.includes('\b')) return last;
  const characters: string[] = [];
  for (const character of last) {
    if (character === '\b') characters.pop();
    else characters.push(character);
  }
  return characters.join('');
}

/**
 * Text of a terminal for a reader that is none: no escape sequences, no control characters but line breaks and tabs. Of a
 * line that was written over (carriage returns, backspaces) the last state is left. Bidirectional controls and
 * characters that are not shown, which make a text look like another, become visible as `\u{202e}`.
 */
export function neutralize(text: string): string {
  if (!HAS_CONTROLS.test(text)) return visibleDeceit(text);
  const lines = withoutSequences(text).text.replace(BREAKS, '\n').split('\n');
  const states = lines.map((line) => (/[\r\b]/.test(line) ? lastState(line) : line));
  return visibleDeceit(states.join('\n').replace(CONTROLS, ''));
}

/**
 * The same for text that arrives in pieces, wherever they were cut. What was given cannot be taken back, so a line that is
 * written over goes on as a new one.
 */
export function createNeutralizer() {
  let held = '';
  const finish = (text: string) =>
    visibleDeceit(text.replace(BREAKS, '\n').replace(/\r+/g, '\n').replace(CONTROLS, ''));
  return {
    /** What can be shown after this piece. */
    write(piece: string): string {
      const { text, open } = withoutSequences(held + piece);
      // The break of a line may follow.
      const returns = RETURNS_AT_END.exec(text)?.[0] ?? '';
      held = returns + open;
      return finish(text.slice(0, text.length - returns.length));
    },
    /** What is left at the end. */
    end(): string {
      const rest = finish(withoutSequences(held).text);
      held = '';
      return rest;
    },
  };
}
