import { POLICY_KEYS } from '../../model/policy-keys.ts';
import { as, type Draft, loss } from './draft.ts';
import type { Place } from './importer.ts';
import { isTable, type Leaf, type Table } from './place.ts';

const NOTHING = 'nothing is to be done';

/** Variables that a command must not see. What is not passed on is not seen. */
export function translateVariables(draft: Draft, credentials: Table, at: Place): void {
  const { envVars, awsPairs, allowPlaintextInject, sigv4 } = credentials;
  if (Array.isArray(envVars)) {
    envVars.forEach((entry: unknown, index) => {
      if (!isTable(entry) || typeof entry.name !== 'string') return;
      const leaf: Leaf = { place: [...at, 'envVars', index], value: entry };
      hideVariable(draft, entry.name);
      if (entry.mode === 'mask')
        draft.note(
          leaf,
          loss('narrower', 'commands do not get the variable at all, and no proxy puts it in', NOTHING),
        );
      else draft.note(leaf, as('the variable is not passed on'));
    });
  }
  for (const [key, value] of Object.entries({ awsPairs, allowPlaintextInject, sigv4 })) {
    if (value === undefined) continue;
    draft.note(
      { place: [...at, key], value },
      loss('narrower', 'no proxy puts credentials in here', NOTHING),
    );
  }
}

/** What every command is given is given empty instead. */
export function hideVariable(draft: Draft, name: string): void {
  if (name === 'PATH') draft.set.PATH = '/usr/local/bin:/usr/bin:/bin';
  else if (PASSED_ANYWAY.includes(name)) draft.set[name] = '';
}

/** What the profiles pass on to every command. */
export const PASSED_ANYWAY: readonly string[] = POLICY_KEYS.environment.pass.default;
