import { isBeneath } from '../../base/absolute-path.ts';
import type { Reason, SimpleCommand } from '../../model/index.ts';
import { type Argument, type Behaviour, type Danger, inherited, type Use } from '../programs/behaviour.ts';
import { pathUses } from '../programs/path-uses.ts';
import { type Check, type CheckContext, commandsOf, reasonFor } from './check.ts';
import { directoriesOf, locationsOf, mayWrite, pathsOf, placeAsShown, useOf } from './locations.ts';

const reason = reasonFor('dangerous');

const SENTENCES: Readonly<Record<Danger, string>> = {
  privilege: 'changes the user or gains privileges; run the command without it',
  device: 'works on devices or destroys data beyond recovery',
  system: 'changes the system, not the workspace',
  container: 'controls containers, which are outside the sandbox',
  power: 'stops or restarts the machine',
  kernel: 'changes the running kernel',
};

/** What no autonomy level permits; only the policy does, by name (`commands.permit_dangerous`). */
export const dangerousCheck: Check = {
  name: 'dangerous',
  summary:
    'refuses programs that change privileges, devices, the system or containers, or delete whole trees, unless the policy permits them',
  judge: (context) => {
    return commandsOf(context.parsed).flatMap((command) => {
      const use = useOf(command, context);
      // What is in a function is looked at where it stands.
      if (command.callsFunction === true) return [];
      if (use === undefined || context.rules.permitDangerous.includes(use.program.name)) return [];
      return judgeCommand(command, use, context);
    });
  },
};

function judgeCommand(command: SimpleCommand, use: Use, context: CheckContext): readonly Reason[] {
  const { name, danger } = use.program;
  const [first] = command.words;
  if (danger !== undefined) {
    return [reason('deny', danger, `${name} ${SENTENCES[danger]}`, first?.source ?? name)];
  }
  const isDirectory = (argument: Argument) => {
    const locations = locationsOf(argument, directoriesOf(command, context), context);
    return (
      locations !== 'foreign-home' &&
      locations.length > 0 &&
      locations.every(({ resolved, partial }) => !partial && resolved?.kind === 'directory')
    );
  };
  const dangers = inherited(use, 'dangers')?.(use, isDirectory) ?? [];
  if (dangers.length > 0)
    return dangers.map(({ code, message, words }) => reason('deny', code, `${name} ${message}`, ...words));
  return [...judgeRemoval(command, use, context), ...judgeOnlyInside(command, use, context)];
}

const REMOVES: ReadonlySet<Behaviour['operands']> = new Set(['removes', 'moves-then-writes']);

/** Only of programs that do nothing else: what `git rm` takes away, `git` has. */
function judgeRemoval(command: SimpleCommand, use: Use, context: CheckContext): readonly Reason[] {
  if (!REMOVES.has(use.program.operands)) return [];
  const cwds = directoriesOf(command, context);
  const { rules } = context;
  return pathUses(command, use)
    .filter(({ effect }) => effect === 'removes')
    .flatMap(({ argument }) => {
      const locations = locationsOf(argument, cwds, context);
      if (locations === 'foreign-home') return [];
      return locations.flatMap(({ text, resolved, partial }) => {
        if (resolved === undefined || partial) return [];
        // All files of a directory are the directory, for this purpose.
        const path = resolved.canonical.replace(/\/(?:\*|\.\[!\.\]\*|\.\*|\{\*,\.\*\})$/, '') || '/';
        const whole =
          isBeneath(rules.workspace, path) ||
          path === `${rules.workspace}/.git` ||
          isBeneath(rules.home, path) ||
          isBeneath(rules.userHome, path);
        return whole
          ? [
              reason(
                'deny',
                'destroys_tree',
                `${use.program.name} would remove all of ${placeAsShown(text, rules)}`,
                argument.word.source,
              ),
            ]
          : [];
      });
    });
}

function judgeOnlyInside(command: SimpleCommand, use: Use, context: CheckContext): readonly Reason[] {
  const { onlyInside } = use.program;
  if (onlyInside === undefined) return [];
  const cwds = directoriesOf(command, context);
  return pathUses(command, use)
    .map(({ argument }) => argument)
    .filter(
      (argument) =>
        use.operands.includes(argument) &&
        pathsOf(argument, cwds, context).some(({ canonical }) => !mayWrite(canonical, context)),
    )
    .map(({ word: { source } }) => {
      const message = `${use.program.name} would ${onlyInside} outside of the workspace: ${source}`;
      return reason('deny', 'system', message, source);
    });
}
