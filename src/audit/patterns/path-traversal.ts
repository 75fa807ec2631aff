import type { Pattern } from './pattern.ts';

/** One wrong path is a mistake; so many different ones are a search. */
const DIFFERENT = 3;
/** One command that leads out several times is one mistake about where it runs. */
const COMMANDS = 2;

/** An agent tries paths, one after the other, that lead out of the workspace. */
export const pathTraversal: Pattern = {
  code: 'path_traversal_series',
  summary: `${DIFFERENT} different paths with \`..\` that lead out of the workspace, in ${COMMANDS} refused commands or more`,
  find: (latest, earlier) => {
    if (!latest.escapes.some(climbs)) return [];
    const tries = [...earlier, latest].filter(({ escapes }) => escapes.some(climbs));
    const paths = new Set(tries.flatMap(({ escapes }) => escapes.filter(climbs)));
    if (tries.length < COMMANDS || paths.size < DIFFERENT) return [];
    return [
      {
        about: 'paths',
        message: `${paths.size} different paths were tried that lead out of the workspace`,
        details: { paths: [...paths].slice(-10).join(' '), latest: latest.request },
      },
    ];
  },
};

/** `..` as a component, also with the dots or the slash encoded. */
function climbs(word: string): boolean {
  return /(?:^|[/=:'"]|%2f)(?:\.|%2e){2}(?:$|[/'"]|%2f)/i.test(word);
}
