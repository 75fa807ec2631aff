import { stringify } from 'smol-toml';
import { SandboxError } from '../../errors/sandbox-error.ts';
import { parsePolicy } from '../../policy/load.ts';
import { visibleLine } from '../../util/visible-text.ts';
import { claudeCode } from './claude-code.ts';
import { codex } from './codex.ts';
import type { Imported, ImportPlace, PolicyImporter } from './importer.ts';
import { placeText } from './place.ts';
import { IMPORT_SOURCES, type ImportSource } from './sources.ts';
import { srt } from './srt.ts';

const BY_SOURCE: Readonly<Record<ImportSource, PolicyImporter>> = { srt, 'claude-code': claudeCode, codex };

/** THE registry of importers. */
const IMPORTERS: readonly PolicyImporter[] = IMPORT_SOURCES.map((id) => BY_SOURCE[id]);

/** Of a value that is repeated in a comment. */
const VALUE_CHARACTERS = 120;

/** A policy that was made, as a value and as a file. */
export interface ImportedPolicy extends Imported {
  readonly toml: string;
}

/**
 * Turns the text of settings into a policy, and tries it with the loader that will read it.
 * @throws {SandboxError} `usage.invalid` for an unknown source, `import.invalid`, `policy.invalid`.
 */
export async function importPolicy(from: string, text: string, place: ImportPlace): Promise<ImportedPolicy> {
  const importer = IMPORTERS.find(({ id }) => id === from);
  if (importer === undefined)
    throw new SandboxError(
      'usage.invalid',
      `--from takes ${IMPORTERS.map(({ id }) => id).join(', ')}, and not ${JSON.stringify(from)}`,
    );
  const imported = importer.translate(text, place);
  const toml = `${comments(from, imported, place)}\n${stringify(imported.policy)}`;
  const policy = await parsePolicy(toml, 'the imported policy');
  return { ...imported, policy, toml };
}

/** Where everything came from. */
function comments(from: string, { translated, losses, remarks }: Imported, { file }: ImportPlace): string {
  const line = (text: string) => `# ${visibleLine(text, 400)}`;
  const shown = (value: unknown) => visibleLine(JSON.stringify(value) ?? '', VALUE_CHARACTERS);
  return [
    line(`Made by sandbox-run policy import --from ${from} of ${file}. Look at it before you use it.`),
    ...remarks.map(line),
    '#',
    ...translated.map(({ place, value, to }) => line(`${placeText(place)} ${shown(value)}: ${to}`)),
    ...(losses.length === 0 ? [] : ['#', '# What has no equivalent:']),
    ...losses.map(({ place, value, effect, why }) =>
      line(`${placeText(place)} ${shown(value)}: ${effect === 'none' ? '' : `${effect}: `}${why}`),
    ),
    '',
  ].join('\n');
}
