import { join, relative } from 'node:path';
import { isBeneath } from '../../util/absolute-path.ts';
import type { AccessRules, Denial } from './access-words.ts';
import { as, type Draft, loss, type Outcome, type PathEntry } from './draft.ts';
import type { ImportPlace } from './importer.ts';

const overlaps = (one: string, other: string) => isBeneath(one, other) || isBeneath(other, one);

const PATTERN = 'patterns of paths are not known here';
const NAME_IT = 'name the directory or file itself, if it may be allowed';

/** Lets commands read it, if nothing in it is denied. */
export function grantRead(
  draft: Draft,
  word: Denial,
  where: ImportPlace,
  denied: readonly Denial[],
  { innerAllowWins }: AccessRules,
): Outcome {
  const { root } = word;
  if (isBeneath(root, where.workspace)) return as('the workspace, which can be read');
  if (word.isPattern) return loss('narrower', PATTERN, NAME_IT);
  const inside = denied.find((denial) => isBeneath(denial.root, root) && denial.root !== root);
  const around = denied.find(
    (denial) =>
      isBeneath(root, denial.root) && (!innerAllowWins || denial.firm === true || word.firm === true),
  );
  const against = inside ?? around;
  if (against !== undefined)
    return loss(
      'narrower',
      `something in it must not be read (${against.text}), and nothing can be kept back from a path that is allowed here`,
      'put the parts that may be read into filesystem.read',
    );
  return grant(draft.read, 'filesystem.read', word, where);
}

/** Lets commands write it, if nothing in it is denied. */
export function grantWrite(
  draft: Draft,
  word: Denial,
  where: ImportPlace,
  denied: { readonly denyRead: readonly Denial[]; readonly denyWrite: readonly Denial[] },
): Outcome {
  const { root } = word;
  if (word.isPattern) return loss('narrower', PATTERN, NAME_IT);
  if (isBeneath(where.workspace, root) && root !== where.workspace)
    return loss(
      'narrower',
      'it holds the workspace and more, and only the workspace is made writable',
      'add filesystem.write for what else has to be written',
    );
  if (root === where.workspace) return as('profile = "workspace-write": the workspace can be written');
  if (isBeneath(root, where.workspace) && draft.profile === 'workspace-write')
    return keepNames(draft, word, where, as('the workspace, which can be written'));
  if (['/tmp', '/var/tmp', '/private/tmp'].includes(root))
    return loss(
      'narrower',
      'here each command has its own temporary directory, which is deleted when the command ends',
      'set filesystem.tmp = "host" if commands have to share files there with other programs',
    );
  const against = [...denied.denyRead, ...denied.denyWrite].find((denial) => overlaps(denial.root, root));
  if (against !== undefined)
    return loss(
      'narrower',
      `it overlaps with what must not be used (${against.text}), which cannot be kept back from a path that is allowed here`,
      'put the parts that may be written into filesystem.write',
    );
  return keepNames(draft, word, where, grant(draft.write, 'filesystem.write', word, where));
}

/** What the product itself keeps read-only in it: only the workspace has protected paths here. */
function keepNames(draft: Draft, { kept = [], root }: Denial, where: ImportPlace, outcome: Outcome): Outcome {
  if (kept.length === 0 || !('to' in outcome)) return outcome;
  if (isBeneath(root, where.workspace)) {
    draft.protect.push(...kept.map((name) => relative(where.workspace, join(root, name))));
    return outcome;
  }
  return loss(
    'wider',
    `${kept.join(', ')} in it cannot be written there, and only paths in the workspace can be protected here`,
    'put the parts that may be written into filesystem.write',
  );
}

function grant(list: PathEntry[], key: string, word: Denial, where: ImportPlace): Outcome {
  const { root: path } = word;
  // Neither the root nor a whole home should be given to a command; the sandbox would refuse to start.
  if (path === '/' || isBeneath(where.home, path))
    return loss(
      'narrower',
      'it is the root or a whole home directory, which holds what no command should have',
      `put the directories that are needed into ${key}`,
    );
  if (word.isByLink)
    return loss(
      'narrower',
      'a link in the workspace leads to it, and what lies in the workspace can allow nothing',
      `put ${key} there yourself, if it may be used`,
    );
  if (!where.exists(path))
    return loss(
      'narrower',
      'it is not there, and a policy whose paths are not there cannot be used',
      `make it, and add it to ${key}`,
    );
  list.push({ ...word, path });
  return as(key);
}
