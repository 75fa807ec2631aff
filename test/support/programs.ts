import { accessSync, appendFileSync, constants } from 'node:fs';
import { delimiter, resolve } from 'node:path';
import { expect } from 'vitest';

/**
 * Whether one of some programs is not in PATH, for `skipIf`. Then the last lines of the run name the program and the test file
 * (scripts/test.mjs), so that nothing is left out in silence.
 */
export const lacks = (...programs: readonly string[]): boolean =>
  lacksIn(process.env.PATH ?? '', ...programs);

/** Like `lacks`, for the PATH of another user. A program can also be the absolute path of a file. */
export function lacksIn(path: string, ...programs: readonly string[]): boolean {
  const missing = programs.filter((program) => !isIn(path, program));
  const list = process.env.SANDBOX_RUN_TEST_LACKING;
  for (const program of missing)
    if (list !== undefined) appendFileSync(list, `${program}\t${expect.getState().testPath ?? ''}\n`);
  return missing.length > 0;
}

function isIn(path: string, program: string): boolean {
  return path.split(delimiter).some((directory) => {
    try {
      accessSync(resolve(directory, program), program.startsWith('/') ? constants.R_OK : constants.X_OK);
      return true;
    } catch {
      return false;
    }
  });
}
