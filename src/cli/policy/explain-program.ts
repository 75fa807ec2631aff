import {
  type Behaviour,
  findForApplication,
  findProgram,
  type Grammar,
  grammarOf,
  optionTable,
  PROGRAM_ROWS,
  type Program,
  runsSomething,
} from '../../judge/index.ts';

const OPERANDS: Readonly<Record<NonNullable<Behaviour['operands']>, string>> = {
  none: 'no operand is a path',
  reads: 'operands are read',
  writes: 'operands are written',
  removes: 'operands are deleted',
  'reads-then-writes': 'the last operand is written, those before it are read',
  'moves-then-writes': 'the last operand is written, those before it are moved away',
  'script-then-reads': 'the first operand is a pattern or a script, the others are read',
  revisions: 'operands are revisions; those behind -- are read',
  guess: 'operands that look like paths are read',
};

const EFFECTS = {
  harmless: 'of no concern',
  produces: 'names what it makes anyway',
  reads: 'reads a file',
  writes: 'writes',
  removes: 'deletes',
  loads: 'runs code from a file',
  executes: 'runs a program',
  network: 'uses the network',
} as const;

const DANGERS: Readonly<Record<NonNullable<Program['danger']>, string>> = {
  privilege: 'acts as another user',
  device: 'writes to devices',
  system: 'changes the machine',
  container: 'starts or enters containers',
  power: 'turns the machine off',
  kernel: 'changes the kernel',
};

const REACHES = { local: 'no network', unknown: 'network unknown', network: 'uses the network' } as const;

/**
 * What is written in the row of a program, or of a verb of it (`['stash', 'drop']`), for a person, as lines; `undefined`:
 * it has none. Options of no concern are counted, but for those of the level that was asked about.
 */
export function explainProgram(name: string, verbs: readonly string[] = []): readonly string[] | undefined {
  const program = findProgram(name);
  let level: Behaviour | undefined = program;
  for (const verb of verbs) level = level?.verbs?.[verb];
  if (program === undefined || level === undefined) return undefined;
  const { risk = program.risk, reach = program.reach } = level;
  return [
    `${[name, ...verbs].join(' ')}: ${[`risk ${risk}`, REACHES[reach], ...remarks(level)].join(', ')}`,
    ...(program.danger === undefined
      ? []
      : [`  refused unless the policy permits it by name: it ${DANGERS[program.danger]}`]),
    ...(verbs.length === 0 && findForApplication(name) !== undefined
      ? ['  runs under the application backend, too, where its words show that it stays in the workspace']
      : []),
    ...details(verbs.length === 0 ? { operands: 'guess', ...level } : level, '  ', 'all'),
  ];
}

/** What a level says besides risk and reach, in words. */
function remarks(level: Behaviour): readonly string[] {
  return [
    ...(runsSomething(level) ? ['runs commands that stand in its words'] : []),
    ...(level.code === undefined ? [] : ['runs code that stands in its words']),
    ...(level.needs === 'network' ? ['can do nothing without the network'] : []),
    ...(level.needs === 'system' ? ['can do nothing without rights over the machine'] : []),
    ...(level.signals === true ? ['signals processes'] : []),
    ...(level.outward === undefined
      ? []
      : [typeof level.outward === 'string' ? level.outward : 'can change something elsewhere']),
    ...(level.loses === undefined ? [] : ['can lose what version control would not bring back']),
    ...(level.movesCommits === true ? ['refused by the git guard'] : []),
  ];
}

type Harmless = 'all' | 'counted';

function details(level: Behaviour, indent: string, harmless: Harmless): readonly string[] {
  const operands = level.paths === undefined ? level.operands : undefined;
  // Verbs that behave alike are one value of the table.
  const alike = new Map<Behaviour, string[]>();
  for (const [verb, inner] of Object.entries(level.verbs ?? {}))
    alike.set(inner, [...(alike.get(inner) ?? []), verb]);
  return [
    ...(level.paths === undefined ? [] : [`${indent}which words are paths is told from all of them`]),
    ...(operands === undefined ? [] : [`${indent}${OPERANDS[operands]}`]),
    ...(level.inspect === undefined ? [] : [`${indent}its words are looked at besides its options`]),
    ...optionLines(grammarOf(level), indent, harmless),
    ...[...alike].flatMap(([inner, names]) => [
      `${indent}${[names.join(' '), verbRemarks(inner).join(', ')].filter((part) => part !== '').join(': ')}`,
      ...details(inner, `${indent}  `, 'counted'),
    ]),
  ];
}

function verbRemarks(verb: Behaviour): readonly string[] {
  return [
    ...(verb.risk === undefined ? [] : [`risk ${verb.risk}`]),
    ...(verb.reach === undefined ? [] : [REACHES[verb.reach]]),
    ...remarks(verb),
  ];
}

function optionLines(grammar: Grammar | undefined, indent: string, harmless: Harmless): readonly string[] {
  if (grammar === undefined) return [];
  const rules = [...optionTable(grammar).rules.values()];
  const lines = Object.entries(EFFECTS).flatMap(([effect, text]) => {
    const names = rules
      .filter((rule) => rule.effect === effect)
      .map(({ name, value }) => {
        const dashed = name.length === 1 || grammar.style === 'single-dash' ? `-${name}` : `--${name}`;
        return value === 'required' ? `${dashed} …` : dashed;
      });
    const counted = effect === 'harmless' && harmless === 'counted';
    return names.length === 0
      ? []
      : [`${indent}${text}: ${counted ? `${names.length} options` : names.join(', ')}`];
  });
  return [
    ...lines,
    ...(grammar.open === true ? [`${indent}other options are not known`] : []),
    ...(grammar.source === undefined ? [] : [`${indent}options are those of ${grammar.source}`]),
  ];
}

/** What the table says about a program, or a verb of it; without a name, the names of all that it has. */
export function explainProgramText(name: string | undefined, verbs: readonly string[]): string {
  if (name === undefined) {
    const names = PROGRAM_ROWS.flatMap((row) => row.names.split(' ')).sort();
    return names.map((known) => `${known}\n`).join('');
  }
  const base = name.slice(name.lastIndexOf('/') + 1);
  const lines = explainProgram(base, verbs) ?? [
    `${[base, ...verbs].join(' ')}: risk medium, network unknown`,
    '  not in the table: nothing is known of its options, and operands that look like paths are read',
  ];
  return lines.map((line) => `${line}\n`).join('');
}
