import { writeFileSync } from 'node:fs';
import { join } from 'node:path';

let count = 0;

/** Holds a command until its test lets it go on, however slow either of them is. */
export interface Hold {
  /** What is there once the test has called `letGo`. */
  readonly file: string;
  /** Shell text that ends once the test has called `letGo`. */
  readonly words: string;
  letGo(): void;
}

/** `directory`: one that the command can look into. */
export function makeHold(directory: string): Hold {
  const file = join(directory, `.let-go-${count++}`);
  return {
    file,
    words: `until [ -e '${file}' ]; do sleep 0.02; done`,
    letGo: () => writeFileSync(file, ''),
  };
}
