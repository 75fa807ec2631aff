import { looksSecret, looksSecretVariable } from '../../util/secret-name.ts';
import { as, type Draft, loss } from './draft.ts';
import { hideVariable, PASSED_ANYWAY } from './hidden-variables.ts';
import { isTable, type Leaf } from './place.ts';

/** Of the variables of the launcher, what "core" means there. */
const CORE = ['HOME', 'LOGNAME', 'PATH', 'SHELL', 'USER', 'USERNAME', 'TMPDIR', 'TEMP', 'TMP'];

/** `shell_environment_policy`. */
export function translateEnvironment(draft: Draft, policy: unknown): void {
  if (!isTable(policy)) return;
  const at = (...keys: readonly (string | number)[]): Leaf['place'] => ['shell_environment_policy', ...keys];
  const { inherit, set, exclude, include_only: only } = policy;
  const hide = (isHidden: (name: string) => boolean) => {
    for (const name of PASSED_ANYWAY) if (isHidden(name)) hideVariable(draft, name);
  };
  if (inherit === 'all')
    draft.note(
      { place: at('inherit'), value: inherit },
      loss('narrower', 'only variables that are named are passed on', 'name them in environment.pass'),
    );
  if (inherit === 'core' || inherit === 'none') {
    hide((name) => inherit === 'none' || !CORE.includes(name));
    draft.note({ place: at('inherit'), value: inherit }, as('what else would be passed on is given empty'));
  }
  for (const [key, value] of Object.entries(policy)) {
    if (!['ignore_default_excludes', 'experimental_use_profile'].includes(key)) continue;
    const leaf: Leaf = { place: at(key), value };
    const isStrict = value === false;
    draft.note(
      leaf,
      isStrict
        ? as('names that look like secrets are not passed on by a pattern, and no profile is read')
        : loss(
            'narrower',
            'names that look like secrets are not passed on, and no profile is read',
            'name them in environment.pass',
          ),
    );
  }
  if (Array.isArray(exclude)) {
    exclude.forEach((pattern: unknown, index) => {
      if (typeof pattern !== 'string') return;
      hide((name) => nameMatches(name, pattern));
      draft.note({ place: at('exclude', index), value: pattern }, as('it is not passed on'));
    });
  }
  if (Array.isArray(only)) {
    const patterns = only.filter((pattern): pattern is string => typeof pattern === 'string');
    hide((name) => !patterns.some((pattern) => nameMatches(name, pattern)));
    only.forEach((pattern: unknown, index) => {
      if (typeof pattern !== 'string') return;
      const leaf: Leaf = { place: at('include_only', index), value: pattern };
      const isExcluded = Array.isArray(exclude) && exclude.length > 0;
      if (
        !looksSecret(pattern) &&
        /^[A-Za-z_]\w*\*?$/.test(pattern) &&
        !isExcluded &&
        inherit !== 'none' &&
        inherit !== 'core'
      ) {
        draft.pass.push(pattern);
        draft.note(leaf, as('environment.pass'));
      } else
        draft.note(
          leaf,
          loss(
            'narrower',
            'it is not passed on: only names, or beginnings of names, can be, and none that looks like a secret (KEY, SECRET, TOKEN), as by default there',
            'name them in environment.pass',
          ),
        );
    });
  }
  if (!isTable(set)) return;
  for (const [name, value] of Object.entries(set)) {
    if (typeof value !== 'string') continue;
    if (looksSecretVariable(name) || !/^[A-Za-z_]\w*$/.test(name))
      draft.note(
        { place: at('set', name), value: '(not shown)' },
        loss(
          'narrower',
          'it looks like a secret, which no policy should have, or is no name',
          'pass it by name: --pass-env',
        ),
      );
    else {
      draft.set[name] = value;
      draft.note({ place: at('set', name), value }, as('environment.set'));
    }
  }
}

/** As there: `*` and `?`, whatever the case. */
function nameMatches(name: string, pattern: string): boolean {
  const source = pattern
    .replace(/[.+^${}()|[\]\\]/g, '\\$&')
    .replace(/\*+/g, '.*')
    .replace(/\?/g, '.');
  return pattern.length <= 200 && new RegExp(`^${source}$`, 'i').test(name);
}
