import { InvalidArgumentError, Option } from 'commander';
import { BACKEND_IDS } from '../model/backend.ts';
import { AUTONOMIES, TAINTS, type Taint } from '../model/decision.ts';
import { APPROVERS } from '../model/policy.ts';

/** `--autonomy A`. */
export function autonomyOption(): Option {
  return new Option('--autonomy <level>', 'how much is left to the agent (default: contained)').choices(
    AUTONOMIES,
  );
}

/** `--backend NAME`. */
export function backendOption(): Option {
  return new Option(
    '--backend <name>',
    'what keeps the command in; one that is named is used or nothing is (default: auto, the strongest that holds here)',
  ).choices(['auto', ...BACKEND_IDS]);
}

/** `--ask WHO`. */
export function askOption(): Option {
  return new Option(
    '--ask <whom>',
    'who answers what the policy asks: terminal, queue (sandbox-run approvals), nobody',
  ).choices(APPROVERS);
}

/** A word that names a taint. */
export function isTaint(word: unknown): word is Taint {
  return TAINTS.some((taint) => taint === word);
}

/** `--taint a,b`. */
export function parseTaints(text: string): readonly Taint[] {
  return text
    .split(',')
    .filter((word) => word !== '')
    .map((word) => {
      if (!isTaint(word)) throw new InvalidArgumentError(`known are ${TAINTS.join(' and ')}.`);
      return word;
    });
}
