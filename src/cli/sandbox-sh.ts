#!/usr/bin/env node
import { endWith } from './end-with.ts';

// As main.ts: the program `sandbox-sh`.
endWith(
  import('./sh.ts').then(({ shell }) => shell(process.argv.slice(2))),
  125,
);
