import type { SimpleCommand } from '../../model/command-line.ts';
import { programName } from '../program-table.ts';

/** Files and variables with settings of git's. */
const SETTINGS = /\.gitconfig|\.config\/git|\bGIT_CONFIG/;

/** A line that changes settings of git's first lets git run, or reach, what it likes. */
export function changesGitSettings(commands: readonly SimpleCommand[]): boolean {
  return commands.some(
    (command) =>
      (programName(command) === 'git' &&
        command.words.some(({ value }) => value === 'config' || value === 'set-url' || value === 'add') &&
        command.words.some(({ value }) => value === 'config' || value === 'remote')) ||
      [...command.words, ...command.redirects.map(({ target }) => target)].some(({ source }) =>
        SETTINGS.test(source),
      ) ||
      command.assignments.some(({ name }) =>
        /^(?:GIT_(?:CONFIG|DIR|SSH|EXEC|EXTERNAL|PROXY|ASKPASS)\w*|HOME|XDG_CONFIG_HOME)$/.test(name),
      ),
  );
}
