#!/usr/bin/env node

// No top-level await: the program is built as CommonJS. Node's own compile cache is not used: it lies where TMPDIR says,
// and a command may be able to write there.
// Should nothing say how it ended, it was no success.
process.exitCode = 125;
void import('./dispatch.ts')
  .then(({ dispatch }) => dispatch(process.argv.slice(2)))
  .then((status) => {
    process.exitCode = status;
  });
