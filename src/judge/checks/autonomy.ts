import { assertNever } from '../../base/assert-never.ts';
import type { Reason, SimpleCommand } from '../../model/index.ts';
import { inherited } from '../programs/behaviour.ts';
import { pathUses } from '../programs/path-uses.ts';
import { asksForHelp, reachOfLine } from '../programs/risk.ts';
import { type Check, type CheckContext, commandsOf, reasonFor } from './check.ts';
import { settingsOf } from './environment.ts';
import { isForeignTo, useOf } from './locations.ts';

const reason = reasonFor('autonomy');

function opinion(context: CheckContext): Reason {
  const { autonomy, approved, risk } = context;
  switch (autonomy) {
    case 'readonly':
      return onlyReads(context)
        ? reason('allow', 'reads', 'autonomy is readonly, and it only reads')
        : reason(
            'deny',
            'readonly',
            'autonomy is readonly: only commands that are known to do nothing but read are run',
          );
    case 'autonomous':
      return reason('allow', 'autonomous', 'autonomy is autonomous: nothing is asked because of risk');
    case 'contained':
      return reason(
        'allow',
        'contained',
        'autonomy is contained: nothing is asked about what the sandbox holds',
      );
    case 'supervised':
      if (risk === 'low') return reason('allow', 'low_risk', 'autonomy is supervised and the risk is low');
      if (approved) return reason('allow', 'approved', `the risk is ${risk} and the request was approved`);
      return reason(
        'ask',
        'needs_approval',
        `the risk is ${risk}, and with autonomy supervised a person has to approve that`,
      );
    default:
      return assertNever(autonomy);
  }
}

/**
 * True for a line that does nothing but read and print, as far as its words tell. An unknown program may do more. Rather once
 * too seldom.
 */
function onlyReads(context: CheckContext): boolean {
  const { parsed, risk } = context;
  return (
    risk === 'low' &&
    reachOfLine(parsed, isForeignTo(context), { settingsHeld: true }) === 'local' &&
    commandsOf(parsed).every((command) => writesNothing(command, context))
  );
}

/** `[ -w FILE ]`, `find -writable`: the answer is another one where nothing can be written. */
const ASKS_FOR_WRITING = /\btest\s[^;&|\n]*-w\s|\[\s(?:[^\]]*\s)?-w\s|\s-writable\b/;

/** Variables by which programs are told where to write: `GIT_TRACE=FILE`. */
const SAYS_WHERE = /^(?:TMPDIR|TMP|TEMP|HOME|XDG_\w+|GIT_\w+)$/;

/** True for a line that only reads, and finds the same where nothing can be written. Rather once too seldom. */
export function isSameUnwritable(context: CheckContext): boolean {
  return (
    onlyReads(context) &&
    !ASKS_FOR_WRITING.test(context.text) &&
    !commandsOf(context.parsed)
      .flatMap(settingsOf)
      .some(({ name, value }) => SAYS_WHERE.test(name) || value?.includes('/') === true)
  );
}

/** Commands of low risk that write nevertheless: `mktemp x`, `git merge-tree`. */
function writesNothing(command: SimpleCommand, context: CheckContext): boolean {
  const use = useOf(command, context);
  if (use === undefined || asksForHelp(use)) return true;
  return (
    inherited(use, 'onlyReads')?.(use) !== false &&
    pathUses(command, use).every(({ effect }) => effect === 'reads')
  );
}

/** How much is left to the agent. */
export const autonomy: Check = {
  name: 'autonomy',
  summary:
    'readonly runs what only reads; supervised asks about medium and high risk; contained asks about what acts outside the sandbox; autonomous asks nothing.',
  judge: (context) => [opinion(context)],
};
