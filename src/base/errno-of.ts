/** The code of an error of the system, such as `ENOENT`; `undefined`: it is another error. */
export function errnoOf(error: unknown): string | undefined {
  return error instanceof Error && 'code' in error && typeof error.code === 'string' ? error.code : undefined;
}
