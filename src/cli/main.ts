#!/usr/bin/env node
import { endWith } from './shared/end-with.ts';

// No top-level await: the program is built as CommonJS. Node's own compile cache is not used: it lies where TMPDIR says,
// and a command may be able to write there.
const [first, ...rest] = process.argv.slice(2);
// An agent waits for the hook with each of its tool calls, which needs nothing of the others. Only status 2 stops a call.
if (first === 'hook')
  endWith(
    import('./hook/hook.ts').then(({ hook }) => hook(rest)),
    2,
  );
// What dist/sandbox-sh.cjs is for native/client.
else if (first === 'sandbox-sh')
  endWith(
    import('./sh/sh.ts').then(({ shell }) => shell(rest)),
    125,
  );
// The program of a command line from `sandbox.commandLine()` of the library.
else if (first === 'embedded')
  endWith(
    import('./embedded/embedded.ts').then(({ embedded }) => embedded(rest)),
    125,
  );
// Internal, started in the background.
else if (first === 'warm')
  endWith(
    import('./warm/warm.ts').then(({ warm }) => warm(rest)),
    125,
  );
else
  endWith(
    import('./dispatch.ts').then(({ dispatch }) => dispatch(process.argv.slice(2))),
    125,
  );
