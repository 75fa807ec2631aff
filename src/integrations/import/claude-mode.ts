import { as, type Draft, loss } from './draft.ts';
import type { Leaf, Table } from './place.ts';

/** What is asked about there. */
export function translateMode(draft: Draft, { defaultMode, disableBypassPermissionsMode }: Table): void {
  const leaf: Leaf = { place: ['permissions', 'defaultMode'], value: defaultMode };
  switch (defaultMode) {
    case 'default':
    case 'manual':
      draft.autonomy = 'supervised';
      draft.note(leaf, as('security.autonomy = "supervised"'));
      break;
    case 'acceptEdits':
    case 'auto':
      draft.autonomy = 'contained';
      draft.note(leaf, loss('narrower', 'what leaves the sandbox is asked about', AUTONOMOUS));
      break;
    case 'plan':
      draft.autonomy = 'readonly';
      draft.note(leaf, as('security.autonomy = "readonly"'));
      break;
    case 'dontAsk':
      draft.autonomy = 'supervised';
      draft.ask = 'nobody';
      draft.note(leaf, as('approval.ask = "nobody"'));
      break;
    case 'bypassPermissions':
      draft.autonomy = 'supervised';
      draft.note(leaf, loss('narrower', 'it is not taken over that nothing is asked', AUTONOMOUS));
      break;
    default:
  }
  if (disableBypassPermissionsMode !== undefined)
    draft.note(
      { place: ['permissions', 'disableBypassPermissionsMode'], value: disableBypassPermissionsMode },
      loss('none', 'it is about a mode of Claude Code', 'leave it in Claude Code'),
    );
}

/** What to do where less is to be asked. */
export const AUTONOMOUS = 'set security.autonomy = "autonomous" if nothing is to be asked';
