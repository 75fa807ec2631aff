import { errorMessage } from '../../base/error-message.ts';
import { orElse } from '../../base/or-else.ts';
import { visibleText } from '../../base/visible-text.ts';
import { loadAddon } from '../../confine/native/load.ts';
import { presentRows, type Terminal, type Turn, talkOn, withTerminal } from '../../gate/index.ts';
import type { Change } from '../../model/index.ts';
import { ChangeSets, changeLine, markOf } from '../../run/index.ts';
import { applyChanges, discardChanges } from './change-sets.ts';
import { printError } from './print.ts';

/** What a person wants of changes that wait. `paths`: only these, with what is beneath them; missing: all. */
type Wish =
  | { readonly do: 'apply' | 'discard'; readonly paths?: readonly string[] }
  | { readonly do: 'keep'; readonly why: string };

/** What came of asking: all of it was answered, a part, or it waits as before; `unasked`: there is no terminal for it. */
type Asked = 'all' | 'part' | 'waits' | 'unasked';

/** How a person is asked. */
interface AskOptions {
  /** By `performance.now()`. */
  readonly end: number;
  readonly signal: AbortSignal;
  /** Called when Ctrl-C was typed, which leaves it waiting. */
  readonly onInterrupt?: () => void;
  /** A line above the question, for a person who does not expect it. */
  readonly heading?: string;
}

/**
 * Shows on the controlling terminal what a preview changed, and does what the person there wants.
 * @throws {SandboxError} as `ChangeSets.apply` and `discard`.
 */
export async function askAboutChanges(
  id: string,
  { end, signal, onInterrupt, heading = '' }: AskOptions,
): Promise<Asked> {
  const sets = new ChangeSets();
  const { changes } = sets.show(id);
  const tryLock = orElse(() => loadAddon().tryLock, undefined);
  const talked = await withTerminal(
    (terminal) =>
      talkOn(terminal, talkAbout(sets, id, changes, terminal, heading), { end, signal, onInterrupt }),
    { tryLock, end, signal },
  );
  if (!talked.used) return talked.why === 'late' ? 'waits' : 'unasked';
  if (talked.result.do === 'keep') return 'waits';
  const { do: what, paths } = talked.result;
  if (what === 'apply') await applyChanges(id, paths);
  else printError(await discardChanges(id, paths));
  return paths === undefined ? 'all' : 'part';
}

const PROMPT = 'apply / diff / list / discard [keep waiting]: ';
const KEYS =
  '[a]pply [d]iff [l]ist discard [k]eep waiting (Enter). With numbers, such as apply 1 3-5: only those,\nof a directory with all that is in it.\n';
/** So many rows stand above the first prompt, and in a longer list or a diff. */
const ROWS = { first: 20, more: 1_000 };
/** A diff takes no longer: a command may leave what is hard to compare. */
const PATIENCE_MS = 5_000;
const LONGEST_LINE = 200;
/** A diff has no labels. */
const GUTTER = 2;

/**
 * Ends whatever sequence the command has left open, and undoes what would hide text or change what it looks like: the other
 * screen, scroll regions, colours, character sets; nothing stands below.
 */
const TERMINAL_AGAIN = '\x18\x1b\\\x1b[?47l\x1b[!p\x1b(B\x0f\x1b[m\x1b[?25h\r\x1b[J';

function talkAbout(
  sets: ChangeSets,
  id: string,
  changes: readonly Change[],
  { columns }: Terminal,
  heading: string,
) {
  const rows = (most: number) => {
    const shown = changes.slice(0, most).map((change, index) => ({
      label: `${String(index + 1).padStart(5)} ${markOf(change)}`,
      text: visibleText(changeLine(change)),
    }));
    const more = changes.length - shown.length;
    const rest = more === 0 ? '' : `${more.toLocaleString('en-US')} more: sandbox-run changes show ${id}\n`;
    return `${presentRows(shown, { columns })}${rest}`;
  };
  const diff = (paths: readonly string[]): string => {
    const lines: string[] = [];
    const end = performance.now() + PATIENCE_MS;
    let left = paths.length;
    for (const path of paths) {
      if (lines.length > ROWS.more || performance.now() > end) break;
      for (const line of sets.diff(id, path, true).split('\n').slice(0, -1)) lines.push(line);
      left--;
    }
    const shown = lines
      .slice(0, ROWS.more)
      .map((text) => ({ label: '', text: visibleText(text, { keep: '\t' }).replaceAll('\t', '    ') }));
    const isAll = lines.length === shown.length && left === 0;
    const rest = isAll ? '' : `There is more: diff with other numbers, or sandbox-run changes diff ${id}\n`;
    return `${presentRows(shown, { columns, gutter: GUTTER })}${rest}`;
  };
  const meaning = (line: string): Turn<Wish> => {
    const [word = '', ...numbers] = line
      .trim()
      .toLowerCase()
      .split(/[\s,]+/);
    if (word === '' || (KEEP.has(word) && numbers.length === 0)) return { answer: KEPT };
    const chosen = numbersIn(numbers, changes.length);
    if (chosen === undefined) return { prompt: `Numbers are those of the list, 1 to ${changes.length}: ` };
    const paths =
      numbers.length === 0 ? undefined : chosen.flatMap((number) => changes[number - 1]?.path ?? []);
    const only = paths === undefined ? {} : { paths };
    if (word === 'apply' || word === 'a') return { answer: { do: 'apply', ...only } };
    // A word that nobody types by mistake.
    if (word === 'discard') return { answer: { do: 'discard', ...only } };
    if (word === 'diff' || word === 'd')
      return { say: diff(paths ?? changes.map(({ path }) => path)), prompt: PROMPT };
    if (word === 'list' || word === 'l') return { say: rows(ROWS.more), prompt: PROMPT };
    return { prompt: 'Please type apply, diff, list, discard or keep: ' };
  };
  return {
    opening: `${process.env.TERM === 'dumb' ? '' : TERMINAL_AGAIN}\n${heading}${rows(ROWS.first)}${KEYS}`,
    prompt: PROMPT,
    longest: LONGEST_LINE,
    heard: (line: string): Turn<Wish> => {
      try {
        return meaning(line);
      } catch (error) {
        // It was applied or discarded elsewhere meanwhile.
        return { answer: { do: 'keep', why: visibleText(errorMessage(error)) } };
      }
    },
    unheard: (_: unknown, detail: string | undefined): Wish => ({ do: 'keep', why: detail ?? KEPT.why }),
    closing: (wish: Wish) => (wish.do === 'keep' ? wish.why : wish.do),
  };
}

const KEEP = new Set(['k', 'keep']);
const KEPT = { do: 'keep', why: 'it waits' } as const;

/** Of `1 3-5`; `undefined`: that names something else than what is in a list of so many. */
function numbersIn(words: readonly string[], most: number): readonly number[] | undefined {
  const numbers: number[] = [];
  for (const word of words) {
    const [, first = '', last = first] = /^(\d{1,7})(?:-(\d{1,7}))?$/.exec(word) ?? [];
    const [from, to] = [Number(first), Number(last)];
    if (first === '' || from < 1 || to < from || to > most) return undefined;
    for (let number = from; number <= to; number++) numbers.push(number);
  }
  return numbers;
}
