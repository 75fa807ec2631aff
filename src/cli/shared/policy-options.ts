import { InvalidArgumentError, Option } from 'commander';
import type { Taint } from '../../model/decision.ts';
import { type FlagKind, PLACED_KEYS, type PlacedKey, type PolicyKey } from '../../model/policy-keys.ts';
import { BACKEND_IDS, TAINTS } from '../../model/words.ts';
import { parseSeconds, parseSize, parseWhole } from './quantities.ts';

const READERS: Readonly<Record<FlagKind, ((text: string, before: unknown) => unknown) | undefined>> = {
  choice: undefined,
  word: undefined,
  paths: (path, before) => [...(Array.isArray(before) ? before : []), path],
  seconds: parseSeconds,
  size: parseSize,
  count: parseWhole,
};

/** The option of a key that has one. */
function optionOf({ name, text, kind, choices }: NonNullable<PolicyKey['flag']>): Option {
  const option = new Option(name, text);
  const reader = READERS[kind];
  if (reader !== undefined) option.argParser(reader);
  return choices === undefined ? option : option.choices(choices);
}

/** An option that stands for a key of the policy. */
interface PolicyOption {
  readonly key: string;
  readonly option: Option;
  /** The option of `createSandbox` that its value becomes: `limits.memory`. */
  readonly becomes: string;
}

/** The options of all keys that have one. */
export function policyOptions(keys: readonly PlacedKey[] = PLACED_KEYS): readonly PolicyOption[] {
  return keys.flatMap(({ key, row: { flag, option } }) =>
    flag === undefined || option === undefined ? [] : [{ key, option: optionOf(flag), becomes: option.name }],
  );
}

function policyOption(key: string): Option {
  const found = policyOptions().find((one) => one.key === key);
  if (found === undefined) throw new TypeError(`the table of keys has no option for ${key}`);
  return found.option;
}

/** `--autonomy A`. */
export function autonomyOption(): Option {
  return policyOption('security.autonomy');
}

/** `--backend NAME`. */
export function backendOption(): Option {
  return new Option(
    '--backend <name>',
    'what keeps the command in; if this one cannot be used, nothing runs (default: auto, the strongest one that holds here)',
  ).choices(['auto', ...BACKEND_IDS]);
}

/** A word that names a taint. */
export function isTaint(word: unknown): word is Taint {
  return TAINTS.some((taint) => taint === word);
}

/** `--taint a,b`. */
export function parseTaints(text: string): readonly Taint[] {
  return text
    .split(',')
    .filter((word) => word !== '')
    .map((word) => {
      if (!isTaint(word)) throw new InvalidArgumentError(`known are ${TAINTS.join(' and ')}.`);
      return word;
    });
}
