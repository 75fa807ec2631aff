import type { Parsed, Redirect, SimpleCommand } from '../model/command-line.ts';
import type { Risk } from '../model/decision.ts';
import { RISKS } from '../model/words.ts';
import { assertNever } from '../util/assert-never.ts';
import type { Finding, Use } from './behaviour.ts';
import { describeCommand, type IsForeign, inherited } from './describe.ts';
import { findingsOf } from './findings.ts';
import { isSink } from './plain-paths.ts';

/** The higher of two risks. */
function higherRisk(left: Risk, right: Risk): Risk {
  return RISKS.indexOf(left) >= RISKS.indexOf(right) ? left : right;
}

/** The highest risk of what a line could run; high if it is not understood. */
export function riskOfLine(parsed: Parsed, isForeign?: IsForeign): Risk {
  if (!parsed.understood) return 'high';
  return parsed.line.commands.reduce<Risk>(
    (risk, command) => (risk === 'high' ? risk : higherRisk(risk, riskOf(command, isForeign))),
    'low',
  );
}

/** The risk of one simple command, without what it runs: that is listed on its own. */
export function riskOf(command: SimpleCommand, isForeign?: IsForeign): Risk {
  const use = describeCommand(command, isForeign);
  const own = use === undefined ? 'low' : riskOfUse(use);
  return command.redirects.some(writesFile) ? higherRisk(own, 'medium') : own;
}

/** As `riskOf`, without redirects. */
function riskOfUse(use: Use): Risk {
  if (asksForHelp(use)) return 'low';
  const own = inherited(use, 'onlyReads')?.(use) === true ? 'low' : use.risk;
  return findingsOf(use).reduce<Risk>((risk, { effect }) => higherRisk(risk, riskOfEffect(effect)), own);
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
/** Programs whose `-v` prints the version, and whose `-V` does. */
const SHORT_VERSION: Readonly<Record<string, string>> = {
  node: '-v',
  npm: '-v',
  pnpm: '-v',
  yarn: '-v',
  php: '-v',
  ruby: '-v',
  perl: '-v',
  python: '-V',
  python3: '-V',
};

/** True if a listed program is only asked for its version or for help. */
export function asksForHelp(use: Use): boolean {
  const { words } = use.command;
  const only = words[words.length - 1]?.value;
  if (only === undefined || use.program.unlisted === true) return false;
  if (words.length === 2) return HELP.has(only) || SHORT_VERSION[use.program.name] === only;
  return use.verbs.length === words.length - 2 && (only === '--help' || only === '--version');
}

/** True if a redirect creates or changes a file. */
export function writesFile(redirect: Redirect): boolean {
  const target = redirect.target.value;
  switch (redirect.operator) {
    case '<':
    case '<&':
    case '<<':
    case '<<-':
    case '<<<':
      return false;
    case '>&':
      // Else a descriptor, which was opened elsewhere.
      return target === undefined || !/^(?:\d+|-)$/.test(target);
    case '>':
    case '>>':
    case '>|':
    case '<>':
    case '&>':
    case '&>>':
      return target === undefined || !isSink(target);
    default:
      return assertNever(redirect.operator);
  }
}
