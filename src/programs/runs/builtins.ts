import { readOptions } from './options.ts';
import { NOTHING, type Runner, refused } from './runner.ts';

/** Builtins of the shell that run their arguments. They are runners only where a shell looks the name up. */
export const BUILTIN_RUNNERS: Readonly<Record<string, Runner>> = {
  command: (call) => {
    const read = readOptions(call.words.slice(1), { flags: 'pvV' });
    if (!read.ok) return refused(`command: ${read.message}`, read.word);
    if (read.options.some((option) => option.name !== 'p') || read.rest.length === 0) return NOTHING;
    return { runs: [{ kind: 'argv', words: read.rest, inShell: true }] };
  },
  builtin: (call) => {
    const read = readOptions(call.words.slice(1), {});
    if (!read.ok) return refused(`builtin: ${read.message}`, read.word);
    return read.rest.length === 0 ? NOTHING : { runs: [{ kind: 'argv', words: read.rest, inShell: true }] };
  },
  exec: (call) => {
    const read = readOptions(call.words.slice(1), { flags: 'cl', values: 'a' });
    if (!read.ok) return refused(`exec: ${read.message}`, read.word);
    return read.rest.length === 0 ? NOTHING : { runs: [{ kind: 'argv', words: read.rest }] };
  },
  trap: (call) => {
    const action = call.words[1];
    if (action === undefined || /^(?:-.*|)$/.test(action.value ?? '')) return NOTHING;
    return {
      runs: [{ kind: 'text', text: [action], dialect: 'bash', sameShell: true, directory: 'unknown' }],
    };
  },
  eval: (call) => {
    const words = call.words[1]?.value === '--' ? call.words.slice(2) : call.words.slice(1);
    return words.length === 0
      ? NOTHING
      : { runs: [{ kind: 'text', text: words, dialect: 'bash', sameShell: true }] };
  },
};
