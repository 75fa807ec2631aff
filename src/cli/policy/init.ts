import { errnoOf } from '../../base/errno-of.ts';
import { SandboxError } from '../../base/errors/sandbox-error.ts';
import { PLACED_KEYS, type PlacedKey } from '../../model/index.ts';
import { atPlaceOf, makeAt } from '../../workspace/index.ts';
import { currentDirectory } from '../shared/caller.ts';
import { wrap } from '../shared/print.ts';

/**
 * Makes a new policy file: never over what is there, which `instead` says what to do about, and never through a link that a
 * command could have made. `workspace`: beside the current directory, where commands may write.
 */
export function writeNewPolicy(
  path: string,
  text: string,
  { instead, workspace, directoryMode }: NewPolicy,
): void {
  const commandsWrite = [currentDirectory(), ...(workspace === undefined ? [] : [workspace])];
  const cannot = (why: string) =>
    new SandboxError('policy.unreadable', `cannot write the policy ${path} (${why})`);
  try {
    const options = { commandsWrite, ...(directoryMode === undefined ? {} : { directoryMode }) };
    const isMade = atPlaceOf(path, options, (place) => {
      makeAt(place, text, { mode: 0o644 });
      return true;
    });
    if (isMade !== true) throw cannot('ENOENT');
  } catch (error) {
    if (error instanceof SandboxError) throw error;
    const code = errnoOf(error) ?? String(error);
    if (code === 'EEXIST') throw new SandboxError('policy.exists', `${path} is already there; ${instead}`);
    throw cannot(code);
  }
}

interface NewPolicy {
  readonly instead: string;
  readonly workspace?: string;
  /** Makes missing directories with this mode. */
  readonly directoryMode?: number;
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
