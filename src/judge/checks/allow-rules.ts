import { isBeneath } from '../../base/absolute-path.ts';
import { redact } from '../../base/redact.ts';
import {
  ANY_WORDS,
  type CommandRule,
  isLoss,
  type ProposedRule,
  type Reason,
  type Redirect,
  type SimpleCommand,
} from '../../model/index.ts';
import { inherited } from '../programs/behaviour.ts';
import { isSink } from '../programs/options.ts';
import { writesFile } from '../programs/path-uses.ts';
import { programName } from '../programs/program-table.ts';
import { findingsOf, reachOf, reachOfRedirect, riskOf, setsSomething } from '../programs/risk.ts';
import { type CheckContext, reasonFor } from './check.ts';
import { directoriesOf, isForeignTo, mayWrite, useOf } from './locations.ts';
import { describeRule, directoryOfRule, namesAllOf } from './own-rules.ts';

const reason = reasonFor('rules');

/** The questions that a rule can answer: about risk, and about a network that the policy opened. */
const ANSWERED: Readonly<Record<string, readonly string[]>> = {
  autonomy: ['needs_approval'],
  risk: ['medium', 'high'],
  leaves: ['network', 'outward', 'unseen_code'],
};

/** Builtins that change what the words of later commands mean. */
const CHANGES_MEANINGS: ReadonlySet<string> = new Set([
  ...['alias', 'unalias', 'shopt', 'hash', 'enable', 'set', 'trap', 'source', '.', 'eval', 'exec', 'builtin'],
]);

/**
 * The reasons of a line with its questions answered, where rules that allow answer all of them. A rule never answers for
 * another command: each one of the line is named by a rule, or would not be asked about by itself.
 */
export function answeredByRules(context: CheckContext, reasons: readonly Reason[]): readonly Reason[] {
  const asked = reasons.filter(({ verdict }) => verdict === 'ask');
  const isRefused = reasons.some(({ verdict }) => verdict === 'deny');
  // A rule does not answer questions about losses: a person decides each time.
  if (asked.length === 0 || isRefused || reasons.some(isLoss)) return reasons;
  if (!asked.every(({ check, code }) => ANSWERED[check]?.includes(code) === true)) return reasons;
  const rules = rulesFor(context);
  if (rules === undefined) return reasons;
  const allowed = [...new Set(rules)].map((rule) => {
    const name = describeRule(rule);
    return reason('allow', 'rule_allow', rule.reason ?? `a rule of the policy allows ${name}`, name);
  });
  return [
    ...reasons.map((one) => (one.verdict === 'ask' ? { ...one, verdict: undefined } : one)),
    ...allowed,
  ];
}

/** The rules that allow a whole line; `undefined`: they do not. */
function rulesFor(context: CheckContext): readonly CommandRule[] | undefined {
  const { parsed, shell } = context;
  const rules = context.rules.own.filter(({ verdict }) => verdict === 'allow');
  // In a shell that has run other commands, names and variables may mean something else.
  if (rules.length === 0 || !parsed.understood || shell !== undefined || setsSomething(parsed.line))
    return undefined;
  const met: CommandRule[] = [];
  for (const command of parsed.line.commands) {
    const rule = rules.find((one) => allows(one, command, context));
    if (rule !== undefined) met.push(rule);
    else if (!isUnremarkable(command, context)) return undefined;
  }
  return met.length === 0 ? undefined : met;
}

function allows(rule: CommandRule, command: SimpleCommand, context: CheckContext): boolean {
  if (command.callsFunction === true || !namesAllOf(rule, command)) return false;
  if (!command.redirects.every(isHarmless)) return false;
  const name = command.words[0]?.value ?? '';
  if (programName(command, isForeignTo(context)) === undefined) return false;
  const executable = context.findExecutable(name, context.cwd);
  if (executable !== undefined && mayWrite(executable, context)) return false;
  const { directory } = rule;
  if (directory !== undefined) {
    const root = directoryOfRule(directory, context);
    const places = directoriesOf(command, context);
    const isThere = (place: string | undefined) =>
      place !== undefined && isBeneath(context.paths.resolve(place).canonical, root);
    if (!places.every(isThere)) return false;
  }
  return opensNothingElse(rule, command, context);
}

/** What an option would run, load, write, delete or connect to is allowed only by a rule that says this option. */
function opensNothingElse(rule: CommandRule, command: SimpleCommand, context: CheckContext): boolean {
  const use = useOf(command, context);
  const said = new Set(rule.words.filter((word) => !word.includes('*')));
  return (
    use !== undefined &&
    findingsOf(use).every(
      ({ effect, words }) =>
        effect === 'reads' || words.every((word) => said.has(word) || word === use.verbs.at(-1)),
    )
  );
}

const isHarmless = (redirect: Redirect) =>
  reachOfRedirect(redirect) === 'local' && (!writesFile(redirect) || isSink(redirect.target.value ?? ''));

/** Nobody would be asked about this command by itself, whatever the level. */
function isUnremarkable(command: SimpleCommand, context: CheckContext): boolean {
  const isForeign = isForeignTo(context);
  return (
    command.callsFunction !== true &&
    !CHANGES_MEANINGS.has(command.words[0]?.value ?? '') &&
    (command.words.length === 0 || command.words[0]?.value !== undefined) &&
    riskOf(command, isForeign) === 'low' &&
    reachOf(command, isForeign, { settingsHeld: true }) === 'local'
  );
}

/**
 * The rule that is offered to who answers always: in the workspace, the one command of a line that is asked about. Of a program
 * with verbs the verb with whatever follows it (`cargo test …`); of one that runs something by name, changes something elsewhere,
 * or has no verbs, exactly its words. `undefined`: it would not answer all that is asked, or would hold what looks like a secret.
 */
export function proposedRule(context: CheckContext, reasons: readonly Reason[]): ProposedRule | undefined {
  const { parsed, rules } = context;
  if (!parsed.understood || !reasons.some(({ verdict }) => verdict === 'ask')) return undefined;
  const [command, ...others] = parsed.line.commands.filter((one) => !isUnremarkable(one, context));
  const use = command === undefined ? undefined : useOf(command, context);
  const [name, ...words] = command?.words.map(({ value }) => value) ?? [];
  if (use === undefined || name === undefined || others.length > 0) return undefined;
  const known = words.filter((word) => word !== undefined);
  // A star is a pattern in a rule, and was a letter in the command.
  if (known.length < words.length || [name, ...known].some((word) => word.includes('*'))) return undefined;
  if (known.join(' ') !== redact(known.join(' '))) return undefined;
  const { verbs } = use;
  const isOpen =
    verbs.length > 0 &&
    verbs.every((verb, at) => known[at] === verb) &&
    inherited(use, 'outward') === undefined &&
    !/^(?:run|run-script|exec|x|explore|tool)$/.test(verbs.at(-1) ?? '');
  const directory = rules.workspace;
  const proposed = {
    program: name.slice(name.lastIndexOf('/') + 1),
    words: isOpen ? [...verbs, ANY_WORDS] : known,
    directory,
  };
  const rule: CommandRule = { ...proposed, verdict: 'allow', reason: undefined };
  const withRule = { ...context, rules: { ...rules, own: [...rules.own, rule] } };
  return answeredByRules(withRule, reasons).some(({ verdict }) => verdict === 'ask') ? undefined : proposed;
}
