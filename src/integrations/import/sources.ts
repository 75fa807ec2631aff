/** What `policy import --from` takes. Apart from the importers, which are loaded only where they are used. */
export const IMPORT_SOURCES = ['srt', 'claude-code', 'codex'] as const;
export type ImportSource = (typeof IMPORT_SOURCES)[number];
