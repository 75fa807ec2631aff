/** Ends a `switch` over a union: a member that was forgotten is a compile error, and a bug at run time. */
export function assertNever(value: never): never {
  throw new TypeError(`unexpected value: ${JSON.stringify(value)}`);
}
