import { basename } from 'node:path';
import { isBeneath } from '../../base/absolute-path.ts';
import {
  ANY_WORDS,
  type CommandRule,
  type Decision,
  type Parsed,
  type Reason,
  type SimpleCommand,
  type Word,
} from '../../model/index.ts';
import { type Check, type CheckContext, commandsOf, reasonFor } from './check.ts';
import { directoriesOf } from './locations.ts';

const reason = reasonFor('rules');

/** `*` stands for anything, everything else for itself. Linear: no pattern of a policy can make it slow. */
export function matchesPattern(text: string, pattern: string): boolean {
  const [first = '', ...rest] = pattern.split('*');
  const last = rest.pop();
  if (last === undefined) return text === pattern;
  if (!text.startsWith(first) || text.length < first.length + last.length || !text.endsWith(last))
    return false;
  let at = first.length;
  for (const part of rest) {
    const found = text.indexOf(part, at);
    if (found === -1) return false;
    at = found + part.length;
  }
  return at <= text.length - last.length;
}

/** A dynamic word may become what the rule is about, and a rule only asks or refuses: it counts as a match. */
function wordMatches(word: Word, pattern: string): boolean {
  return word.value === undefined || matchesPattern(word.value, pattern);
}

/** Whether a rule is about commands that run in a directory. One that is not known counts, as a rule only asks or refuses. */
function directoryMatches(
  { directory }: CommandRule,
  cwd: string | undefined,
  context: CheckContext,
): boolean {
  return directory === undefined || cwd === undefined || isBeneath(cwd, directoryOfRule(directory, context));
}

/** Canonical. */
export const directoryOfRule = (directory: string, { rules, paths }: CheckContext): string =>
  paths.resolve(directory.replace(/^~(?=\/)/, rules.userHome)).canonical;

/** True if the rule is about this command. `executable`: what the name really stands for, if that is known. */
function ruleMatches(rule: CommandRule, command: SimpleCommand, executable: string | undefined): boolean {
  const [program, ...words] = command.words;
  if (program === undefined) return false;
  const names = [program.value, executable]
    .filter((path) => path !== undefined)
    .map((path) => basename(path));
  if (program.value !== undefined && !names.some((name) => matchesPattern(name, rule.program))) return false;
  let next = 0;
  for (const word of words) {
    const pattern = rule.words[next];
    if (pattern === undefined) break;
    if (wordMatches(word, pattern)) next += 1;
  }
  return next === rule.words.length;
}

/** True if a rule is about anything in a command line; for the examples in policy files, whose directory is not known. */
export function ruleMatchesLine(rule: CommandRule, parsed: Parsed): boolean {
  return commandsOf(parsed).some((command) =>
    rule.verdict === 'allow' ? namesAllOf(rule, command) : ruleMatches(rule, command, undefined),
  );
}

/** Whether a rule that allows names all words of a command: each is written out, and none stands between them. */
export function namesAllOf({ program, words: patterns }: CommandRule, { words }: SimpleCommand): boolean {
  const [name, ...values] = words.map(({ value }) => value);
  if (name === undefined || basename(name) !== program) return false;
  const isOpen = patterns.at(-1) === ANY_WORDS;
  const named = isOpen ? patterns.slice(0, -1) : patterns;
  if (values.length < named.length || (!isOpen && values.length > named.length)) return false;
  return values.every((value, at) => {
    const pattern = named[at];
    return value !== undefined && (pattern === undefined || matchesPattern(value, pattern));
  });
}

/** A rule as it is named in messages: `git push`. */
export const describeRule = (rule: CommandRule): string => [rule.program, ...rule.words].join(' ');

/** The code of the reason of a rule that has changes wait. Without a verdict: the command runs as a preview. */
const PREVIEWED = 'rule_preview';

const DOES = { deny: 'refuses', ask: 'asks about', preview: 'previews' } as const;
type Objecting = CommandRule & { readonly verdict: keyof typeof DOES };
const objects = (rule: CommandRule): rule is Objecting => rule.verdict !== 'allow';

/** Whether a rule has the changes of a command wait that a decision allows. */
export function isPreviewed({ reasons }: Pick<Decision, 'reasons'>): boolean {
  return reasons.some(
    ({ check, code, verdict }) => check === 'rules' && code === PREVIEWED && verdict === undefined,
  );
}

/** A rule that is about a command of the line. */
interface Met {
  readonly rule: Objecting;
  readonly command: SimpleCommand;
  /** The rule wants a preview, which this sandbox cannot make. */
  readonly isImpossible: boolean;
}

function rulesMet(context: CheckContext): readonly Met[] {
  const { rules, parsed, cwd, findExecutable, shell } = context;
  if (rules.own.length === 0) return [];
  return commandsOf(parsed).flatMap((command) => {
    const [program] = command.words;
    const executable = program?.value === undefined ? undefined : findExecutable(program.value, cwd);
    return rules.own
      .filter(objects)
      .filter(
        (rule) =>
          ruleMatches(rule, command, executable) &&
          directoriesOf(command, context).some((place) => directoryMatches(rule, place, context)),
      )
      .map((rule) => {
        const isImpossible = rule.verdict === 'preview' && (!rules.previews || shell !== undefined);
        return { rule, command, isImpossible };
      });
  });
}

/** Whether the changes of the whole line wait: because that was asked for, or by a rule. */
export function isHeldBack(context: CheckContext): boolean {
  return (
    context.effect === 'preview' ||
    rulesMet(context).some(({ rule, isImpossible }) => rule.verdict === 'preview' && !isImpossible)
  );
}

/** The operator's own rules. */
export const ownRules: Check = {
  name: 'rules',
  summary: 'Applies commands.rules, which ask, refuse, allow, or have changes wait.',
  judge: (context) =>
    rulesMet(context).map(({ rule, command, isImpossible }): Reason => {
      const words = command.words.map(({ source }) => source);
      const told = isImpossible
        ? `${DOES.preview} ${describeRule(rule)}, which is not possible here`
        : `${DOES[rule.verdict]} ${describeRule(rule)}`;
      const message = rule.reason ?? `a rule of the policy ${told}`;
      if (rule.verdict !== 'preview') return reason(rule.verdict, `rule_${rule.verdict}`, message, ...words);
      return reason(isImpossible ? 'ask' : undefined, PREVIEWED, message, ...words);
    }),
};
