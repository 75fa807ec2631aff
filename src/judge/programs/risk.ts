import { assertNever } from '../../base/assert-never.ts';
import { REACHES, RISKS, strongest } from '../../base/words.ts';
import {
  type CommandLine,
  leadingText,
  type Parsed,
  type Reach,
  type Redirect,
  type Risk,
  type SimpleCommand,
  type Word,
} from '../../model/index.ts';
import { type Effect, type Finding, finding, inherited, type OptionUse, type Use } from './behaviour.ts';
import { isSink } from './options.ts';
import { writesFile } from './path-uses.ts';
import { describeCommand, type IsForeign } from './program-table.ts';
import { variableRuleOfList } from './variables.ts';

/** What an option of an effect makes a program do; those of no concern are missing. */
const BY_OPTION: Readonly<Partial<Record<Effect, readonly [code: string, does: string]>>> = {
  writes: ['writes_by_option', 'writes through'],
  removes: ['removes_by_option', 'deletes through'],
  loads: ['loads_by_option', 'runs code from a file through'],
  executes: ['executes_by_option', 'can run a program through'],
  network: ['network_by_option', 'uses the network through'],
};

function findingOf({ name, effect, value, word }: OptionUse): readonly Finding[] {
  const found = BY_OPTION[effect];
  // /dev/stdout and its like are where output goes anyway.
  const isNothing = effect === 'writes' && value !== undefined && isSink(value.text);
  if (found === undefined || effect === 'harmless' || effect === 'produces' || isNothing) return [];
  const [code, does] = found;
  return [finding(effect, code, `${does} ${name.length === 1 ? '-' : '--'}${name}`, word.source)];
}

/** What the options and scripts of a command make its program do besides what its name says. */
export function findingsOf(use: Use): readonly Finding[] {
  const findings = use.options.flatMap(findingOf);
  if (use.program.inspect !== undefined) findings.push(...use.program.inspect(use));
  const inspect = inherited(use, 'inspect');
  if (inspect !== undefined && inspect !== use.program.inspect) findings.push(...inspect(use));
  return findings;
}

/** The highest risk of what a line could run; high if it is not understood. */
export function riskOfLine(parsed: Parsed, isForeign?: IsForeign): Risk {
  if (!parsed.understood) return 'high';
  return parsed.line.commands.reduce<Risk>(
    (risk, command) => (risk === 'high' ? risk : strongest(RISKS, risk, riskOf(command, isForeign))),
    'low',
  );
}

/** The risk of one simple command, without what it runs: that is listed on its own. */
export function riskOf(command: SimpleCommand, isForeign?: IsForeign): Risk {
  const use = describeCommand(command, isForeign);
  const own = use === undefined ? 'low' : riskOfUse(use);
  return command.redirects.some(writesFile) ? strongest(RISKS, own, 'medium') : own;
}

/** As `riskOf`, without redirects. */
function riskOfUse(use: Use): Risk {
  if (asksForHelp(use)) return 'low';
  const own = inherited(use, 'onlyReads')?.(use) === true ? 'low' : use.risk;
  return findingsOf(use).reduce<Risk>(
    (risk, { effect }) => strongest(RISKS, risk, riskOfEffect(effect)),
    own,
  );
}

function riskOfEffect(effect: Finding['effect']): Risk {
  switch (effect) {
    case 'reads':
    case 'invalid':
      return 'low';
    case 'writes':
    case 'loads':
      return 'medium';
    case 'removes':
    case 'executes':
    case 'network':
      return 'high';
    default:
      return assertNever(effect);
  }
}

const HELP: ReadonlySet<string> = new Set(['--version', '--help', '-version', '--usage']);
/** True if a listed program is only asked for its version or for help. */
export function asksForHelp(use: Use): boolean {
  const { words } = use.command;
  const only = words[words.length - 1]?.value;
  if (only === undefined || use.program.unlisted === true) return false;
  if (words.length === 2) return HELP.has(only) || use.program.versionOption === only;
  return use.verbs.length === words.length - 2 && (only === '--help' || only === '--version');
}

/** Where the settings that programs obey are out of the reach of commands (`Behaviour.runsNothing`). */
interface ReachOptions {
  readonly settingsHeld?: boolean;
  /**
   * What a program is told by its words not to do is not in its reach (`Behaviour.staysLocal`): the variables that it gets are
   * those of the user, unless the line itself says others.
   */
  readonly wordsDecide?: boolean;
}

/** The furthest reach of what a line could run; unknown if it is not understood. */
export function reachOfLine(parsed: Parsed, isForeign?: IsForeign, options?: ReachOptions): Reach {
  if (!parsed.understood) return 'unknown';
  const { commands } = parsed.line;
  const wordsDecide = options?.wordsDecide === true && !setsSomething(parsed.line);
  return commands.reduce<Reach>(
    (reach, command) =>
      reach === 'network'
        ? reach
        : strongest(REACHES, reach, reachOf(command, isForeign, { ...options, wordsDecide })),
    'local',
  );
}

/** Files in which programs look for proxies, options and servers. */
const SETTINGS_NAME = /(?:curlrc|wgetrc|npmrc|\bpip\.conf|\bpip\.ini|netrc|\.cargo\b|\bhosts|resolv\.conf)$/;

/** Whether a line sets variables, or names settings, that may send its programs elsewhere. */
export function setsSomething({ commands, variables }: CommandLine): boolean {
  const isHarmful = (name: string, value: string | undefined) =>
    variableRuleOfList(name, value) !== undefined;
  const isSetting = (word: Word) => {
    const [, name, value] = /^([A-Za-z_]\w*)\+?=(.*)$/s.exec(leadingText(word)) ?? [];
    return name !== undefined && isHarmful(name, word.value === undefined ? undefined : value);
  };
  return (
    variables.some((name) => isHarmful(name, undefined)) ||
    commands.some(
      ({ assignments, words, redirects }) =>
        assignments.some(({ name, value }) => isHarmful(name, value.value)) ||
        words.some(isSetting) ||
        [...words.slice(1), ...redirects.map(({ target }) => target)].some(({ source }) =>
          SETTINGS_NAME.test(source.replace(/["']/g, '')),
        ),
    )
  );
}

/** bash itself connects for `/dev/tcp/HOST/PORT`, also where that comes out of a variable. */
export function reachOfRedirect({ operator, target }: Redirect): Reach {
  if (operator.startsWith('<<')) return 'local';
  if (/^\/dev\/(?:tcp|udp)\//.test(target.value ?? target.source)) return 'network';
  if (target.value !== undefined) return 'local';
  const [first] = target.parts;
  // What bash adds behind a beginning that is known, or finds in a directory, leads nowhere else.
  if (first === undefined || first.kind === 'process-substitution') return 'local';
  // `~+` and `~-` are directories that the line chooses, as is HOME where it sets that (`judgeWayOut`).
  if (first.kind === 'tilde') return first.user === '' ? 'local' : 'unknown';
  if (first.kind !== 'literal') return first.kind === 'glob' ? 'local' : 'unknown';
  return ['/dev/tcp/', '/dev/udp/'].some(
    (device) => first.text.startsWith(device) || device.startsWith(first.text),
  )
    ? 'unknown'
    : 'local';
}

/** Whether one simple command can use the network. What it runs is listed on its own, and judged there. */
export function reachOf(
  command: SimpleCommand,
  isForeign?: IsForeign,
  { settingsHeld = false, wordsDecide = false }: ReachOptions = {},
): Reach {
  let reach: Reach = 'local';
  for (const redirect of command.redirects) reach = strongest(REACHES, reach, reachOfRedirect(redirect));
  const use = describeCommand(command, isForeign);
  if (use === undefined) return reach;
  if (asksForHelp(use)) return strongest(REACHES, reach, 'local');
  const runsNothing = settingsHeld && use.reach === 'unknown' && inherited(use, 'runsNothing') === true;
  const stays = wordsDecide && inherited(use, 'staysLocal')?.(use) === true;
  if (!runsNothing && !stays) reach = strongest(REACHES, reach, use.reach);
  for (const { effect } of findingsOf(use)) {
    if (effect === 'network') return 'network';
    if (effect === 'executes' || effect === 'loads') reach = strongest(REACHES, reach, 'unknown');
  }
  return reach;
}
