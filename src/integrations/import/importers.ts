import { claudeCode } from './claude-code.ts';
import { codex } from './codex.ts';
import type { PolicyImporter } from './importer.ts';
import { IMPORT_SOURCES, type ImportSource } from './sources.ts';
import { srt } from './srt.ts';

const BY_SOURCE: Readonly<Record<ImportSource, PolicyImporter>> = { srt, 'claude-code': claudeCode, codex };

/** THE registry of importers. */
export const IMPORTERS: readonly PolicyImporter[] = IMPORT_SOURCES.map((id) => BY_SOURCE[id]);
