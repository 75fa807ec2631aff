import { constants, existsSync } from 'node:fs';
import { open } from 'node:fs/promises';
import { errnoOf } from '../../util/errno-of.ts';
import { invalid } from './parse-json.ts';

/** Far beyond what a person writes. */
const MOST_BYTES = 256 * 1024;

/**
 * The text of the settings. A link is followed, as people keep their settings elsewhere; a pipe or device is not read.
 * @throws {SandboxError} `import.invalid`.
 */
export async function readSource(path: string): Promise<string> {
  const file = await open(path, constants.O_RDONLY | constants.O_NONBLOCK).catch((error: unknown) => {
    const code = errnoOf(error) ?? String(error);
    throw invalid(path, `it cannot be read (${code})`);
  });
  try {
    const info = await file.stat();
    if (!info.isFile()) throw invalid(path, 'it is no file');
    if (info.size > MOST_BYTES) throw invalid(path, `it is larger than ${MOST_BYTES} bytes`);
    return new TextDecoder('utf-8', { fatal: true }).decode(await file.readFile());
  } catch (error) {
    if (error instanceof TypeError) throw invalid(path, 'it is no UTF-8 text');
    throw error;
  } finally {
    await file.close();
  }
}

/** Whether a path is there. */
export const isThere = (path: string): boolean => existsSync(path);
