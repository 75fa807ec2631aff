import { isSingle, prefixOf, withoutPrefix } from '../../model/word.ts';
import { type OptionTable, readOptions } from './options.ts';
import { NOTHING, type Runner, refused, runWords } from './runner.ts';

/** `nix develop … -c command`, `nix shell … -c command`, `nix run … -- words`. The command goes to the end of the line. */
export const nix: Runner = (call) => {
  const args = call.words.slice(1);
  const verb = args.findIndex(({ value }) => /^(?:develop|shell|run)$/.test(value ?? ''));
  if (verb === -1) return NOTHING;
  const ends = args[verb]?.value === 'run' ? /^--$/ : /^(?:-c|--command)$/;
  const end = args.findIndex(({ value }, at) => at > verb && value !== undefined && ends.test(value));
  const before = args.slice(verb + 1, end === -1 ? undefined : end);
  const dynamic = before.find(
    (word) => word.value === undefined && (prefixOf(word) === '' || !isSingle(word)),
  );
  if (dynamic !== undefined)
    return refused(`nix: ${dynamic.source} must be written out, or it is not clear what runs.`, dynamic);
  const rest = end === -1 ? [] : args.slice(end + 1);
  if (args[verb]?.value !== 'run') return runWords(rest);
  // What a package runs has its name, as far as is known.
  const program = before.find(({ value }) => value?.includes('#'));
  return program?.value === undefined
    ? NOTHING
    : runWords([withoutPrefix(program, program.value.indexOf('#') + 1), ...rest]);
};

/** `nix-shell … --run text` and `--command text`. */
export const nixShell: Runner = (call) => {
  const args = call.words.slice(1);
  const dynamic = args.find((word, at) => {
    const before = args[at - 1]?.value ?? '';
    return word.value === undefined && !/^--(?:run|command)$/.test(before) && !isSingle(word);
  });
  if (dynamic !== undefined)
    return refused(
      `nix-shell: ${dynamic.source} must be written out, or it is not clear what runs.`,
      dynamic,
    );
  const texts = args.filter((_, at) => /^--(?:run|command)$/.test(args[at - 1]?.value ?? ''));
  return { runs: texts.map((text) => ({ kind: 'text', text: [text], dialect: 'bash' })) };
};

const DEVBOX_RUN: OptionTable = {
  flags: 'qlh',
  values: 'ce',
  long: {
    'all-projects': 'flag',
    config: 'value',
    env: 'value',
    'env-file': 'value',
    environment: 'value',
    help: 'flag',
    list: 'flag',
    'omit-nix-env': 'flag',
    pure: 'flag',
    quiet: 'flag',
    recompute: 'flag',
  },
};

/** `devbox run [options] words`: the words are a text for a shell, unless the first is the name of a script. */
export const devbox: Runner = (call) => {
  const before = readOptions(call.words.slice(1), { flags: 'qh', long: { quiet: 'flag', help: 'flag' } });
  if (!before.ok) return refused(`devbox: ${before.message}`, before.word);
  const words = before.rest[0]?.value === 'global' ? before.rest.slice(1) : before.rest;
  if (words[0]?.value !== 'run') return NOTHING;
  const read = readOptions(words.slice(1), DEVBOX_RUN);
  if (!read.ok) return refused(`devbox: ${read.message}`, read.word);
  return read.rest.length === 0 ? NOTHING : { runs: [{ kind: 'text', text: read.rest, dialect: 'posix' }] };
};
