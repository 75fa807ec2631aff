#!/usr/bin/env node
import { endWith } from './shared/end-with.ts';

// Starts the program `sandbox-sh`, as main.ts starts `sandbox-run`.
endWith(
  import('./sh/sh.ts').then(({ shell }) => shell(process.argv.slice(2))),
  125,
);
