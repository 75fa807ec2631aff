import type { SimpleCommand } from '../model/command-line.ts';
import type { Reason } from '../model/decision.ts';
import type { Danger, Use } from '../programs/behaviour.ts';
import { pathUses } from '../programs/path-uses.ts';
import { isBeneath } from '../util/absolute-path.ts';
import { type Check, type CheckContext, commandsOf, reasonFor } from './check.ts';
import { directoriesOf, isHarmlessDevice, locationsOf, mayWrite, pathsOf, useOf } from './locations.ts';

const reason = reasonFor('dangerous');

const SENTENCES: Readonly<Record<Danger, string>> = {
  privilege: 'changes the user or gains privileges; run the command without it',
  device: 'works on devices or destroys data beyond recovery',
  system: 'changes the system, not the workspace',
  container: 'controls containers, which are outside the sandbox',
  power: 'stops or restarts the machine',
  kernel: 'changes the running kernel',
};

/** Programs whose operands are gone afterwards. */
const REMOVERS: ReadonlySet<string> = new Set(['rm', 'rmdir', 'unlink', 'srm', 'trash', 'trash-put', 'mv']);

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
  if (REMOVERS.has(name)) return judgeRemoval(command, use, context);
  if (name === 'dd') return judgeDd(use);
  if (name === 'chmod') return judgeChmod(command, use, context);
  return [];
}

function judgeRemoval(command: SimpleCommand, use: Use, context: CheckContext): readonly Reason[] {
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
                `${use.program.name} would remove all of ${text}`,
                argument.word.source,
              ),
            ]
          : [];
      });
    });
}

function judgeDd({ operands }: Use): readonly Reason[] {
  return operands
    .filter(({ text }) => text.startsWith('of=/dev/') && !isHarmlessDevice(text.slice(3)))
    .map(({ word }) => reason('deny', 'device', `dd would write a device: ${word.source}`, word.source));
}

/** Modes that give the rights of the owner or group to every user who runs the file. */
const SETUID = /^(?:0?[2-7]\d{3}|[ugoa]*[+=][rwxXt]*s[rwxXst]*|.*,[ugoa]*[+=][rwxXt]*s.*)$/;

function judgeChmod(command: SimpleCommand, use: Use, context: CheckContext): readonly Reason[] {
  const mode = use.operands[0];
  if (mode?.complete === true && SETUID.test(mode.text)) {
    return [
      reason(
        'deny',
        'setuid',
        `chmod ${mode.text} makes a program run with the rights of its owner`,
        mode.word.source,
      ),
    ];
  }
  const cwds = directoriesOf(command, context);
  return use.operands.slice(1).flatMap((argument) => {
    return pathsOf(argument, cwds, context).some(({ canonical }) => !mayWrite(canonical, context))
      ? [
          reason(
            'deny',
            'system',
            `chmod would change permissions outside of the workspace: ${argument.word.source}`,
            argument.word.source,
          ),
        ]
      : [];
  });
}
