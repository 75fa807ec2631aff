#!/usr/bin/env node

import { exitWith } from './exit-with.ts';

// As main.ts: the program `sandbox-sh`.
exitWith(
  import('./sh.ts').then(({ shell }) => shell(process.argv.slice(2))),
  125,
);
