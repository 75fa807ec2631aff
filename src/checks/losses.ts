import type { SimpleCommand } from '../model/command-line.ts';
import type { Reason } from '../model/decision.ts';
import { type Argument, inherited, type Use } from '../programs/behaviour.ts';
import { hasOption } from '../programs/options.ts';
import { isRegenerable } from '../programs/regenerable.ts';
import { asksForHelp } from '../programs/risk.ts';
import { isBeneath } from '../util/absolute-path.ts';
import { type Check, type CheckContext, commandsOf, reasonFor } from './check.ts';
import { directoriesOf, pathsOf, useOf } from './locations.ts';
import { meaningsOf, perhapsLost } from './unknown-words.ts';

const reason = reasonFor('losses');

/**
 * The sandbox protects what is outside the workspace. Version control brings back what it knows inside. A loss that neither
 * prevents is asked about.
 */
export const lossesCheck: Check = {
  name: 'losses',
  summary:
    'contained: asks before a command deletes work in the workspace that version control does not have',
  judge: (context) => {
    // Of a preview nothing is lost: what it takes away is there until it is applied.
    // Nor of what can be taken back.
    if (context.autonomy !== 'contained' || context.effect === 'preview') return [];
    if (context.effect === 'undoable' && context.rules.undoes === true) return [];
    return commandsOf(context.parsed).flatMap((command) => {
      const use = useOf(command, context);
      if (use === undefined || asksForHelp(use)) return [];
      return [...judgeVerb(command, use, context), ...judgeRemoval(command, use, context)];
    });
  },
};

/** `git reset --hard`, `git clean -f`: rows of the table say what they throw away. */
function judgeVerb(command: SimpleCommand, use: Use, context: CheckContext): readonly Reason[] {
  const loss = inherited(use, 'loses')?.(use);
  if (loss === undefined) return [];
  const words = [[use.program.name, ...use.verbs].join(' ')];
  if (loss.what === 'always') return [reason('ask', 'loses', `${words[0]} ${loss.message}`, ...words)];
  const cwds = directoriesFor(command, use, context);
  const lost =
    loss.paths === undefined
      ? cwds.flatMap(
          (cwd) =>
            context.versions?.changedAround(
              context.paths.resolve(cwd ?? context.rules.workspace).canonical,
            ) ?? [],
        )
      : placesOf(loss.paths, cwds, context).flatMap((path) => context.versions?.changedAt(path) ?? []);
  const [first] = lost;
  return first === undefined
    ? []
    : [reason('ask', 'loses', `${words[0]} ${loss.message}: ${inWorkspace(first, context)}`, ...words)];
}

function judgeRemoval(command: SimpleCommand, use: Use, context: CheckContext): readonly Reason[] {
  const { workspace } = context.rules;
  const removed = [...removedBy(use), ...movedOut(command, use, context)].flatMap((argument) =>
    meaningsOf(argument, command, context),
  );
  const cwds = directoriesFor(command, use, context);
  const lost = placesOf(removed, cwds, context).flatMap((path) =>
    isBeneath(path, workspace) && !isRegenerable(path, workspace)
      ? (context.versions?.lostWith(path) ?? [])
      : [],
  );
  const reasons = lost.map((path) => {
    const shown = inWorkspace(path, context);
    const message = `${use.program.name} would delete ${shown}, which version control cannot restore`;
    return reason('ask', 'deletes', message, shown);
  });
  if (reasons.length > 0) return reasons;
  for (const { word } of removed) {
    const path = perhapsLost(word, cwds, context);
    if (path === undefined) continue;
    const shown = inWorkspace(path, context);
    const unknown =
      word.value === undefined ? `what ${word.source || 'its input'} stands for` : `where ${word.source} is`;
    const message = `${use.program.name} may delete ${shown}, which version control cannot restore: ${unknown} is known only when it runs`;
    return [reason('ask', 'may_delete', message, word.source)];
  }
  return [];
}

/** What is gone afterwards. */
function removedBy(use: Use): readonly Argument[] {
  if (inherited(use, 'operands') !== 'removes' || inherited(use, 'onlyEmpty') === true) return [];
  return hasOption(use, inherited(use, 'keepsWith') ?? '') ? [] : use.operands;
}

/** What is moved out of the workspace, to a place that is deleted with the command: `mv notes.txt /tmp/`. */
function movedOut(command: SimpleCommand, use: Use, context: CheckContext): readonly Argument[] {
  // `git mv` moves within its repository.
  if (use.program.operands !== 'moves-then-writes') return [];
  const targetOptions = use.program.targetOptions?.split(' ') ?? [];
  const into = use.options.find(({ name }) => targetOptions.includes(name))?.value;
  const to = into ?? use.operands.at(-1);
  const leaves =
    to !== undefined &&
    (/^"?\$\{?TMPDIR\b/.test(to.word.source) ||
      placesOf([to], directoriesOf(command, context), context).some(
        (path) => !isBeneath(path, context.rules.workspace),
      ));
  return leaves ? use.operands.filter((one) => one !== to) : [];
}

/** The directories in which its words are paths: `git -C DIR` goes there first. */
function directoriesFor(
  command: SimpleCommand,
  use: Use,
  context: CheckContext,
): readonly (string | undefined)[] {
  const moves = use.program.repository?.(use).moves ?? [];
  return moves.reduce<readonly (string | undefined)[]>(
    (cwds, move) => placesOf([move], cwds, context),
    directoriesOf(command, context),
  );
}

/** Where words lead that are known; what a program gets from elsewhere is not asked about, as code is not. */
function placesOf(
  words: readonly Argument[],
  cwds: readonly (string | undefined)[],
  context: CheckContext,
): readonly string[] {
  return words.flatMap((word) =>
    pathsOf(word, cwds, context, { partial: false }).map(({ canonical }) => canonical),
  );
}

function inWorkspace(path: string, { rules: { workspace } }: CheckContext): string {
  return isBeneath(path, workspace) && path !== workspace ? path.slice(workspace.length + 1) : path;
}
