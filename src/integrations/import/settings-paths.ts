import type { Word } from './access-words.ts';
import { as, type Draft, loss } from './draft.ts';
import type { Place } from './importer.ts';
import { isTable, type Leaf, type Table } from './place.ts';
import type { SettingsPlace } from './settings-place.ts';

const NOTHING = 'nothing is to be done';
const tableOf = (value: unknown): Table => (isTable(value) ? value : {});

const PATH_KEYS = ['allowRead', 'allowWrite', 'denyRead', 'denyWrite'] as const;

/** The paths of `filesystem`, and of `credentials.files`. */
export function pathWords(draft: Draft, settings: Table, place: SettingsPlace) {
  const filesystem = tableOf(settings.filesystem);
  const at = [...place.at, 'filesystem'];
  const words = Object.fromEntries(
    PATH_KEYS.map((key) => [
      key,
      [...place.more[key], ...wordsOf(filesystem[key], [...at, key], place.base)],
    ]),
  ) as Record<(typeof PATH_KEYS)[number], Word[]>;
  for (const key of PATH_KEYS) {
    const value = filesystem[key];
    if (Array.isArray(value) && value.length === 0)
      draft.note({ place: [...at, key], value }, as('no path is named'));
  }
  const isOff = filesystem.disabled === true;
  if (Object.hasOwn(filesystem, 'disabled')) {
    const leaf: Leaf = { place: [...at, 'disabled'], value: filesystem.disabled };
    if (!isOff) draft.note(leaf, as('files are kept apart'));
    else
      draft.note(
        leaf,
        loss(
          'narrower',
          'files are always kept apart here; the rules about paths, which are without effect there, are in force',
          NOTHING,
        ),
      );
  }
  if (Object.hasOwn(filesystem, 'allowGitConfig')) {
    const leaf: Leaf = { place: [...at, 'allowGitConfig'], value: filesystem.allowGitConfig };
    if (leaf.value === false) draft.note(leaf, as('.git/config is protected'));
    else
      draft.note(
        leaf,
        loss('narrower', '.git/config is always protected here', 'change it outside the sandbox'),
      );
  }
  if (Object.hasOwn(filesystem, 'allowManagedReadPathsOnly'))
    draft.note(
      { place: [...at, 'allowManagedReadPathsOnly'], value: filesystem.allowManagedReadPathsOnly },
      as('a file in the workspace can allow nothing'),
    );
  const files = tableOf(settings.credentials).files;
  if (Array.isArray(files)) {
    files.forEach((file: unknown, index) => {
      if (!isTable(file) || typeof file.path !== 'string') return;
      const where = [...place.at, 'credentials', 'files', index];
      words.denyRead.push({ place: where, value: file, text: file.path, base: place.base });
    });
  }
  return { words, isOff };
}

/** A list of paths: texts, or `{ path, literal: true }`. */
function wordsOf(value: unknown, at: Place, base: string): readonly Word[] {
  if (!Array.isArray(value)) return [];
  return value.flatMap((item: unknown, index): readonly Word[] => {
    const place = [...at, index];
    if (typeof item === 'string') return [{ place, value: item, text: item, base }];
    if (isTable(item) && typeof item.path === 'string' && item.literal === true)
      return [{ place, value: item, text: item.path, base, literal: true }];
    return [];
  });
}
