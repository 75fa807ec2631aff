import { accessSync, appendFileSync, constants } from 'node:fs';
import { delimiter, join } from 'node:path';
import { expect } from 'vitest';

/**
 * Whether one of some programs is not in PATH, for `skipIf`. Then the last lines of the run name the program and the test file
 * (scripts/test.mjs), so that nothing is left out in silence.
 */
export function lacks(...programs: readonly string[]): boolean {
  const missing = programs.filter((program) => !isInPath(program));
  const list = process.env.SANDBOX_RUN_TEST_LACKING;
  for (const program of missing)
    if (list !== undefined) appendFileSync(list, `${program}\t${expect.getState().testPath ?? ''}\n`);
  return missing.length > 0;
}

function isInPath(program: string): boolean {
  return (process.env.PATH ?? '').split(delimiter).some((directory) => {
    try {
      accessSync(join(directory, program), constants.X_OK);
      return true;
    } catch {
      return false;
    }
  });
}
