/** A value, at once or later. */
export type MaybePromise<T> = T | Promise<T>;

/** True for a promise, also one of another realm or library. */
export function isPromise<T>(value: T | PromiseLike<T>): value is PromiseLike<T> {
  return typeof value === 'object' && value !== null && 'then' in value && typeof value.then === 'function';
}

/** Goes on with a value at once, or when its promise settles. */
export function andThen<T, U>(value: T | PromiseLike<T>, use: (value: T) => U | Promise<U>): U | Promise<U> {
  return isPromise(value) ? Promise.resolve(value).then(use) : use(value);
}
