import { wordFrom } from '../../model/word.ts';
import { hasOption, readOptions } from './options.ts';
import { NOTHING, type Runner, refused, runWords } from './runner.ts';

/** `busybox applet …`, `toybox applet …`. */
export const busybox: Runner = (call) => {
  const applet = call.words[1];
  if (applet?.value?.startsWith('-') === true) {
    return /^--(?:list|list-full|help|version)$/.test(applet.value)
      ? NOTHING
      : refused(`${call.name}: the option ${applet.source} is not known here.`, applet);
  }
  return runWords(call.words.slice(1));
};

/** The dynamic loader, which runs the program that it is given. */
export const loader: Runner = (call) => {
  const read = readOptions(call.words.slice(1), {
    long: {
      list: 'flag',
      verify: 'flag',
      'inhibit-cache': 'flag',
      'library-path': 'value',
      'inhibit-rpath': 'value',
      preload: 'value',
      audit: 'value',
      argv0: 'value',
      help: 'flag',
      version: 'flag',
      'list-tunables': 'flag',
      'list-diagnostics': 'flag',
      'glibc-hwcaps-prepend': 'value',
      'glibc-hwcaps-mask': 'value',
    },
  });
  if (!read.ok) return refused(`${call.name}: ${read.message}`, read.word);
  if (hasOption(read.options, 'preload', 'audit'))
    return refused(`${call.name} would load other code first.`, call.words[0]);
  return runWords(read.rest);
};

export const LOADER_NAME = /^ld(?:-linux|-musl|-[0-9.]+|64)?[A-Za-z0-9_.-]*\.so(?:\.[0-9]+)*$/;

/** `/proc/self/root/bin/rm` is `/bin/rm`. */
export const procRoot: Runner = (call) => {
  const [first, ...others] = call.words;
  const path = first?.value ?? '';
  const inner = PROC_ROOT.exec(path)?.[1];
  if (first === undefined || inner === undefined)
    return refused(`${path} is another name for a program: use its own.`, first);
  return runWords([wordFrom(inner, first), ...others]);
};

const PROC_ROOT = /^\/+proc\/+(?:self|thread-self|[0-9]+)\/+(?:root|task\/+[0-9]+\/+root)(\/.*)$/;
/** Names in /proc and /dev/fd of programs that stand elsewhere. */
export const PROC_NAME = /^\/+(?:proc\/|dev\/fd\/)/;
