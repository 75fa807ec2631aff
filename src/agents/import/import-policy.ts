import { parse, stringify, TomlError } from 'smol-toml';
import { errorMessage } from '../../base/error-message.ts';
import { SandboxError } from '../../base/errors/sandbox-error.ts';
import { visibleLine } from '../../base/visible-text.ts';
import type { PolicyFile } from '../../model/index.ts';
import { parsePolicy } from '../../policy/index.ts';
import { claudeCode } from './claude-code.ts';
import { codex } from './codex.ts';
import { codexRules } from './codex-rules.ts';
import {
  type Draft,
  type IMPORT_SOURCES,
  type ImportPlace,
  isTable,
  type Place,
  type Table,
} from './draft.ts';
import { srt } from './srt.ts';

/** THE registry of importers. */
const IMPORTERS: Readonly<
  Record<(typeof IMPORT_SOURCES)[number], (source: Table, place: ImportPlace) => Draft>
> = {
  srt,
  'claude-code': claudeCode,
  codex,
};
const RULES_OF_CODEX = /\.(rules|codexpolicy|execpolicy)$/;

/** A policy that was made, as a value and as a file. Every leaf of the source is in `translated` or in `losses`. */
interface ImportedPolicy extends Pick<Draft, 'translated' | 'losses' | 'remarks'> {
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
      `--from takes ${Object.keys(IMPORTERS).join(', ')}, and not ${from}`,
    );
  const isCodex = from === 'codex';
  const draft =
    isCodex && RULES_OF_CODEX.test(place.file)
      ? codexRules(text, place)
      : importer(parseTable(isCodex ? parse : JSON.parse, text, place.file), place);
  const { policy, translated, losses, remarks } = draft;
  const made = `Made by sandbox-run policy import --from ${from} of ${place.file}. Look at it before you use it.`;
  const comments = [visibleLine(made, 400), ...remarks, ...[...losses, ...translated].map(accountOf)];
  const toml = [...comments.map((line) => `# ${line}`), '', stringify(filled(policy))].join('\n');
  return { policy: await parsePolicy(toml, 'the imported policy'), toml, translated, losses, remarks };
}

/** What became of a part of the source, in a line of which the source makes no other one. */
export function accountOf({ place, value, ...outcome }: Draft['losses' | 'translated'][number]): string {
  const cut = (text = '') => (text.length > 120 ? `${text.slice(0, 119)}…` : text);
  const at = `${cut(placeText(place))} ${cut(JSON.stringify(value))}`;
  const line =
    'to' in outcome ? `${at}: ${outcome.to}` : `${outcome.effect} ${at}: ${outcome.why}; ${outcome.what}`;
  return visibleLine(line, 700);
}

/** `permissions.deny[0]`; a key that is no plain name stands in quotes. */
export function placeText(place: Place): string {
  const shown = place.map((key) => {
    if (typeof key === 'number') return `[${key}]`;
    return /^[\w-]+$|^line \d+$/.test(key) ? `.${key}` : `[${JSON.stringify(key)}]`;
  });
  return shown.join('').replace(/^\./, '');
}

/** Without empty lists and tables, and of each list every item once. */
function filled(table: Table): Table {
  const members = Object.entries(table).map(([key, value]): [string, unknown] => {
    if (Array.isArray(value)) return [key, [...new Set(value)]];
    return [key, isTable(value) ? filled(value) : value];
  });
  return Object.fromEntries(
    members.filter(([, value]) => typeof value === 'string' || Object.keys(Object(value)).length > 0),
  );
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
function parseTable(read: (text: string) => unknown, text: string, file: string): Table {
  let value: unknown;
  try {
    value = read(text.replace(/^\ufeff/, ''));
  } catch (error) {
    const [reason = ''] = errorMessage(error).split('\n');
    if (error instanceof TomlError) throw invalid(file, `line ${error.line}: ${reason}`);
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
