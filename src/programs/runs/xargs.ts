import type { Word } from '../../model/command-line.ts';
import { inputWord, prefixOf, withInput } from '../../model/word.ts';
import { hasOption, type OptionTable, optionValue, readOptions } from './options.ts';
import { NOTHING, type Runner, refused, runWords } from './runner.ts';

const XARGS: OptionTable = {
  flags: '0rtpxo',
  values: 'adEILnPs',
  attached: 'eil',
  long: {
    null: 'flag',
    'arg-file': 'value',
    delimiter: 'value',
    eof: 'optional',
    replace: 'optional',
    'max-lines': 'optional',
    'max-args': 'value',
    'max-procs': 'value',
    interactive: 'flag',
    'max-chars': 'value',
    'no-run-if-empty': 'flag',
    'show-limits': 'flag',
    verbose: 'flag',
    exit: 'flag',
    'open-tty': 'flag',
    'process-slot-var': 'value',
    help: 'flag',
    version: 'flag',
  },
};

/** `xargs [options] command [words]`: the items of the input are put in where the marker stands, or at the end. */
export const xargs: Runner = (call) => {
  const read = readOptions(call.words.slice(1), XARGS);
  if (!read.ok) return refused(`xargs: ${read.message}`, read.word);
  const [first] = read.rest;
  if (first === undefined) return NOTHING;
  if (!hasOption(read.options, 'I', 'i', 'replace')) return runWords([...read.rest, inputWord(first.span)]);
  const given = optionValue(read.options, 'I', 'i', 'replace');
  if (given !== undefined && given.value === undefined)
    return refused('xargs: the marker must be written out.', given);
  const marker = given?.value === undefined || given.value === '' ? '{}' : given.value;
  return runWords(read.rest.map((word) => withInput(word, marker, false)));
};

const PARALLEL: OptionTable = {
  flags: '0kmqtuvxX',
  values: 'jINnadCL',
  long: {
    jobs: 'value',
    bar: 'flag',
    eta: 'flag',
    'keep-order': 'flag',
    'dry-run': 'flag',
    null: 'flag',
    verbose: 'flag',
    tag: 'flag',
    halt: 'value',
    timeout: 'value',
    retries: 'value',
    joblog: 'value',
    results: 'value',
    progress: 'flag',
    delay: 'value',
    'line-buffer': 'flag',
    'no-notice': 'flag',
    'will-cite': 'flag',
    'max-args': 'value',
    colsep: 'value',
    ungroup: 'flag',
    group: 'flag',
    help: 'flag',
    version: 'flag',
  },
};

/** Characters that the shell which parallel starts takes as they are. */
const PLAIN = /^[A-Za-z0-9_./:=@%+,{}#-]*$/;

/** `parallel [options] command [words] ::: items`: the words are a text for a shell. */
export const parallel: Runner = (call) => {
  const read = readOptions(call.words.slice(1), PARALLEL);
  if (!read.ok) return refused(`parallel: ${read.message}`, read.word);
  if (hasOption(read.options, 'I'))
    return refused('parallel: only the usual markers are understood.', call.words[0]);
  const end = read.rest.findIndex((word) => /^:::/.test(prefixOf(word)));
  const command = read.rest.slice(0, end === -1 ? undefined : end);
  const [first] = command;
  if (first === undefined)
    return refused('parallel would run its input as commands: name the command.', call.words[0]);
  const unplain = command.find((word) => word.value === undefined || !PLAIN.test(word.value));
  if (unplain !== undefined)
    return refused(`parallel: ${unplain.source} is read by a shell: use plain words.`, unplain);
  const inner = command.map(marked);
  return runWords(
    inner.some((word, index) => word !== command[index]) ? inner : [...inner, inputWord(first.span)],
  );
};

/** Replacement strings of parallel: `{}`, `{.}`, `{/}`, `{1}`, `{#}` and their kin. */
function marked(word: Word): Word {
  const marker = /\{[^{}]*\}/.exec(word.value ?? '')?.[0];
  return marker === undefined ? word : withInput(word, marker, false);
}
