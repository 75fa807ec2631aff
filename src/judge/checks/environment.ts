import { leadingText, type Reason, type SimpleCommand, type Word } from '../../model/index.ts';
import { describeAs, findProgram, programName } from '../programs/program-table.ts';
import { isListedVariable, variableRule, variableRuleOfList } from '../programs/variables.ts';
import { type Check, type CheckContext, commandsOf, holdsUnseenCode, reasonFor } from './check.ts';

const reason = reasonFor('environment');

/** A variable that a command sets, by whatever means. */
interface Setting {
  readonly name: string;
  /** `undefined`: known only when it runs. */
  readonly value: string | undefined;
  readonly source: string;
  /** A program is given it; otherwise it is the shell's, and a program is given it only if it had it before. */
  readonly isExported: boolean;
}

/**
 * Variables that change what runs are not set unasked, and not at all under an allow-list: with LD_PRELOAD or GIT_EXTERNAL_DIFF
 * a listed program is as good as any. What no table knows is no better there, as a program may read it as configuration.
 */
export const environmentCheck: Check = {
  name: 'environment',
  summary:
    'asks about setting a variable that changes what runs (PATH, LD_*, GIT_*, PAGER …); under an allow-list, refuses every variable that is not known as harmless',
  judge: (context) => {
    const isList = context.rules.allow !== undefined;
    if (!isList && holdsUnseenCode(context)) return [];
    const { parsed, autonomy } = context;
    const judged = (
      name: string,
      rule: ReturnType<typeof variableRule>,
      how: string,
      source: string,
    ): readonly Reason[] => {
      if (rule === undefined) return [];
      const message = `${name} ${rule.reason}${how}`;
      if (isList) return [reason('deny', 'variable', `${message}; not under commands.allow`, source)];
      if (rule.contained === true && autonomy === 'autonomous') return [];
      return [reason('ask', 'variable', message, source)];
    };
    const ofCommands = commandsOf(parsed).flatMap((command) =>
      settingsOf(command).flatMap(({ name, value, source, isExported }) => {
        const isPassedOn = isList && (isExported || isGiven(name, context));
        const rule = isPassedOn ? variableRuleOfList(name, value) : variableRule(name, value);
        return judged(name, rule, `: ${source}`, source);
      }),
    );
    const ofShell = (parsed.understood ? parsed.line.variables : []).flatMap((name) => {
      const isPassedOn = isList && isGiven(name, context);
      const rule = isPassedOn ? variableRuleOfList(name, undefined) : variableRule(name, undefined);
      return judged(name, rule, ', and is set or unset here', name);
    });
    // Variables of the request; without a list of allowed ones, its caller is responsible for them.
    const ofRequest = Object.entries(isList ? (context.variables ?? {}) : {}).flatMap(([name, value]) =>
      value === undefined
        ? []
        : judged(name, variableRuleOfList(name, value), ` and comes with the request`, name),
    );
    return [...ofCommands, ...ofShell, ...ofRequest];
  },
};

/**
 * Whether a command may get a variable of that name with its environment, so that an assignment alone changes what programs get.
 * Where the environment is not known, names of capital letters may be in it: those of variables of the shell are usually not.
 */
function isGiven(name: string, { rules: { environment } }: CheckContext): boolean {
  if (environment === undefined) return /^[A-Z]/.test(name);
  return isListedVariable(name, environment);
}

/** What a command sets, for itself, for what it runs or for the shell. */
export function settingsOf(command: SimpleCommand): readonly Setting[] {
  const name = programName(command);
  const program = name === undefined ? undefined : findProgram(name);
  const ownAssignments = command.assignments.filter(
    (assignment) => assignment.name !== 'IFS' || program?.splitsInput !== true,
  );
  const words = program?.assigns?.(describeAs(command, program)) ?? [];
  return [
    ...ownAssignments.map(({ name, value, append }) => ({
      name,
      value: append ? undefined : value.value,
      source: `${name}${append ? '+=' : '='}${value.source}`,
      isExported: command.words.length > 0,
    })),
    ...words.flatMap(settingOf),
  ];
}

function settingOf(word: Word): readonly Setting[] {
  const text = leadingText(word);
  const match = /^([A-Za-z_]\w*)(\+?=)/.exec(text);
  const name = match?.[1];
  if (match === null || name === undefined) return [];
  const complete = word.value !== undefined && match[2] === '=';
  return [
    {
      name,
      value: complete ? text.slice(match[0].length) : undefined,
      source: word.source,
      isExported: true,
    },
  ];
}
