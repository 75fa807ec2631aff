import { posix } from 'node:path';
import { isBeneath } from '../../base/absolute-path.ts';
import type { ResolvedPath } from '../../confine/plan/path-lookup.ts';
import type { Reason, Redirect, SimpleCommand, Steps, Word } from '../../model/index.ts';
import type { Argument, Use } from '../programs/behaviour.ts';
import { grammarOf } from '../programs/grammars.ts';
import { argumentOf } from '../programs/options.ts';
import { pathUses, writesFile } from '../programs/path-uses.ts';
import {
  type ApplicationProgram,
  describeAs,
  findForApplication,
  programName,
} from '../programs/program-table.ts';
import { findingsOf } from '../programs/risk.ts';
import { isPlainVariable } from '../programs/variables.ts';
import { type Check, type CheckContext, reasonFor } from './check.ts';
import { directoriesOf, isForeignTo, locationsOf, pathsOf } from './locations.ts';

const reason = reasonFor('application');
const deny = (code: string, message: string, ...words: readonly string[]): Reason =>
  reason('deny', code, message, ...words);

const ELSEWHERE = 'it needs a host with Landlock (Linux 5.13), user namespaces or Firejail';

/**
 * Where nothing holds a command while it runs, its words have to say all that it does. No level of autonomy and no
 * approval gets around it: it is what stands in for the kernel.
 */
export const applicationCheck: Check = {
  name: 'application',
  summary:
    'with the backend application, only programs, options and paths that are known to be harmless are let through',
  judge(context) {
    if (context.rules.onlyChecks !== true) return [];
    const { parsed, steps, rules } = context;
    if (!parsed.understood)
      return [
        deny('not_understood', `${parsed.problem.message} Nothing else would keep it in; ${ELSEWHERE}.`),
      ];
    if (steps?.ok === false) return [deny('needs_shell', steps.problem.message)];
    if (parsed.line.source !== undefined && steps === undefined)
      return [deny('needs_shell', `A shell string needs a shell; ${ELSEWHERE}.`)];
    if (steps !== undefined && !areSame(steps.steps, parsed.line.commands))
      return [deny('needs_shell', `What would be started is not what was read; ${ELSEWHERE}.`)];
    if (!isBeneath(context.cwd, rules.workspace))
      return [deny('outside', `the working directory ${context.cwd} is not in the workspace`)];
    return [
      ...Object.entries(context.variables ?? {}).flatMap(judgeVariable),
      ...parsed.line.commands.flatMap((command) => judgeCommand(command, context)),
      ...judgeMoves(context),
      ...judgeOrder(context),
    ];
  },
};

/** What is judged is word for word what is started. */
function areSame({ pipelines }: Steps, commands: readonly SimpleCommand[]): boolean {
  const started = pipelines.flatMap(({ stages }) => stages.map(({ words }) => words));
  const judged = commands.map(({ words }) => words.map(({ value }) => value));
  return JSON.stringify(started) === JSON.stringify(judged);
}

function judgeVariable([name, value]: readonly [string, string | undefined]): readonly Reason[] {
  if (value === undefined || isPlainVariable(name, value)) return [];
  return [
    deny(
      'variable',
      `the variable ${name} may change what a program reads or loads, and nothing else would contain that; remove it, or: ${ELSEWHERE}`,
      name,
    ),
  ];
}

function judgeCommand(command: SimpleCommand, context: CheckContext): readonly Reason[] {
  const [program] = command.words;
  if (command.runBy !== undefined)
    return [
      deny(
        'runs_another',
        `a program that runs ${program?.source ?? 'another'} cannot be held; ${ELSEWHERE}`,
      ),
    ];
  const reasons = command.redirects.flatMap((redirect) => judgeRedirect(redirect, command, context));
  if (program === undefined) return reasons;
  if (context.steps !== undefined && program.value === 'cd')
    return [
      ...reasons,
      ...judgePath(argumentOf(command.words[1] ?? program), command, context, 'without-links'),
    ];
  const known = programOf(command, context);
  if (known === undefined) {
    const what = 'is not a program that can be judged by its words alone, as cat, grep, sed and sort are';
    return [...reasons, deny('no_validator', `${program.source} ${what}; ${ELSEWHERE}`, program.source)];
  }
  return [...reasons, ...judgeUse(command, known, context)];
}

export function programOf(command: SimpleCommand, context: CheckContext): ApplicationProgram | undefined {
  const name = programName(command, isForeignTo(context));
  return name === undefined ? undefined : findForApplication(name);
}

function judgeUse(
  command: SimpleCommand,
  program: ApplicationProgram,
  context: CheckContext,
): readonly Reason[] {
  const { name, application } = program;
  const grammar = grammarOf(program);
  const dynamic = command.words.filter(({ value }) => value === undefined);
  if (dynamic.length > 0)
    return dynamic.map(({ source }) => deny('dynamic', `${source} is not known yet`, source));
  // Abbreviated options may mean something else to another version.
  const exact = grammar === undefined ? {} : { grammar: { ...grammar, exact: true } };
  const use = describeAs(command, { ...program, ...exact });
  const reasons: Reason[] = findingsOf(use)
    .filter((found) => !(found.effect === 'writes' && WRITES_A_PATH.has(found.code)))
    .map((found) => deny(found.code, `${name} ${found.message}; ${ELSEWHERE}`, ...found.words));
  if (application.words === undefined) {
    const without = application.without?.split(' ') ?? [];
    const refused = use.options.filter((option) => without.includes(option.name)).map(({ word }) => word);
    for (const { source } of [...use.unknown, ...use.openEnded, ...refused])
      reasons.push(deny('unknown_option', `${name} takes no option ${source} here`, source));
  }
  const objection = application.objection?.(use, (argument) => isDirectory(argument, command, context));
  if (objection !== undefined) reasons.push(deny('objection', `${name} ${objection}; ${ELSEWHERE}`, name));
  else reasons.push(...judgeObeyed(command, program, context));
  return application.words === 'any' ? reasons : [...reasons, ...judgePaths(command, use, context)];
}

/** What it reads in the workspace without being told to. */
function judgeObeyed(
  command: SimpleCommand,
  program: ApplicationProgram,
  context: CheckContext,
): readonly Reason[] {
  const { name, application } = program;
  const files = application.obeys?.(describeAs(command, program));
  if (files === undefined) return [];
  const problems = directoriesOf(command, context).map((directory) =>
    directory === undefined || context.obeyed === undefined
      ? 'would run in a directory that cannot be told'
      : context.obeyed(files, directory),
  );
  return problems.flatMap((problem) =>
    typeof problem === 'string' ? [deny('obeys', `${name} ${problem}; ${ELSEWHERE}`, name)] : [],
  );
}

/**
 * Names that patterns matched, and what programs obey, are looked at before the line runs: nothing in it may change them. A
 * pattern is replaced when its command starts, so that what comes behind it does not matter.
 */
function judgeOrder(context: CheckContext): readonly Reason[] {
  const { parsed, steps } = context;
  if (!parsed.understood) return [];
  const { commands } = parsed.line;
  const patterns = steps?.ok === true ? steps.steps.patterns : undefined;
  return commands.flatMap((command, index) => {
    const program = programOf(command, context);
    if (program === undefined) return [];
    const isMatched = command.words.some(({ span }) => patterns?.has(span.start) === true);
    const obeys = program.application.obeys?.(describeAs(command, program)) !== undefined;
    const others = obeys ? commands.filter((other) => other !== command) : commands.slice(0, index);
    const changing = others.find((other) => (isMatched || obeys) && changesFiles(other, context, obeys));
    return changing === undefined
      ? []
      : [
          deny(
            'order',
            `${changing.words[0]?.source ?? 'a redirect'} may change what ${command.words[0]?.source} finds, which is looked at before the line runs; run it on its own`,
            command.words[0]?.source ?? '',
          ),
        ];
  });
}

/** Whether a command makes, changes or removes files. `moved`: or only entries of directories, and what git keeps. */
function changesFiles(command: SimpleCommand, context: CheckContext, moved: boolean): boolean {
  const program = programOf(command, context);
  if (program?.application.changesEntries === true) return true;
  const use = program === undefined ? undefined : describeAs(command, program);
  const written = pathUses(command, use).filter(({ effect }) => effect !== 'reads');
  if (!moved) return written.length > 0;
  const directories = directoriesOf(command, context);
  return written.some(({ argument }) => {
    const paths = pathsOf(argument, directories, context);
    return (
      paths.length === 0 || paths.some(({ canonical }) => /(?:^|\/)\.(?:git|ignore|rgignore)/.test(canonical))
    );
  });
}

/** Findings about files that are judged as paths. */
const WRITES_A_PATH: ReadonlySet<string> = new Set(['writes_by_option', 'writes_output']);

function judgePaths(command: SimpleCommand, use: Use, context: CheckContext): readonly Reason[] {
  const isProgram = ({ word }: Argument) => word === command.words[0];
  const uses = pathUses({ ...command, redirects: [] }, use);
  // `cp sub/.envrc .` writes a name that only the row for this backend knows of.
  const changed = uses
    .filter(({ effect }) => effect !== 'reads')
    .flatMap(({ argument }) => judgeProtected(argument, command, context));
  const reasons = uses
    .map(({ argument }) => argument)
    .filter((argument) => !isProgram(argument))
    .concat(lateValues(command, use))
    .flatMap((argument) => judgePath(argument, command, context, 'through-links'));
  return [...changed, ...reasons];
}

function judgeProtected(
  argument: Argument,
  command: SimpleCommand,
  context: CheckContext,
): readonly Reason[] {
  const isProtected = ({ canonical }: ResolvedPath) =>
    context.rules.protected.some((root) => isBeneath(canonical, root));
  return pathsOf(argument, directoriesOf(command, context), context).some(isProtected)
    ? [deny('protected', `${argument.word.source} is protected`, argument.word.source)]
    : [];
}

/** Values behind the first operand: with POSIXLY_CORRECT, and to other versions of a program, they are operands. */
function lateValues({ words }: SimpleCommand, { operands, options }: Use): readonly Argument[] {
  const [first] = operands;
  const from = first === undefined ? words.length : words.indexOf(first.word);
  return options.flatMap(({ value, word }) =>
    value !== undefined && value.word !== word && words.indexOf(value.word) > from ? [value] : [],
  );
}

function judgeRedirect(redirect: Redirect, command: SimpleCommand, context: CheckContext): readonly Reason[] {
  const { operator, target } = redirect;
  const isFile = operator === '<' || operator === '<>' || writesFile(redirect) || isDevice(target);
  return isFile && operator !== '<<<' && operator !== '<<' && operator !== '<<-'
    ? judgePath(argumentOf(target), command, context, 'without-links')
    : [];
}

function isDevice({ value }: Word): boolean {
  return value?.startsWith('/') === true;
}

/** Every place that a path may lead to is in the workspace; `without-links`: and no link is on the way there. */
function judgePath(
  argument: Argument,
  command: SimpleCommand,
  context: CheckContext,
  links: 'through-links' | 'without-links',
): readonly Reason[] {
  const { source } = argument.word;
  if (argument.complete && argument.text === '/dev/null') return [];
  const cwds = directoriesOf(command, context);
  const locations = cwds.includes(undefined) ? 'foreign-home' : locationsOf(argument, cwds, context);
  if (locations === 'foreign-home' || !argument.complete)
    return [deny('unknown_place', `it cannot be told where ${source} leads`, source)];
  const without = links === 'without-links' || changesEntries(context);
  for (const { text, resolved, partial } of locations) {
    if (resolved === undefined || partial || resolved.links.length >= MAX_LINKS)
      return [deny('unknown_place', `it cannot be told where ${text} leads`, source)];
    const places = cwds.flatMap((cwd) => placesOf(text, cwd ?? '/', context));
    if (resolved.links.some(({ content }) => CLIMBS.test(content)) || places.includes(undefined))
      return [deny('link', `${text} goes up (..) behind a symbolic link; name what it leads to`, source)];
    const met = [resolved, ...places].flatMap((place) => (place === undefined ? [] : [place]));
    if (met.some(({ canonical }) => !isBeneath(canonical, context.rules.workspace)))
      return [
        deny(
          'outside',
          `${text} leads out of the workspace, where nothing would stop it; ${ELSEWHERE}`,
          source,
        ),
      ];
    if (without && met.some((place) => place.links.length > 0))
      return [deny('link', `${text} is a symbolic link or lies behind one; name what it leads to`, source)];
  }
  return [];
}

/** As many as the kernel follows: fewer of them may be left when the program runs. */
const MAX_LINKS = 40;

/** The text of a link that goes up again behind a name, which may be another link. */
const CLIMBS = /[^/.][^/]*\/+(?:\.\/+)*\.\.(?:\/|$)|\.{3,}\/+(?:\.\/+)*\.\.(?:\/|$)/;

/**
 * Where a path with `..` leads if what is missing on the way is made before: what a line makes are directories, no links.
 * `undefined`: there is a link before `..`, and a directory may have taken its place by then.
 */
function placesOf(text: string, cwd: string, { paths }: CheckContext): readonly (ResolvedPath | undefined)[] {
  const whole = text.startsWith('/') ? text : `${cwd}/${text}`;
  const names = whole.split('/');
  if (!names.includes('..')) return [];
  const climbs = names.some((name, index) => {
    // Made plain so far: no link before any `..` up to here.
    const before = posix.normalize(`/${names.slice(0, index).join('/')}`);
    return name === '..' && paths.resolve(before).links.length > 0;
  });
  return [climbs ? undefined : paths.resolve(posix.normalize(whole))];
}

/** True for a line of several commands one of which may put something else in the place of a link. */
function changesEntries(context: CheckContext): boolean {
  const { parsed } = context;
  if (!parsed.understood || parsed.line.commands.length < 2) return false;
  return parsed.line.commands.some(
    (command) => programOf(command, context)?.application.changesEntries === true,
  );
}

function isDirectory(argument: Argument, command: SimpleCommand, context: CheckContext): boolean {
  const locations = locationsOf(argument, directoriesOf(command, context), context);
  return locations === 'foreign-home' || locations.some(({ resolved }) => resolved?.kind === 'directory');
}

/** What gives symbolic links new names comes last: paths behind it were looked up before. */
function judgeMoves(context: CheckContext): readonly Reason[] {
  const { parsed, steps } = context;
  if (!parsed.understood || parsed.line.commands.length < 2) return [];
  const { commands } = parsed.line;
  const moves = (command: SimpleCommand) => {
    const program = programOf(command, context);
    return program?.application.movesLinks?.(describeAs(command, program)) === true;
  };
  const piped = steps?.ok === true && (steps.steps.pipelines.at(-1)?.stages.length ?? 0) > 1;
  return commands
    .filter((command, index) => (index < commands.length - 1 || piped) && moves(command))
    .map(({ words }) =>
      deny(
        'moves_links',
        `${words[0]?.source} may move symbolic links, so that what runs with or after it could not be checked before; run it last or on its own`,
        words[0]?.source ?? '',
      ),
    );
}
