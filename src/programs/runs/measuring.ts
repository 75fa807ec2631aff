import { hasOption, type OptionTable, readOptions } from './options.ts';
import { NOTHING, type Run, type Runner, refused, runWords } from './runner.ts';

/** What the verbs of perf that start a command take before it. */
const PERF_VERBS: Readonly<Record<string, OptionTable>> = {
  stat: {
    flags: 'advgAnBSiv',
    values: 'epotCrxGDIF',
    long: {
      event: 'value',
      repeat: 'value',
      output: 'value',
      detailed: 'flag',
      'all-cpus': 'flag',
      summary: 'flag',
    },
  },
  record: {
    flags: 'aAgRvqdTPns',
    values: 'eptrcFomCGujkbD',
    long: {
      event: 'value',
      freq: 'value',
      count: 'value',
      output: 'value',
      'call-graph': 'value',
      'all-cpus': 'flag',
    },
  },
};
/** Verbs that look at what was recorded, with no option that runs anything. */
const PERF_LOOKS = new Set(['list', 'version', 'evlist', 'buildid-list', '--version', '--help']);

/** `perf stat command…`, `perf record command…`. */
export const perf: Runner = (call) => {
  const [, verb] = call.words;
  if (verb === undefined) return NOTHING;
  if (verb.value !== undefined && PERF_LOOKS.has(verb.value)) return NOTHING;
  const table =
    verb.value !== undefined && Object.hasOwn(PERF_VERBS, verb.value) ? PERF_VERBS[verb.value] : undefined;
  if (table === undefined) {
    return refused(
      `perf ${verb.source} may run programs of its own: only stat, record and list are known here.`,
      verb,
    );
  }
  const read = readOptions(call.words.slice(2), table);
  return read.ok ? runWords(read.rest) : refused(`perf ${verb.value}: ${read.message}`, read.word);
};

/** Options of hyperfine whose value is run as well. */
const HYPERFINE_TEXTS = new Set(['p', 'prepare', 'c', 'cleanup', 's', 'setup', 'conclude']);

/** `hyperfine [options] text…`: each text, and those of some options, is run by `sh`. */
export const hyperfine: Runner = (call) => {
  const words = call.words.slice(1);
  const texts = [];
  const options = [];
  let rest = words;
  // Options also stand between the texts.
  while (rest.length > 0) {
    const read = readOptions(rest, {
      flags: 'NihV',
      values: 'wmMrpcsnu',
      long: {
        warmup: 'value',
        'min-runs': 'value',
        'max-runs': 'value',
        runs: 'value',
        setup: 'value',
        prepare: 'value',
        conclude: 'value',
        cleanup: 'value',
        'command-name': 'value',
        'time-unit': 'value',
        style: 'value',
        'export-json': 'value',
        'export-csv': 'value',
        'export-markdown': 'value',
        'ignore-failure': 'flag',
        'show-output': 'flag',
        help: 'flag',
        version: 'flag',
      },
    });
    if (!read.ok) return refused(`hyperfine: ${read.message}`, read.word);
    options.push(...read.options);
    const [text, ...others] = read.rest;
    if (text !== undefined) texts.push(text);
    rest = others;
  }
  if (hasOption(options, 'N'))
    return refused('hyperfine -N splits its texts by rules of its own: leave it out.');
  for (const { name, value } of options)
    if (HYPERFINE_TEXTS.has(name) && value !== undefined) texts.push(value);
  return { runs: texts.map((text): Run => ({ kind: 'text', text: [text], dialect: 'posix' })) };
};
