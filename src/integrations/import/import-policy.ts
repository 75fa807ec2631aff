import { parse, stringify, TomlError } from 'smol-toml';
import { SandboxError } from '../../errors/sandbox-error.ts';
import type { PolicyFile } from '../../model/policy-keys.ts';
import { parsePolicy } from '../../policy/load.ts';
import { errorMessage } from '../../util/error-message.ts';
import { visibleLine } from '../../util/visible-text.ts';
import { claudeCode } from './claude-code.ts';
import { codex, codexRules } from './codex.ts';
import {
  type IMPORT_SOURCES,
  type Imported,
  type ImportPlace,
  isTable,
  placeText,
  type Table,
} from './draft.ts';
import { srt } from './srt.ts';

type Importer = (text: string, place: ImportPlace) => Imported;

/** THE registry of importers. */
const IMPORTERS: Readonly<Record<(typeof IMPORT_SOURCES)[number], Importer>> = {
  srt: (text, place) => srt(parseTable(JSON.parse, text, place), place),
  'claude-code': (text, place) => claudeCode(parseTable(JSON.parse, text, place), place),
  codex: (text, place) => {
    if (/\.(rules|codexpolicy|execpolicy)$/.test(place.file)) return codexRules(text, place);
    return codex(parseTable(parse, text, place), place);
  },
};

/** Of a value that is repeated in a comment. */
const VALUE_CHARACTERS = 120;

/** A policy that was made, as a value and as a file. */
export interface ImportedPolicy extends Omit<Imported, 'policy'> {
  readonly policy: PolicyFile;
  readonly toml: string;
}

/**
 * Turns the text of settings into a policy, and tries it with the loader that will read it.
 * @throws {SandboxError} `usage.invalid` for an unknown source, `import.invalid`, `policy.invalid`.
 */
export async function importPolicy(from: string, text: string, place: ImportPlace): Promise<ImportedPolicy> {
  const importer = Object.entries(IMPORTERS).find(([id]) => id === from)?.[1];
  if (importer === undefined)
    throw new SandboxError(
      'usage.invalid',
      `--from takes ${Object.keys(IMPORTERS).join(', ')}, and not ${JSON.stringify(from)}`,
    );
  const imported = importer(text, place);
  const toml = `${comments(from, imported, place)}\n${stringify(imported.policy)}`;
  return { ...imported, policy: await parsePolicy(toml, 'the imported policy'), toml };
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

/** What is wrong with a source. */
export function invalid(file: string, why: string): SandboxError {
  return new SandboxError('import.invalid', `${file} cannot be imported: ${why}`);
}

/** Nested deeper than any settings are; what is deeper would take the stack. */
const MOST_LEVELS = 64;

/**
 * The settings in a text, as the products read it: JSON has no comments, and no commas at the end.
 * @throws {SandboxError} `import.invalid`.
 */
function parseTable(read: (text: string) => unknown, text: string, { file }: ImportPlace): Table {
  let value: unknown;
  try {
    value = read(text.replace(/^\ufeff/, ''));
  } catch (error) {
    const [reason = ''] = errorMessage(error).split('\n');
    if (error instanceof TomlError)
      throw invalid(file, `line ${error.line}: ${reason.replace(/^Invalid TOML document: /, '')}`);
    // Some of these messages repeat what stands around the place, which may be a secret.
    const place = reason.replace(/, (?:\.\.\.)?".*$/, '');
    throw invalid(file, `it is no JSON (${place}); comments are not part of it`);
  }
  if (!isTable(value)) throw invalid(file, 'it is no JSON object');
  if (isDeeper(value, MOST_LEVELS)) throw invalid(file, `it is nested more than ${MOST_LEVELS} levels deep`);
  return value;
}

function isDeeper(value: unknown, levels: number): boolean {
  if (typeof value !== 'object' || value === null) return false;
  return levels < 0 || Object.values(value).some((member) => isDeeper(member, levels - 1));
}
