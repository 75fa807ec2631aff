import { isId } from '../protocol.ts';

const ENDING = '.json';
/** What a name begins with while its file is being written; such files are left alone, for a while. */
export const TEMPORARY_PREFIX = '.tmp-';

/** The `request_id` that a file is named after; `undefined`: it is not named like a request. */
export function idOfName(name: string): string | undefined {
  if (!name.endsWith(ENDING)) return undefined;
  const id = name.slice(0, -ENDING.length);
  return isFolderId(id) ? id : undefined;
}

/** Not every id can be a file's name: those that begin with a dot are hidden files, or directories. */
export function isFolderId(id: string): boolean {
  return isId(id) && !id.startsWith('.');
}

export function nameOf(id: string): string {
  return `${id}${ENDING}`;
}

export function isTemporary(name: string): boolean {
  return name.startsWith(TEMPORARY_PREFIX) && isId(name);
}
