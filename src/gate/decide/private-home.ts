import { isBeneath } from '../../base/absolute-path.ts';
import type { ResolvedPath } from '../../confine/plan/path-lookup.ts';
import type { RulesOfCommands } from '../../judge/index.ts';
import type { PathSearch } from '../../model/index.ts';

type HomeRules = Pick<
  RulesOfCommands,
  'home' | 'homeShown' | 'privatePlaces' | 'workspace' | 'granted' | 'readable'
>;

/**
 * A lookup for paths that a command names. Where a private home lies over the user's, `~/project` is the project if the policy
 * shows it there, and anything else beneath `~` is private: it is looked up in `rules.home`, a name of which nothing exists on
 * the host, because what lies in the user's home means nothing to the command. A path that names the home without `~` means what
 * tools keep there, or is judged as outside: whoever writes `../notes` in a project wants a file that lasts.
 */
export function lookupInSandbox(paths: PathSearch, rules: HomeRules): PathSearch {
  const { home, homeShown, privatePlaces = [] } = rules;
  if (homeShown === undefined) return paths;
  const resolve = (path: string): ResolvedPath => {
    const isPrivate = isBeneath(path, home);
    if (!isPrivate && !privatePlaces.some((place) => isBeneath(path, `${homeShown}/${place}`)))
      return paths.resolve(path);
    const inner = path.slice((isPrivate ? home : homeShown).length);
    const shown = paths.resolve(`${homeShown}${inner}`);
    return isGranted(shown.canonical, rules) ? shown : paths.resolve(`${home}${inner}`);
  };
  return { ...paths, resolve };
}

/** A directory that a shell of the sandbox is in: what the user's home has at that path is not what the shell sees. */
export function directoryOfShell(path: string, rules: HomeRules): string {
  const { home, homeShown } = rules;
  return homeShown === undefined || !isBeneath(path, homeShown) || isGranted(path, rules)
    ? path
    : `${home}${path.slice(homeShown.length)}`;
}

function isGranted(path: string, { workspace, granted, readable }: HomeRules): boolean {
  return [workspace, ...granted, ...readable].some((root) => isBeneath(path, root));
}
