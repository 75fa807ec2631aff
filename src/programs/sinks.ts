const SINKS: ReadonlySet<string> = new Set(['-', '/dev/null', '/dev/stdout', '/dev/stderr', '/dev/tty']);

/** True for targets that keep nothing. */
export function isSink(path: string): boolean {
  return SINKS.has(path);
}
