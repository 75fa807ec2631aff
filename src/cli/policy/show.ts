import { isDeepStrictEqual } from 'node:util';
import { CHECKS_IN_SESSION } from '../../gate/index.ts';
import { PLACED_KEYS, type SandboxOptions } from '../../model/index.ts';
import { type Entry, type Source, sourceOf, weakenings } from '../../policy/index.ts';
import { type ResolvedPolicy, resolvePolicy } from '../../run/index.ts';
import { caller } from '../shared/caller.ts';
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

/** Which policy is shown, how much of it, and in which form. */
export interface ShowOptions extends Pick<SandboxOptions, 'workspace' | 'profile' | 'policy'> {
  readonly explain?: boolean;
  readonly verbose?: boolean;
  readonly json?: boolean;
}

/** The effective policy as text. */
export async function showPolicy({
  explain = false,
  verbose = false,
  json = false,
  ...where
}: ShowOptions): Promise<string> {
  const resolved = await resolvePolicy(where, caller());
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
    ...(verbose ? values : values.filter((value) => !isBuiltInProtection(value))).map((value) =>
      describeValue(value, explain),
    ),
    ...(verbose ? [] : builtInProtections(values)),
    ...(explain ? explanation(resolved) : []),
    weaker.length === 0
      ? '# Nothing is weaker than the default policy.'
      : '# Weaker than the default policy:',
    ...weaker.map(({ key, meaning }) => `#   ${key}: ${meaning}`),
  ];
  return `${lines.join('\n')}\n`;
}

const isBuiltInProtection = ({ key, source }: ShownValue) =>
  key === 'filesystem.protect' && source.layer === 'profile';

/** The protected paths that every policy has, in one line. */
function builtInProtections(values: readonly ShownValue[]): readonly string[] {
  const paths = values.filter(isBuiltInProtection).map(({ value }) => value);
  if (paths.length === 0) return [];
  return [
    `# filesystem.protect has ${paths.length} built-in paths, such as ${paths.slice(0, 2).join(', ')}; -v lists them`,
  ];
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
  const present = await resolvePolicy(where, caller());
  const other = await resolvePolicy({ ...where, policy: file }, caller());
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
