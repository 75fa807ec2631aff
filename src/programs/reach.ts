import type { Parsed, Redirect, SimpleCommand } from '../model/command-line.ts';
import type { Reach } from '../model/decision.ts';
import { REACHES } from '../model/words.ts';
import { describeCommand, type IsForeign, inherited } from './describe.ts';
import { findingsOf } from './findings.ts';
import { asksForHelp } from './risk.ts';

/** The further of two reaches. */
function furtherReach(left: Reach, right: Reach): Reach {
  return REACHES.indexOf(left) >= REACHES.indexOf(right) ? left : right;
}

/** Where the settings that programs obey are out of the reach of commands (`Behaviour.runsNothing`). */
interface ReachOptions {
  readonly settingsHeld?: boolean;
}

/** The furthest reach of what a line could run; unknown if it is not understood. */
export function reachOfLine(parsed: Parsed, isForeign?: IsForeign, options?: ReachOptions): Reach {
  if (!parsed.understood) return 'unknown';
  return parsed.line.commands.reduce<Reach>(
    (reach, command) =>
      reach === 'network' ? reach : furtherReach(reach, reachOf(command, isForeign, options)),
    'local',
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
  { settingsHeld = false }: ReachOptions = {},
): Reach {
  let reach: Reach = 'local';
  for (const redirect of command.redirects) reach = furtherReach(reach, reachOfRedirect(redirect));
  const use = describeCommand(command, isForeign);
  if (use === undefined) return reach;
  if (asksForHelp(use)) return furtherReach(reach, 'local');
  const runsNothing = settingsHeld && use.reach === 'unknown' && inherited(use, 'runsNothing') === true;
  if (!runsNothing) reach = furtherReach(reach, use.reach);
  for (const { effect } of findingsOf(use)) {
    if (effect === 'network') return 'network';
    if (effect === 'executes' || effect === 'loads') reach = furtherReach(reach, 'unknown');
  }
  return reach;
}
