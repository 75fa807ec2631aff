#!/usr/bin/env node

// No top-level await: the program is built as CommonJS. Node's own compile cache is not used: it lies where TMPDIR says,
// and a command may be able to write there.
// Should nothing say how it ended, it was no success.
process.exitCode = 125;
const [first, ...rest] = process.argv.slice(2);
// An agent waits for the hook with each of its tool calls, which needs nothing of the others.
const ended =
  first === 'hook'
    ? import('./hook.ts').then(({ hook }) => hook(rest))
    : import('./dispatch.ts').then(({ dispatch }) => dispatch(process.argv.slice(2)));
void ended.then((status) => {
  process.exitCode = status;
});
