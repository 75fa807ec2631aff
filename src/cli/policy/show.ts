import { CHECKS_IN_SESSION } from '../../decide/judgement.ts';
import type { SandboxOptions } from '../../model/options.ts';
import { PLACED_KEYS } from '../../model/policy-keys.ts';
import { weakenings } from '../../policy/effective.ts';
import type { Entry } from '../../policy/layers.ts';
import { type Source, sourceOf } from '../../policy/locate-key.ts';
import { type ResolvedPolicy, resolvePolicy } from '../../run/resolve/resolve-policy.ts';
import { jsonText } from '../shared/print.ts';

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
