/** Variables by name. */
export type Environment = Readonly<Record<string, string | undefined>>;

/**
 * What a call of this program brings with it, and what its commands and decisions depend on. It is read at the door (the command line,
 * a server's, the library's), and handed on from there: code behind a door asks `process` for none of it. What is the same for every
 * call that a process serves, such as HOME, is read from the process.
 */
export interface Surroundings {
  readonly env: Environment;
  /** The current directory. Throws if it is gone. */
  readonly cwd: () => string;
  /** Descriptors of standard input, output and error. */
  readonly stdio: readonly [number, number, number];
}

/** Those of this process, for the doors. */
export const OF_THIS_PROCESS: Surroundings = {
  env: process.env,
  cwd: () => process.cwd(),
  stdio: [0, 1, 2],
};
