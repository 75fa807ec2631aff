import { SandboxError } from '../../errors/sandbox-error.ts';
import { isTable, type Table } from './place.ts';

/** Nested deeper than any settings are; what is deeper would take the stack. */
const MOST_LEVELS = 64;

/**
 * A JSON object, as the products read it: no comments, no commas at the end.
 * @throws {SandboxError} `import.invalid`.
 */
export function parseJsonObject(text: string, file: string): Table {
  let value: unknown;
  try {
    value = JSON.parse(text.replace(/^\ufeff/, ''));
  } catch (error) {
    const why = error instanceof Error ? error.message.split('\n')[0] : String(error);
    throw invalid(file, `it is no JSON (${why}); comments are not part of it`);
  }
  if (!isTable(value)) throw invalid(file, 'it is no JSON object');
  refuseDepth(value, file);
  return value;
}

/** @throws {SandboxError} `import.invalid` for what is nested too deeply. */
export function refuseDepth(value: unknown, file: string, level = 0): void {
  if (typeof value !== 'object' || value === null) return;
  if (level > MOST_LEVELS) throw invalid(file, `it is nested more than ${MOST_LEVELS} levels deep`);
  for (const member of Object.values(value)) refuseDepth(member, file, level + 1);
}

/** What is wrong with a source. */
export function invalid(file: string, why: string): SandboxError {
  return new SandboxError('import.invalid', `${file} cannot be imported: ${why}`);
}
