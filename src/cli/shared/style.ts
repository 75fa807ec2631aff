import { isatty } from 'node:tty';
import { caller } from '../../host/caller.ts';

/** How text is meant. */
export type Mood = 'good' | 'part' | 'bad' | 'worst' | 'strong' | 'faint' | 'plain';

/** Gives text the look of a mood, or leaves it as it is. What others wrote has to be made visible before. */
export type Paint = (mood: Mood, text: string) => string;

const CODES: Readonly<Record<Mood, string | undefined>> = {
  good: '32',
  part: '33',
  bad: '31',
  worst: '31;1',
  strong: '1',
  faint: '2',
  plain: undefined,
};

/** How a verdict is meant, also one out of a file. */
export function moodOf(verdict: unknown): Mood {
  switch (verdict) {
    case 'allow':
      return 'good';
    case 'ask':
      return 'part';
    case 'deny':
      return 'bad';
    default:
      return 'plain';
  }
}

/** Leaves all text as it is. */
export const unpainted: Paint = (_, text) => text;

/** Paints whatever it is. */
export const painted: Paint = (mood, text) => {
  const code = CODES[mood];
  return code === undefined || text === '' ? text : `\u001b[${code}m${text}\u001b[0m`;
};

/**
 * Whether escape sequences may go to standard output (1) or standard error (2): only if that very stream is a terminal that
 * knows them. There is no way to have them elsewhere: what is written to a file or a pipe may be read by a model.
 */
export function isLively(fd: 1 | 2): boolean {
  const { stdio, env } = caller();
  return isatty(stdio[fd]) && env.TERM !== 'dumb';
}

/** Colours for a stream: none unless it is {@link isLively}, and none with NO_COLOR, unless that is empty. */
export function paintFor(fd: 1 | 2): Paint {
  return isLively(fd) && (caller().env.NO_COLOR ?? '') === '' ? painted : unpainted;
}

/** Breaks text at spaces; a word that is longer than a line stays whole. */
export function wrap(text: string, width: number): readonly string[] {
  const lines: string[] = [];
  let line = '';
  for (const word of text.split(/\s+/)) {
    if (line !== '' && line.length + 1 + word.length > width) {
      lines.push(line);
      line = word;
    } else {
      line = line === '' ? word : `${line} ${word}`;
    }
  }
  return [...lines, line];
}
