import { SandboxError } from '../../errors/sandbox-error.ts';
import type { NetworkRules } from '../../model/network.ts';
import type { UNLISTED, VERIFY } from '../../model/words.ts';
import { visibleLine } from '../../util/visible-text.ts';
import { type NetworkEntry, readEntry } from './entry.ts';
import { isPresetOfTool, PRESET_NAMES, PRESETS, type PresetOfTool } from './presets.ts';
import { networkRules } from './rules.ts';

/** Of an entry that is repeated in a message. */
const ENTRY_CHARACTERS = 80;

/** Says what is wrong with an entry, in a few words; `undefined`: nothing. */
export function problemOfEntry(text: string, kind: 'allow' | 'deny'): string | undefined {
  const shown = JSON.stringify(visibleLine(text, ENTRY_CHARACTERS));
  if (text.startsWith('@')) {
    if (PRESET_NAMES.includes(text)) return undefined;
    return `there is no preset ${shown}; known: ${PRESET_NAMES.join(', ')}`;
  }
  const read = readEntry(text, kind);
  return 'problem' in read ? `${shown}: ${read.problem}` : undefined;
}

/** What a policy says of a network that is listed. */
interface ListedNetwork {
  readonly allow: readonly string[];
  readonly deny: readonly string[];
  readonly unlisted?: (typeof UNLISTED)[number];
  readonly verify?: (typeof VERIFY)[number];
}

/**
 * The rules that entries stand for. `hostsOf` says which hosts a tool is configured to use.
 * @throws {SandboxError} `policy.invalid`, with the key, the entry and what is allowed.
 */
export function readRules(
  { allow, deny, unlisted = 'deny', verify = 'none' }: ListedNetwork,
  hostsOf: (preset: PresetOfTool) => readonly string[],
): NetworkRules {
  const read = (texts: readonly string[], kind: 'allow' | 'deny') =>
    texts.flatMap((text) => {
      const problem = problemOfEntry(text, kind);
      if (problem !== undefined) throw new SandboxError('policy.invalid', `network.${kind}: ${problem}`);
      return entriesOf(text, kind, hostsOf);
    });
  return networkRules(read(allow, 'allow'), read(deny, 'deny'), { asks: unlisted === 'ask', verify });
}

/**
 * A preset's entries are told by its name. What a tool's settings name and is no host cannot be reached anyway; to deny it is
 * refused, as nobody knows what it stands for.
 */
function entriesOf(
  text: string,
  kind: 'allow' | 'deny',
  hostsOf: (preset: PresetOfTool) => readonly string[],
): readonly NetworkEntry[] {
  const texts = isPresetOfTool(text) ? hostsOf(text) : (PRESETS[text]?.map(({ entry }) => entry) ?? [text]);
  return texts.flatMap((one) => {
    const read = readEntry(one, kind);
    if ('problem' in read) {
      if (kind === 'allow') return [];
      throw new SandboxError('policy.invalid', `network.deny: ${text} cannot be denied: ${read.problem}`);
    }
    return [one === text ? read.entry : { ...read.entry, text: `${text} (${one})` }];
  });
}
