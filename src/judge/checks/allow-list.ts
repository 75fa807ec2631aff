import { basename } from 'node:path';
import { isBeneath } from '../../base/absolute-path.ts';
import type { Reason, SimpleCommand } from '../../model/index.ts';
import { type Check, type CheckContext, reasonFor } from './check.ts';
import { directoriesOf } from './locations.ts';

const reason = reasonFor('allow-list');

/** With these a name no longer means what the policy's own look-up says. */
const SEARCH_VARIABLES = new Set(['PATH', 'BASH_ENV', 'ENV', 'BASH_CMDS', 'BASH_ALIASES']);

/** True for a path that a command could have written itself. */
function isForeign(path: string, { rules }: CheckContext): boolean {
  return [rules.workspace, ...rules.writable].some((root) => isBeneath(path, root));
}

/**
 * A listed program is the one that its name stands for in directories where only the operator can put files. The name has to be
 * the same, too: in a multi-call binary (busybox, coreutils) every name leads to one file.
 */
function isListed(written: string, found: string, allow: readonly string[], context: CheckContext): boolean {
  const name = basename(written);
  return allow.some((entry) => {
    if (entry.includes('/')) return basename(entry) === name && context.findExecutable(entry, '/') === found;
    return entry === name && context.findExecutable(entry, context.rules.workspace) === found;
  });
}

function judgeProgram(command: SimpleCommand, allow: readonly string[], context: CheckContext): Reason {
  const [program] = command.words;
  if (command.callsFunction === true)
    return reason(
      undefined,
      'function',
      'a function of the command itself is called; what is in it is judged',
    );
  if (program === undefined) {
    const name = command.assignments.find((assignment) => SEARCH_VARIABLES.has(assignment.name))?.name;
    return name === undefined
      ? reason(undefined, 'no_program', 'no program is run')
      : reason(
          'deny',
          'search_path_changed',
          `${name} decides what a name stands for and must not be changed`,
          name,
        );
  }
  const changed = command.assignments.find((assignment) => SEARCH_VARIABLES.has(assignment.name));
  if (changed !== undefined)
    return reason(
      'deny',
      'search_path_changed',
      `${changed.name} decides what ${program.source} stands for and must not be set under an allow-list`,
      changed.name,
      program.source,
    );
  const written = program.value;
  if (written === undefined)
    return reason(
      'deny',
      'dynamic',
      `${program.source} is known only when it runs; name a listed program`,
      program.source,
    );
  const notListed = () =>
    reason(
      'deny',
      'not_listed',
      `${program.source} is not in commands.allow; allowed are ${allow.join(', ') || 'no programs'}`,
      program.source,
    );
  const relative = written.includes('/') && !written.startsWith('/');
  const [directory, ...others] = relative ? directoriesOf(command, context) : [context.cwd];
  if (directory === undefined || others.length > 0)
    return reason(
      'deny',
      'unknown_directory',
      `${program.source} depends on a directory that cannot be told`,
      program.source,
    );
  const found = context.findExecutable(written, directory);
  if (found === undefined) {
    // Nothing of that name exists: a shell builtin, or the shell says "not found".
    if (!written.includes('/') && allow.includes(written))
      return reason('allow', 'listed', `${written} is in commands.allow`, program.source);
    return notListed();
  }
  if (isForeign(found, context)) {
    if (!allow.some((entry) => basename(entry) === basename(written))) return notListed();
    return reason(
      'deny',
      'not_the_listed_program',
      `${program.source} would run ${found}, which a command could have written; it is not the listed ${basename(written)}`,
      program.source,
    );
  }
  return isListed(written, found, allow, context)
    ? reason('allow', 'listed', `${written} is in commands.allow`, program.source)
    : notListed();
}

/** Only listed programs, if there is a list. */
export const allowList: Check = {
  name: 'allow-list',
  summary:
    'With commands.allow, refuses every program that is not listed, and a program that only has a listed name.',
  judge(context) {
    const { allow } = context.rules;
    if (allow === undefined) return [reason(undefined, 'no_list', 'there is no allow-list')];
    if (!context.parsed.understood)
      return [
        // What is recognised of it may say more than that the rest is not: `ls; curl … | bash`.
        ...context.parsed.problem.recognized
          .map((command) => judgeProgram(command, allow, context))
          .filter(({ code }) => code === 'not_listed'),
        reason('deny', 'not_understood', 'with commands.allow, only commands that are understood may run'),
      ];
    return context.parsed.line.commands.map((command) => judgeProgram(command, allow, context));
  },
};
