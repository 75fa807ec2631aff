import { looksSecretVariable } from '../../base/secret-name.ts';
import type { Autonomy } from '../../model/index.ts';
import { as, narrower, type Outcome, type Reader } from './draft.ts';

/** A switch that here is always in one position. */
export const isAlways =
  (position: boolean, why: string, use?: string): Reader =>
  ({ value }) => {
    if (typeof value !== 'boolean') return undefined;
    return value === position ? as(why) : narrower(why, use);
  };

/** Modes of asking by the words for them. */
export const modes =
  (words: Readonly<Record<string, Mode>>): Reader =>
  ({ value }, { policy }) => {
    const mode = new Map<unknown, Mode>(Object.entries(words)).get(value);
    if (mode === undefined) return undefined;
    policy.security.autonomy = mode.autonomy;
    if (mode.ask !== undefined) policy.approval.ask = mode.ask;
    const nobody = mode.ask === undefined ? '' : `, approval.ask = "${mode.ask}"`;
    return mode.outcome ?? as(`security.autonomy = "${mode.autonomy}"${nobody}`);
  };

interface Mode {
  readonly autonomy: Autonomy;
  readonly ask?: 'nobody';
  readonly outcome?: Outcome;
}

/** A variable that is set, by the key that it stands under. Of others the value is not repeated. */
export const variable: Reader = ({ place, value }, draft) => {
  const name = String(place.at(-1));
  const isVariable = typeof value === 'string' && /^[A-Za-z_]\w*$/.test(name);
  if (isVariable && !looksSecretVariable(name)) {
    draft.policy.environment.set[name] = value;
    return as('environment.set');
  }
  const hidden = { place, value: '(not shown)' };
  draft.note(hidden, isVariable ? SECRET : NO_VARIABLE);
  return 'noted';
};

const SECRET = narrower('it looks like a secret, which no policy should have', '--pass-env NAME');
const NO_VARIABLE = narrower('it is no name of a variable, or no text', 'another name');
