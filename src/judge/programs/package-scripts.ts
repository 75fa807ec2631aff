import type { Recipes, Use } from './behaviour.ts';

/** Words that npm and its kin have for what runs one script. */
const NAMED: Readonly<Record<string, string>> = {
  t: 'test',
  tst: 'test',
  test: 'test',
  start: 'start',
  stop: 'stop',
};
const RUN = new Set(['run', 'run-script', 'rum', 'urn']);
const INSTALL = new Set(['install', 'i', 'in', 'ci', 'clean-install', 'install-clean', 'ic']);
/** What an installation runs of the package itself. */
const OF_INSTALL = ['preinstall', 'install', 'postinstall', 'preprepare', 'prepare', 'postprepare'];
/** With these, scripts of other packages run, or none. */
const ELSEWHERE = /^(?:w|workspaces?|ws|r|recursive|F|filter(?:-prod)?|g|global|ignore-scripts)$/;

/** The scripts of package.json that a command of npm and its kin runs. */
export function scriptsOfManager(use: Use): Recipes | undefined {
  if (use.options.some(({ name }) => ELSEWHERE.test(name))) return undefined;
  const [name, words] = scriptOf(use);
  if (name === undefined) return undefined;
  const names = Array.isArray(name) ? name : [`pre${name}`, name, `post${name}`];
  return {
    directories: use.options.flatMap((option) =>
      /^(?:C|prefix|dir|cwd)$/.test(option.name) && option.value !== undefined ? [option.value] : [],
    ),
    files: ['package.json'],
    isUpwards: true,
    linesIn: (text) => {
      const scripts = scriptsIn(text);
      return names.flatMap((one) => {
        const line = Object.hasOwn(scripts, one) ? scripts[one] : undefined;
        return typeof line === 'string' ? [one === name ? [line, ...words].join(' ') : line] : [];
      });
    },
  };
}

/** The name of a script, or those that run one after the other, with what it is given. */
function scriptOf({
  program,
  verbs,
  operands,
}: Use): readonly [string | readonly string[] | undefined, string[]] {
  const [verb] = verbs;
  const words = operands.map(({ word }) => word.source);
  const [first, ...others] = operands;
  const isRun = verb !== undefined && RUN.has(verb);
  // `yarn NAME`, `pnpm NAME`.
  if (isRun || (verb === undefined && program.name !== 'npm'))
    return [first?.complete === true ? first.text : undefined, others.map(({ word }) => word.source)];
  if (verb === undefined) return [undefined, []];
  if (INSTALL.has(verb)) return [operands.length === 0 ? OF_INSTALL : undefined, []];
  const isScript = /^(?:yarn|pnpm)$/.test(program.name) && /^(?:build|lint)$/.test(verb);
  // `bun test` is a test runner of its own.
  if (program.name === 'bun') return [undefined, []];
  return [isScript ? verb : NAMED[verb], words];
}

function scriptsIn(text: string): Readonly<Record<string, unknown>> {
  try {
    const { scripts } = JSON.parse(text) as { readonly scripts?: unknown };
    return typeof scripts === 'object' && scripts !== null ? { ...scripts } : {};
  } catch {
    // Nothing runs then.
    return {};
  }
}
