import type { SimpleCommand } from '../model/command-line.ts';
import type { ResolvedPath } from '../model/path-lookup.ts';
import type { Use } from '../programs/behaviour.ts';
import { directoriesBetween } from '../util/absolute-path.ts';
import type { CheckContext } from './check.ts';
import { directoriesOf, locationsOf } from './locations.ts';

/**
 * The directory in which git would find a repository other than that of the workspace: its settings are not protected
 * and may name programs (pager, fsmonitor, textconv). `undefined`: there is none.
 */
export function nestedRepository(
  command: SimpleCommand,
  use: Use,
  context: CheckContext,
): string | undefined {
  // A repository without a folder `.git`: the settings are a file of the work tree itself.
  if (use.options.some(({ name }) => name === 'bare')) return '--bare';
  const cwds = directoriesOf(command, context);
  const moves = use.options.filter(({ name, value }) => name === 'C' && value !== undefined);
  if (moves.length > 1) return moves.map(({ value }) => value?.word.source).join(' ');
  const [move] = moves;
  if (move?.value !== undefined) {
    const locations = locationsOf(move.value, cwds, context);
    if (locations === 'foreign-home' || locations.length === 0) return move.value.word.source;
    for (const { resolved, partial } of locations) {
      if (partial || resolved?.kind !== 'directory' || holdsRepository(resolved.canonical, context)) {
        return move.value.word.source;
      }
    }
    return undefined;
  }
  for (const cwd of cwds) {
    if (cwd === undefined) return command.words[0]?.source;
    if (cwd === context.rules.workspace) continue;
    // A directory that does not exist yet, or no longer: whatever will be there then.
    if (kindOf(cwd, context) !== 'directory' || holdsRepository(cwd, context)) return cwd;
  }
  return undefined;
}

/** True if a directory, or one between it and the workspace, is a repository of its own, with or without a work tree. */
function holdsRepository(directory: string, context: CheckContext): boolean {
  return [directory, ...directoriesBetween(directory, context.rules.workspace)].some(
    (path) =>
      path !== context.rules.workspace &&
      (kindOf(`${path}/.git`, context) !== 'missing' || kindOf(`${path}/HEAD`, context) !== 'missing'),
  );
}

/** What cannot be looked up may be a repository. */
function kindOf(path: string, { paths }: CheckContext): ResolvedPath['kind'] {
  try {
    const { kind, unknown } = paths.resolve(path);
    return unknown === undefined ? kind : 'other';
  } catch {
    return 'other';
  }
}
