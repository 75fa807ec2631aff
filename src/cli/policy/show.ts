import { isDeepStrictEqual } from 'node:util';
import { CHECKS_IN_SESSION } from '../../decide/judgement.ts';
import type { SandboxOptions } from '../../model/options.ts';
import { PLACED_KEYS } from '../../model/policy-keys.ts';
import { weakenings } from '../../policy/effective.ts';
import type { Entry } from '../../policy/layers.ts';
import { type Source, sourceOf } from '../../policy/locate-key.ts';
import { type ResolvedPolicy, resolvePolicy } from '../../run/resolve/resolve-policy.ts';
import { jsonLine, jsonText } from '../shared/print.ts';

/** One value of the effective policy. Of a list that adds up, one item; of a table, one name. */
interface ShownValue {
  readonly key: string;
  readonly value: unknown;
  readonly item: boolean;
  readonly source: Source;
}

function shownValue(entry: Entry): ShownValue {
  const { key, value, item } = entry;
  return { key, value, item, source: sourceOf(entry) };
}

/** Keys that decide one value and that no layer speaks of. */
function unset(entries: readonly Entry[]): readonly ShownValue[] {
  return PLACED_KEYS.filter(
    ({ key, row }) => row.layers === 'replace' && !entries.some((entry) => entry.key === key),
  ).map(({ key }) => ({ key, value: undefined, item: false, source: { layer: 'profile' } }));
}

/** The effective policy as text. */
export async function showPolicy(options: SandboxOptions, explain: boolean, json: boolean): Promise<string> {
  const resolved = await resolvePolicy(options);
  const { workspace, named, entries } = resolved;
  const values = [...entries.map(shownValue), ...unset(entries)];
  const weaker = weakenings(named);
  if (json) {
    const checks = CHECKS_IN_SESSION.map(({ name, summary }) => ({ name, summary }));
    const shown = explain ? values : values.map(({ key, value }) => ({ key, value }));
    return jsonText({ workspace, values: shown, weakerThanDefault: weaker, checks });
  }
  const lines = [
    `# Policy in ${workspace}`,
    ...values.map((value) => describeValue(value, explain)),
    ...(explain ? explanation(resolved) : []),
    weaker.length === 0
      ? '# Nothing is weaker than the default policy.'
      : '# Weaker than the default policy:',
    ...weaker.map(({ key, meaning }) => `#   ${key}: ${meaning}`),
  ];
  return `${lines.join('\n')}\n`;
}

function describeValue({ key, value, item, source }: ShownValue, explain: boolean): string {
  const line =
    value === undefined ? `# ${key} is not set` : `${key} ${item ? '+=' : '='} ${JSON.stringify(value)}`;
  return explain ? `${line.padEnd(52)}  # ${describeSource(source)}` : line;
}

function describeSource({ layer, path, line }: Source): string {
  if (path !== undefined) return `${layer}: ${path}${line === undefined ? '' : `:${line}`}`;
  return layer === 'profile' ? 'built-in profile' : layer;
}

function explanation({ named, layers }: ResolvedPolicy): readonly string[] {
  const granted = named.filesystem.rules.filter(({ reason }) => !reason.startsWith('filesystem.'));
  return [
    '# Granted besides, where it exists:',
    ...granted.map(({ path, access, reason }) => `#   ${access.padEnd(6)} ${path.padEnd(32)} ${reason}`),
    '# Files:',
    ...layers.flatMap(({ name, path }) => (name === 'caller' ? [] : [`#   ${name}: ${path ?? 'an object'}`])),
    '# Checks, all of which run; the strictest wins:',
    ...CHECKS_IN_SESSION.map(({ name, summary }) => `#   ${name.padEnd(12)} ${summary}`),
  ];
}

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
