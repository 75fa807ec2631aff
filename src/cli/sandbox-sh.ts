#!/usr/bin/env node

// As main.ts: the program `sandbox-sh`.
process.exitCode = 125;
void import('./sh.ts')
  .then(({ shell }) => shell(process.argv.slice(2)))
  .then((status) => {
    process.exitCode = status;
  });
