#!/usr/bin/env node
import { endWith } from './shared/end-with.ts';

// As main.ts: the program `sandbox-sh`.
endWith(
  import('./sh/sh.ts').then(({ shell }) => shell(process.argv.slice(2))),
  125,
);
