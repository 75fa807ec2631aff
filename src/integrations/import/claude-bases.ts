import { basename, dirname } from 'node:path';
import type { ClaudeBases } from './claude-rule.ts';
import type { ImportPlace } from './importer.ts';

/**
 * Settings of a project lie in its `.claude`; those of the user in that of the home. The product goes by the name under
 * which it finds them, so that goes first; where the name says nothing, what it leads to.
 */
export function basesOf({ file, home, workspace, lookup }: ImportPlace): ClaudeBases {
  const canonical = (path: string) => lookup.resolve(path).canonical;
  const cwd = canonical(workspace);
  const byName = dirname(file);
  const directories = [byName, canonical(byName), dirname(canonical(file))];
  const ofUser = canonical(`${home}/.claude`);
  for (const directory of directories) {
    if (canonical(directory) === ofUser) return { settings: ofUser, cwd };
    if (basename(directory) === '.claude') return { settings: canonical(dirname(directory)), cwd };
  }
  return { settings: cwd, cwd };
}
