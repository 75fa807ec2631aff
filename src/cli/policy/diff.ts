import { isDeepStrictEqual } from 'node:util';
import type { SandboxOptions } from '../../model/options.ts';
import { PLACED_KEYS } from '../../model/policy-keys.ts';
import type { Entry } from '../../policy/layers.ts';
import { resolvePolicy } from '../../run/resolve/resolve-policy.ts';
import { jsonLine } from '../shared/print.ts';

/** A value that one policy has and the other has not. */
interface Difference {
  readonly change: 'added' | 'removed';
  readonly key: string;
  readonly value: unknown;
}

/**
 * What a policy file would change here: the policy in force with `--policy FILE`, against that without.
 * @throws {SandboxError} for anything wrong with any of them.
 */
export async function diffPolicy(file: string, where: SandboxOptions, json: boolean): Promise<string> {
  const present = await resolvePolicy(where);
  const other = await resolvePolicy({ ...where, policy: file });
  const differences = [
    ...without(present.entries, other.entries).map((entry) => ({ change: 'removed', ...entry }) as const),
    ...without(other.entries, present.entries).map((entry) => ({ change: 'added', ...entry }) as const),
  ].sort((one, two) => place(one) - place(two));
  if (json) return differences.map((one) => jsonLine(one)).join('');
  if (differences.length === 0) return 'no difference\n';
  return differences.map(inWords).join('');
}

const place = ({ key }: Difference) => PLACED_KEYS.findIndex((placed) => placed.key === key);

function without(some: readonly Entry[], others: readonly Entry[]): readonly Omit<Difference, 'change'>[] {
  return some
    .filter(
      (entry) =>
        !others.some((other) => other.key === entry.key && isDeepStrictEqual(other.value, entry.value)),
    )
    .map(({ key, value }) => ({ key, value }));
}

function inWords({ change, key, value }: Difference): string {
  return `${change === 'added' ? '+' : '-'} ${key} = ${JSON.stringify(value)}\n`;
}
