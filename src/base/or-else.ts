/** What the work gives, or something else if it throws, for what may fail for any reason and is no worse then. */
export function orElse<T, Otherwise>(work: () => T, otherwise: Otherwise): T | Otherwise {
  try {
    return work();
  } catch {
    return otherwise;
  }
}
