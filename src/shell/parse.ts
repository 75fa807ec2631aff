import type { Parsed } from '../model/command-line.ts';

/** Stand-in until the shell branch is merged. */
export function parseShell(source: string): Parsed {
  return parseArgv(source.split(' '));
}

export function parseArgv(argv: readonly string[]): Parsed {
  const span = { start: 0, end: 0 };
  const words = argv.map((value) => ({
    value,
    parts: [{ kind: 'literal' as const, text: value }],
    source: value,
    span,
  }));
  return {
    understood: true,
    line: {
      source: undefined,
      commands: [
        {
          words,
          assignments: [],
          redirects: [],
          background: false,
          span,
          runBy: undefined,
          directories: [[]],
        },
      ],
    },
  };
}
