import { withInput } from '../../model/word.ts';
import { hasOption, optionValue, readAnywhere, readOptions } from './options.ts';
import { NOTHING, type Runner, refused, runWords } from './runner.ts';

export const watch: Runner = (call) => {
  const read = readOptions(call.words.slice(1), {
    flags: 'bcCegtprwxhv',
    values: 'nqs',
    attached: 'd',
    long: {
      beep: 'flag',
      color: 'flag',
      'no-color': 'flag',
      differences: 'optional',
      errexit: 'flag',
      chgexit: 'flag',
      equexit: 'value',
      interval: 'value',
      precise: 'flag',
      'no-title': 'flag',
      'no-wrap': 'flag',
      'no-rerun': 'flag',
      exec: 'flag',
      shotsdir: 'value',
      help: 'flag',
      version: 'flag',
    },
  });
  if (!read.ok) return refused(`watch: ${read.message}`, read.word);
  if (hasOption(read.options, 'x', 'exec')) return runWords(read.rest);
  return read.rest.length === 0 ? NOTHING : { runs: [{ kind: 'text', text: read.rest, dialect: 'posix' }] };
};

/** `flock [options] file command…`, `flock file -c text`, `flock descriptor`. */
export const flock: Runner = (call) => {
  const read = readOptions(call.words.slice(1), {
    flags: 'sxeunoFvhV',
    values: 'wE',
    long: {
      shared: 'flag',
      exclusive: 'flag',
      unlock: 'flag',
      nonblock: 'flag',
      nb: 'flag',
      close: 'flag',
      'no-fork': 'flag',
      verbose: 'flag',
      timeout: 'value',
      wait: 'value',
      'conflict-exit-code': 'value',
      help: 'flag',
      version: 'flag',
    },
  });
  if (!read.ok) return refused(`flock: ${read.message}`, read.word);
  const [file, first, text] = read.rest;
  if (file !== undefined && file.value === undefined)
    return refused(`flock: ${file.source} must be written out.`, file);
  if (first?.value !== '-c' && first?.value !== '--command') return runWords(read.rest.slice(1));
  if (text === undefined || read.rest.length > 3) return refused('flock: -c takes one text.', first);
  return { runs: [{ kind: 'text', text: [text], dialect: 'posix' }] };
};

export const script: Runner = (call) => {
  const read = readAnywhere(call.words.slice(1), {
    flags: 'aefqhV',
    values: 'cEIOBTmo',
    attached: 't',
    long: {
      append: 'flag',
      command: 'value',
      echo: 'value',
      return: 'flag',
      flush: 'flag',
      force: 'flag',
      quiet: 'flag',
      'log-in': 'value',
      'log-out': 'value',
      'log-io': 'value',
      'log-timing': 'value',
      'logging-format': 'value',
      'output-limit': 'value',
      timing: 'optional',
      help: 'flag',
      version: 'flag',
    },
  });
  if (!read.ok) return refused(`script: ${read.message}`, read.word);
  const text = optionValue(read.options, 'c', 'command');
  if (text === undefined)
    return refused('script would start a shell that reads its standard input: use -c.', call.words[0]);
  return { runs: [{ kind: 'text', text: [text], dialect: 'posix' }] };
};

export const entr: Runner = (call) => {
  const read = readOptions(call.words.slice(1), { flags: 'acdnprsxz' });
  if (!read.ok) return refused(`entr: ${read.message}`, read.word);
  const [first] = read.rest;
  if (hasOption(read.options, 's') && first !== undefined) {
    return { runs: [{ kind: 'text', text: [first], dialect: 'posix' }] };
  }
  return runWords(read.rest.map((word) => withInput(word, '/_', true)));
};

/** Commands for gdb that start no program but the one that is examined. */
const GDB_COMMAND =
  /^(?:run|r|start|bt|bt full|backtrace|where|quit|q|continue|c|info [a-z ]+|thread apply all bt(?: full)?|set pagination off|set confirm off|break [\w:.]+)$/;

/** `gdb [options] program`, `gdb --args program words`. */
export const gdb: Runner = (call) => {
  const args = call.words.slice(1);
  for (let at = 0; at < args.length; at += 1) {
    const word = args[at];
    const text = word?.value?.replace(/^--/, '-');
    if (word === undefined || text === undefined)
      return refused(`gdb: ${word?.source} must be written out.`, word);
    if (text === '-args') return runWords(args.slice(at + 1));
    if (/^-(?:batch|q|quiet|nx|n|nh|nw|silent|return-child-result|version|help)$/.test(text)) continue;
    if (text === '-ex' || text === '-eval-command') {
      at += 1;
      if (!GDB_COMMAND.test(args[at]?.value ?? ''))
        return refused(`gdb: ${args[at]?.source} may run anything.`, args[at]);
    } else if (text.startsWith('-'))
      return refused(`gdb: the option ${word.source} is not known here.`, word);
    else
      return args.length > at + 2 ? refused('gdb: use --args before the program.', word) : runWords([word]);
  }
  return NOTHING;
};

/** What tmux and screen run is typed or given in many ways; only questions are understood. */
export const multiplexer: Runner = (call) => {
  const verb = call.words[1]?.value ?? '';
  const asks =
    /^(?:ls|list-\w+|has-session|has|kill-\w+|display-message|capture-pane|show-\w+|-V|-ls|-list|-v)$/.test(
      verb,
    );
  return asks
    ? NOTHING
    : refused(
        `${call.name} runs what it is given in a session of its own: run the command directly.`,
        call.words[0],
      );
};

/** Programs that run commands in ways which are not read here; only questions about themselves are understood. */
export const unreadable: Runner = (call) => {
  const [, only, ...others] = call.words;
  if (others.length === 0 && /^(?:-V|-h|-l|--version|--help)$/.test(only?.value ?? '')) return NOTHING;
  return refused(
    `${call.name} runs commands in a way that is not understood: run the command directly.`,
    call.words[0],
  );
};

export const UNREADABLE: readonly string[] =
  'at batch sg newgrp start-stop-daemon daemonize bwrap firejail expect unbuffer chpst nodemon concurrently sem capsh runcon tsp watchexec'.split(
    ' ',
  );
