import type { NotUnderstoodCode, Word } from '../model/command-line.ts';
import type { Behaviour, Call, Dialect, Runs } from './behaviour.ts';
import { type ReadOptions, readOptions } from './options.ts';

/*
 * What the `runs` of the tables are made of.
 */

export const NOTHING: Runs = { runs: [] };

/** The words of a call are not understood. */
export function refused(message: string, word?: Word, code: NotUnderstoodCode = 'runner'): Runs {
  return { refusal: { code, message, ...(word === undefined ? {} : { word }) } };
}

/** The words as a command of their own; none: nothing runs. */
export function runWords(words: readonly Word[], directory?: Word | 'unknown'): Runs {
  if (words.length === 0) return NOTHING;
  return { runs: [{ kind: 'argv', words, ...(directory === undefined ? {} : { directory }) }] };
}

/** The words as a text that a shell reads; none: nothing runs. */
export function runText(text: readonly Word[], dialect: Dialect = 'posix', directory?: 'unknown'): Runs {
  if (text.length === 0) return NOTHING;
  return { runs: [{ kind: 'text', text, dialect, ...(directory === undefined ? {} : { directory }) }] };
}

/** A runner that goes by the options of a call, which is refused where their reading leaves a doubt. */
export function behindOptions(
  runs: (read: Extract<ReadOptions, { readonly ok: true }>, call: Call) => Runs,
  where?: 'anywhere',
): (call: Call) => Runs {
  return (call) => {
    const read = readOptions(call.args, call.grammar, where);
    return read.ok ? runs(read, call) : refused(`${call.name}: ${read.message}`, read.word);
  };
}

/** Programs that run commands in ways which are not read here; only questions about themselves are understood. */
export function unreadable(call: Call): Runs {
  const [only, ...others] = call.args;
  if (others.length === 0 && /^(?:-V|-h|-l|--version|--help)$/.test(only?.value ?? '')) return NOTHING;
  return refused(
    `${call.name} runs commands in a way that is not understood: run the command directly.`,
    call.words[0],
  );
}

/** True if the program, or a verb of it, runs what stands in its words. */
export function runsSomething(behaviour: Behaviour | undefined): behaviour is Behaviour {
  if (behaviour === undefined) return false;
  const { runs, launches, verbs = {} } = behaviour;
  return runs !== undefined || launches !== undefined || Object.values(verbs).some(runsSomething);
}
