import type { ExecutionResult } from '../model/execution-result.ts';

/** What a person should know of a command that has ended, one sentence each: its warnings, and what it made. */
export function warningsOf({ warnings, createdProtectedPaths }: ExecutionResult): readonly string[] {
  return [
    ...warnings,
    ...createdProtectedPaths
      .filter((path) => !warnings.some((warning) => warning.includes(path)))
      .map((path) => `the command created ${path}, which a trusted program may execute later; look at it`),
  ];
}
