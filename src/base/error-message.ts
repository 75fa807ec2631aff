/** What somebody else's code threw, which can be anything: also what cannot be made a string of. */
export function errorMessage(thrown: unknown): string {
  try {
    return String(thrown instanceof Error ? thrown.message : thrown);
  } catch {
    return 'something that has no message';
  }
}
