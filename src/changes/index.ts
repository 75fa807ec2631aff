// The exports of this room for code outside of src: tests and scripts import nothing below it.
export { Below, lookAt } from './below.ts';
export { chosenNumbers, describeOperations } from './describe.ts';
export { withListed } from './git-directories.ts';
export { openToRead } from './held-paths.ts';
export { changeLine } from './in-words.ts';
export { type Operation, operationsOf } from './operations.ts';
export { ChangeStore } from './store.ts';
export type { TreeEntry } from './tree.ts';
