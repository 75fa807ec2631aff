import type { Pattern } from './pattern.ts';

/** A file that was written a moment ago is run: normal for a compiler's output, and how a payload is dropped. */
export const createThenExecute: Pattern = {
  code: 'create_then_execute',
  summary: 'a file is run that a command of the session, or the same one, has just written',
  find: (latest, earlier) => {
    if (!latest.launched) return [];
    const writers = [...earlier.filter(({ launched }) => launched), latest];
    return [...new Set(latest.executes)].flatMap((path) => {
      const writer = writers.findLast(({ writes }) => writes.includes(path));
      if (writer === undefined) return [];
      return [
        {
          about: path,
          message: `a file was run that had just been written: ${path}`,
          details: { path, written_by: writer.request, run_by: latest.request },
        },
      ];
    });
  },
};
