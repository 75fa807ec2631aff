// The exports of this room for code outside of src: tests and scripts import nothing below it.
export { isBeneath } from './absolute-path.ts';
export { deferred } from './deferred.ts';
export { orElse } from './or-else.ts';
export { shellWord } from './shell-quote.ts';
