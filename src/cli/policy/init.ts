import { writeFileSync } from 'node:fs';
import { SandboxError } from '../../errors/sandbox-error.ts';
import type { PlacedKey } from '../../model/policy-key.ts';
import { PLACED_KEYS } from '../../model/policy-keys.ts';
import { errnoOf } from '../../util/errno-of.ts';
import { wrap } from '../shared/print.ts';

/** Never over what is there, which `instead` says what to do about, and never through a link. */
export function writeNewPolicy(path: string, text: string, instead: string, prepare = () => {}): void {
  try {
    prepare();
    // No other user may write it, whatever the umask.
    writeFileSync(path, text, { flag: 'wx', mode: 0o644 });
  } catch (error) {
    const code = errnoOf(error) ?? String(error);
    if (code === 'EEXIST') throw new SandboxError('policy.exists', `${path} is already there; ${instead}`);
    throw new SandboxError('policy.unreadable', `cannot write the policy ${path} (${code})`);
  }
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
    lines.push(...wrap(row.text, 96).map((line) => `# ${line}`), `# ${name ?? first} = ${row.example}`, '');
  }
  return `# Policy of sandbox-run. Without this file the built-in policy holds.\n\n${lines.join('\n').trimEnd()}\n`;
}
