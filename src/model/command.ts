/** What to run: a shell string (under bash) or an argument vector, never joined into a string. */
export type Command = string | readonly [string, ...string[]];
