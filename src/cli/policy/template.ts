import { PLACED_KEYS, type PlacedKey } from '../../model/policy-keys.ts';

function wrap(text: string): readonly string[] {
  return text.match(/.{1,96}(?: |$)/g)?.map((line) => `# ${line.trimEnd()}`) ?? [];
}

/** A policy file in which every key stands as a comment with what it means, made from the table of keys. */
export function policyTemplate(keys: readonly PlacedKey[] = PLACED_KEYS): string {
  const lines: string[] = [];
  let table: string | undefined;
  // Keys that are in no table come first: TOML has no way back out of one.
  for (const { place, row } of keys.toSorted((a, b) => Math.sign(a.place.length - b.place.length))) {
    const [first = '', name] = place;
    if (name !== undefined && first !== table) lines.push(`[${first}]`, '');
    table = name === undefined ? undefined : first;
    lines.push(...wrap(row.text), `# ${name ?? first} = ${row.example}`, '');
  }
  return `# Policy of sandbox-run. Without this file the built-in policy holds.\n\n${lines.join('\n').trimEnd()}\n`;
}
