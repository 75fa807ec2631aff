import type { SimpleCommand, Word } from '../model/command-line.ts';
import type { Reason } from '../model/decision.ts';
import { leadingText } from '../model/word.ts';
import { describeAs, findProgram, programName } from '../programs/program-table.ts';
import { variableRule } from '../programs/variables.ts';
import { type Check, commandsOf, holdsUnseenCode, reasonFor } from './check.ts';

const reason = reasonFor('environment');

/** A variable that a command sets, by whatever means. */
interface Setting {
  readonly name: string;
  /** `undefined`: known only when it runs. */
  readonly value: string | undefined;
  readonly source: string;
}

/** Variables that change what runs are not set unasked. */
export const environmentCheck: Check = {
  name: 'environment',
  summary: 'asks about setting a variable that changes what runs (PATH, LD_*, GIT_*, PAGER …)',
  judge: (context) => {
    if (holdsUnseenCode(context)) return [];
    const { parsed, autonomy } = context;
    const reasons: Reason[] = [];
    for (const command of commandsOf(parsed)) {
      for (const { name, value, source } of settingsOf(command)) {
        const rule = variableRule(name, value);
        if (rule === undefined || (rule.contained === true && autonomy === 'autonomous')) continue;
        reasons.push(reason('ask', 'variable', `${name} ${rule.reason}: ${source}`, source));
      }
    }
    for (const name of parsed.understood ? parsed.line.variables : []) {
      const rule = variableRule(name, undefined);
      if (rule === undefined || (rule.contained === true && autonomy === 'autonomous')) continue;
      reasons.push(reason('ask', 'variable', `${name} ${rule.reason}, and is set or unset here`, name));
    }
    return reasons;
  },
};

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
  return [{ name, value: complete ? text.slice(match[0].length) : undefined, source: word.source }];
}
