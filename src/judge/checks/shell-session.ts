import {
  leadingText,
  type Parsed,
  type Reason,
  type Redirect,
  type SimpleCommand,
  type Verdict,
  type Word,
  type WordPart,
} from '../../model/index.ts';
import { describeAs, findProgram } from '../programs/program-table.ts';
import { type Check, type CheckContext, commandsOf, holdsUnseenCode, reasonFor } from './check.ts';

const reason = reasonFor('session');

/**
 * A line for a shell that has run others before: they may have given words another meaning. With a list of allowed programs
 * that is refused. With autonomy supervised it is asked about. With autonomous it is not: names do not keep a command in.
 */
export const shellSession: Check = {
  name: 'session',
  summary: 'In a shell session, asks about words whose meaning earlier commands may have changed.',
  judge: (context) => {
    const { shell, parsed } = context;
    if (shell === undefined) return [];
    const reasons: Reason[] = [];
    const verdict = verdictOf(context);
    for (const doubt of shell.doubts) {
      reasons.push(reason(verdict, 'unclear_shell', `in this session ${doubt}`));
    }
    const own = new Set(shell.names);
    const commands = commandsOf(parsed);
    for (const name of new Set(commands.flatMap(({ words: [first] }) => first?.value ?? []))) {
      if (!own.has(name)) continue;
      const message = `${name} is a function or alias that an earlier command of the session made`;
      reasons.push(reason(verdict, 'own_name', message, name));
    }
    // Where a line goes is judged by its words, however much is left to the agent.
    const atLeastAsk = verdict ?? (holdsUnseenCode(context) ? undefined : 'ask');
    for (const place of shell.places) {
      const word = commands.flatMap(wordsOf).find((one) => one.parts.some((part) => leadsTo(part, place)));
      if (word === undefined) continue;
      const message = `${word.source} leads elsewhere: in this session ${place} was changed`;
      reasons.push(reason(atLeastAsk, 'unclear_place', message, word.source));
    }
    if (shell.directoryDoubt !== undefined && commands.some(movesRelatively)) {
      reasons.push(reason(atLeastAsk, 'unclear_directory', `in this session ${shell.directoryDoubt}`));
    }
    for (const word of commands.flatMap(channelWords)) {
      const message = `${word} could reach the channel by which the session reports`;
      reasons.push(reason('ask', 'channel', message, word));
    }
    return reasons;
  },
};

function verdictOf({ rules, autonomy }: CheckContext): Verdict | undefined {
  if (rules.allow !== undefined) return 'deny';
  return autonomy === 'autonomous' || holdsUnseenCode({ autonomy, rules }) ? undefined : 'ask';
}

function wordsOf({ words, redirects, assignments }: SimpleCommand): readonly Word[] {
  return [...words, ...redirects.map(({ target }) => target), ...assignments.map(({ value }) => value)];
}

function leadsTo(part: WordPart, variable: string): boolean {
  return (
    (part.kind === 'parameter' && part.name === variable) ||
    (part.kind === 'tilde' && part.user === (variable === 'PWD' ? '+' : ''))
  );
}

function movesRelatively({ directories }: SimpleCommand): boolean {
  return (
    directories === undefined || directories.some((targets) => targets.some((target) => !isAbsolute(target)))
  );
}

function isAbsolute(target: { readonly value: string | undefined }): boolean {
  return target.value?.startsWith('/') ?? false;
}

/** The shell keeps its channel above 9; below are descriptors that a command may use as it likes. */
const FIRST_HIDDEN = 10;

function channelWords(command: SimpleCommand): readonly string[] {
  const redirects = command.redirects.filter(reachesHidden).map(({ target }) => target.source);
  // `read -u 10`, `read -ru10`, `read -u "$fd"`.
  const program = findProgram(command.words[0]?.value ?? '');
  if (program?.descriptors === undefined) return redirects;
  const { options } = describeAs(command, program);
  const numbers = options
    .filter(({ name }) => program.descriptors?.split(' ').includes(name))
    .map(({ value }) => (value?.complete === true ? value.text : (value?.word.source ?? '?')))
    .filter((number) => !/^\d$/.test(number));
  return [...redirects, ...numbers.map((number) => `${program.name} -u ${number}`)];
}

function reachesHidden({ descriptor, operator, target }: Redirect): boolean {
  if (descriptor !== undefined && descriptor >= FIRST_HIDDEN) return true;
  if (operator === '<<' || operator === '<<-' || operator === '<<<') return false;
  const text = leadingText(target);
  if (operator === '>&' || operator === '<&') {
    if (target.value === undefined) return true;
    if (/^\d+-?$/.test(text)) return Number.parseInt(text, 10) >= FIRST_HIDDEN;
  }
  const fd = /^\/(?:dev\/fd|proc\/[^/]*\/fd|proc\/[^/]*\/task\/[^/]*\/fd)\/(.*)$/.exec(text)?.[1];
  if (fd !== undefined) return target.value === undefined || !/^\d$/.test(fd);
  return target.value === undefined && /^\/(?:dev|proc)(?:\/|$)/.test(text);
}

/** Builtins that bring code into the shell which the text does not show, or hides in a text within it. */
const UNSEEN: ReadonlySet<string> = new Set(['.', 'source', 'eval']);
/** Builtins that run the others. */
const RUNS_BUILTINS: ReadonlySet<string> = new Set(['command', 'builtin']);

function bringsCode({ words }: SimpleCommand): boolean {
  const [first, ...others] = words.map(({ value }) => value ?? '');
  if (first === undefined) return false;
  return UNSEEN.has(first) || (RUNS_BUILTINS.has(first) && others.some((word) => UNSEEN.has(word)));
}

/** True if a shell that ran this may have become anything. */
export function leavesDoubts(parsed: Parsed): boolean {
  if (!parsed.understood) return true;
  return parsed.line.commands.some((command) => bringsCode(command) || channelWords(command).length > 0);
}
