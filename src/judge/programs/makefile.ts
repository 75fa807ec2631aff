import type { Recipes, Use } from './behaviour.ts';

/** Limits: lines of a makefile that are read, and nested variables that are followed. */
const MOST_LINES = 200;
const DEEPEST = 10;
/** Stands for a value that only make knows. The shell parser gets it as a variable. */
const UNKNOWN = '\0';
// biome-ignore lint/suspicious/noTemplateCurlyInString: it is the shell that expands it
const AS_VARIABLE = '${_}';

/** Options with which make runs no recipe. */
const RUNS_NOTHING = /^(?:n|just-print|dry-run|recon|q|question|t|touch|v|version|h|help)$/;
/** Variables that make itself sets. CURDIR is the directory in which recipes run. */
const BUILT_IN: Readonly<Record<string, string>> = { RM: 'rm -f', MAKE: 'make', CURDIR: '.' };

/** The recipes that a make command surely runs: those of its goals and of their prerequisites. */
export function recipesOfMake(use: Use): Recipes | undefined {
  if (use.options.some(({ name }) => RUNS_NOTHING.test(name))) return undefined;
  const valuesOf = (names: RegExp) =>
    use.options.flatMap(({ name, value }) => (names.test(name) && value !== undefined ? [value] : []));
  const [file, ...more] = valuesOf(/^(?:f|file|makefile)$/);
  // One makefile can override rules of another.
  if (more.length > 0 || file?.complete === false) return undefined;
  const words = use.operands.flatMap(({ text, complete }) => (complete ? [text] : []));
  const settings = words.flatMap((text) => settingIn(text) ?? []);
  const environment = use.command.assignments.flatMap(({ name, value }) =>
    value.value === undefined ? [] : [{ name, value: value.value }],
  );
  return {
    directories: valuesOf(/^(?:C|directory)$/),
    files: file === undefined ? ['GNUmakefile', 'makefile', 'Makefile'] : [file.text],
    linesIn: (text, exists) =>
      linesOf(readMakefile(text), {
        goals: words.filter((one) => settingIn(one) === undefined),
        given: new Map(settings.map(({ name, value }) => [name, value])),
        environment: new Map(environment.map(({ name, value }) => [name, value])),
        exists,
      }),
  };
}

interface Setting {
  readonly name: string;
  readonly value: string;
}

function settingIn(word: string): Setting | undefined {
  const [, name, value = ''] = /^([\w.-]+)(?:::?:?)?=(.*)$/s.exec(word) ?? [];
  return name === undefined ? undefined : { name, value };
}

interface Rule {
  readonly prerequisites: string[];
  recipe: string[];
}

interface Makefile {
  /** Unexpanded values by name; `undefined`: another value is possible. */
  readonly variables: Map<string, string | undefined>;
  /** Variables that the environment overrides. */
  readonly defaults: Set<string>;
  /** By the words before the colon, in their order. */
  readonly rules: { readonly targets: string; readonly rule: Rule }[];
}

const DIRECTIVE = /^\s*(?:-?include|sinclude|vpath|unexport|undefine|load)\b/;
const ASSIGNMENT = /^\s*(?:(?:export|override|private)\s+)*([\w.-]+)\s*(\?|\+|!|:{1,3})?=\s*(.*)$/s;

/** Reads rules and variables, without those in a conditional, which may not apply. */
function readMakefile(text: string): Makefile {
  const makefile: Makefile = { variables: new Map(), defaults: new Set(), rules: [] };
  let rule: Rule | undefined;
  let [conditionals, isDefinition] = [0, false];
  for (const line of logicalLines(text)) {
    if (isDefinition) {
      isDefinition = !/^\s*endef\b/.test(line);
      continue;
    }
    if (line.startsWith('\t') && rule !== undefined) {
      if (conditionals === 0) rule.recipe.push(line.slice(1));
      continue;
    }
    const plain = line.replace(/(?<!\\)#.*$/s, '').replaceAll(/\\\n\s*/g, ' ');
    const [, defined] = /^\s*(?:override\s+)?define\s+([\w.-]+)/.exec(plain) ?? [];
    if (defined !== undefined) {
      isDefinition = true;
      makefile.variables.set(defined, undefined);
    } else if (/^\s*if(?:n?eq|n?def)\b/.test(plain)) conditionals += 1;
    else if (/^\s*endif\b/.test(plain)) conditionals -= 1;
    else if (DIRECTIVE.test(plain)) {
      // Another file may set them.
      for (const name of makefile.variables.keys()) makefile.variables.set(name, undefined);
    } else if (ASSIGNMENT.test(plain)) assign(plain, makefile, conditionals > 0);
    else if (/^\S[^=]*?:/.test(plain)) rule = addRule(plain, makefile, conditionals > 0);
  }
  return makefile;
}

/** Lines with those that a backslash continues; behind it a recipe goes on without the tab. */
function logicalLines(text: string): readonly string[] {
  const lines: string[] = [];
  let isContinued = false;
  for (const line of text.split(/\r?\n/)) {
    const last = lines.length - 1;
    if (isContinued) lines[last] = `${lines[last]}\n${line.replace(/^\t/, '')}`;
    else lines.push(line);
    isContinued = /(?<!\\)(?:\\\\)*\\$/.test(line);
  }
  return lines;
}

function assign(line: string, { variables, defaults }: Makefile, isPossible: boolean): void {
  const [, name = '', operator, value = ''] = ASSIGNMENT.exec(line) ?? [];
  const before = variables.get(name);
  if (isPossible || operator === '!') variables.set(name, undefined);
  else if (operator === '+')
    variables.set(name, before === undefined ? undefined : `${before} ${value.trim()}`);
  else if (operator !== '?') variables.set(name, value.trim());
  else if (!variables.has(name)) {
    variables.set(name, value.trim());
    defaults.add(name);
  }
}

function addRule(line: string, { variables, rules }: Makefile, isPossible: boolean): Rule | undefined {
  const [, targets = '', rest = ''] = /^([^:]*?)\s*::?(?!=)(.*)$/s.exec(line) ?? [];
  const [, special] = ASSIGNMENT.exec(rest) ?? [];
  if (special !== undefined) {
    // For this target and what it is made from.
    variables.set(special, undefined);
    return undefined;
  }
  const [prerequisites = '', ...recipe] = rest.split(';');
  const rule = {
    // With a pattern of targets it is another list.
    prerequisites: prerequisites.includes(':') ? [] : prerequisites.split(/[\s|]+/).filter(Boolean),
    recipe: recipe.length === 0 ? [] : [recipe.join(';').trim()],
  };
  if (!isPossible) rules.push({ targets, rule });
  return rule;
}

interface Asked {
  readonly goals: readonly string[];
  /** Variables set on the command line. */
  readonly given: ReadonlyMap<string, string>;
  readonly environment: ReadonlyMap<string, string>;
  readonly exists: (name: string) => boolean;
}

function linesOf({ variables, defaults, rules }: Makefile, asked: Asked): readonly string[] {
  const { given, environment, exists } = asked;
  const settingOf = (name: string): string | undefined => {
    const fromOutside = given.get(name) ?? (defaults.has(name) ? environment.get(name) : undefined);
    return fromOutside ?? (variables.has(name) ? variables.get(name) : BUILT_IN[name]);
  };
  const expand = (text: string, target: string, depth = 0): string =>
    text.replace(/\$(?:\$|\(([^()]*(?:\([^()]*\)[^()]*)*)\)|\{([^{}]*)\}|(.))/gs, (all, one, two, letter) => {
      if (all === '$$') return '$';
      const name = one ?? two ?? letter;
      if (name === '@') return target;
      const value = depth < DEEPEST ? settingOf(name) : undefined;
      return value === undefined ? UNKNOWN : expand(value, target, depth + 1);
    });
  const namesIn = (text: string) =>
    expand(text, UNKNOWN)
      .split(/\s+/)
      .filter((name) => name !== '' && !/[\0%]/.test(name));
  const has = (name: string) => rules.some(({ targets }) => targets.trim() === name);
  // What runs recipes, and how, is another matter then.
  if (variables.has('.RECIPEPREFIX')) return [];
  if (variables.has('SHELL') && !/(?:^|\/)(?:ba|da)?sh$/.test(variables.get('SHELL') ?? '')) return [];

  const byName = new Map<string, Rule[]>();
  const phony = new Set<string>();
  for (const { targets, rule } of rules) {
    if (targets.trim() === '.PHONY')
      for (const name of namesIn(rule.prerequisites.join(' '))) phony.add(name);
    for (const name of namesIn(targets)) byName.set(name, [...(byName.get(name) ?? []), rule]);
  }
  const [first] = [...byName.keys()].filter((name) => !name.startsWith('.') || name.includes('/'));
  const usual = namesIn(settingOf('.DEFAULT_GOAL') ?? first ?? '');
  const lines: string[] = [];
  const seen = new Set<string>();
  const visit = (name: string): void => {
    if (seen.has(name) || lines.length > MOST_LINES) return;
    seen.add(name);
    const own = byName.get(name) ?? [];
    for (const { prerequisites } of own) for (const one of namesIn(prerequisites.join(' '))) visit(one);
    // An existing file may be up to date, so its recipe need not run.
    if (!phony.has(name) && exists(name)) return;
    for (const { recipe } of own)
      for (const line of has('.ONESHELL') ? [recipe.join('\n')] : recipe) {
        const text = expand(line, name).replace(/^[\s@+-]+/, '');
        lines.push(text.replaceAll(UNKNOWN, AS_VARIABLE));
      }
  };
  for (const goal of asked.goals.length > 0 ? asked.goals : usual) visit(goal);
  return lines;
}
