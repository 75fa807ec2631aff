import { resolve } from 'node:path';
import { SandboxError } from '../base/errors/sandbox-error.ts';
import { CONTROL_IDS } from '../base/words.ts';
import type { BackendId } from '../confine/plan/enforcement-report.ts';
import type { PathRule } from '../confine/plan/grant.ts';
import { PLACED_KEYS, type PlacedKey, type Policy, type PolicyFile } from '../model/index.ts';
import {
  type Entry,
  keysInForce,
  mergedFile,
  type PolicyLayer,
  putAt,
  valueAt,
  valueInForce,
} from './layers.ts';
import { PROFILES, type Profile } from './profiles/built-in.ts';
import { PROTECTED_PATHS } from './profiles/obeyed-files.ts';
import { MASKED_PATHS, SYSTEM_PATHS } from './profiles/system-paths.ts';

/** What layers cannot say. */
interface PolicyPlace {
  /** Canonical. */
  readonly workspace: string;
  /** Where `~` leads. */
  readonly home: string;
  /** The backend that the caller named. */
  readonly backend?: BackendId | 'auto' | undefined;
}

/** A policy, and where each of its values comes from. */
interface EffectivePolicy {
  readonly policy: Policy;
  /** With paths made absolute. */
  readonly entries: readonly Entry[];
}

/** What all profiles have, beside the defaults of the table of keys. */
const EVERY_PROFILE: {
  readonly says: PolicyFile;
  readonly filesystem: Pick<Policy['filesystem'], 'rules' | 'masked'>;
} = {
  says: { filesystem: { protect: [...PROTECTED_PATHS] } },
  filesystem: { rules: SYSTEM_PATHS, masked: MASKED_PATHS },
};

/**
 * What the layers say on top of the profile that they name. Pure.
 * @throws {SandboxError} `policy.unknown_profile`.
 */
export function effectivePolicy(
  layers: readonly PolicyLayer[],
  place: PolicyPlace,
  keys: readonly PlacedKey[] = PLACED_KEYS,
): EffectivePolicy {
  const profile = profileNamed(layers);
  const all: readonly PolicyLayer[] = [{ name: 'profile', says: saidByProfile(profile, keys) }, ...layers];
  const inForce = keysInForce(all, keys).map(({ key, entries }) => ({
    key,
    entries: key.row.paths === true ? entries.map((entry) => withAbsolutePath(entry, place)) : entries,
  }));
  const entries = inForce.flatMap((one) => one.entries);
  const values: Record<string, unknown> = {};
  for (const one of inForce) {
    const { at, row } = one.key;
    const value = valueInForce(one);
    putAt(values, at, value === undefined || row.value === undefined ? value : row.value(value));
  }
  // The rows of the table and the type come from one place: each key has a value of its type, or `undefined`.
  const said = values as unknown as Policy;
  const { backend = 'auto' } = place;
  return {
    entries,
    policy: {
      ...said,
      filesystem: {
        ...said.filesystem,
        ...EVERY_PROFILE.filesystem,
        workspaceAccess: profile.workspaceAccess,
        rules: [...EVERY_PROFILE.filesystem.rules, ...grantsOf(entries)],
      },
      sandbox: {
        ...said.sandbox,
        backend,
        // A backend that is named is accepted as it is, but still refused if it is below the minimum.
        accepted: backend === 'auto' ? minimumOfOperator(layers) : backend,
        demandedByFiles: CONTROL_IDS.filter((id) =>
          layers.some(({ says: { demand } }) => demand?.[id] !== undefined),
        ),
      },
    },
  };
}

/** The built-in profile that the last layer to name one names; the first of all where none does. */
function profileNamed(layers: readonly PolicyLayer[]): Profile {
  const naming = layers.filter(({ name: layer }) => layer !== 'workspace');
  const name = naming.findLast(({ says }) => says.profile !== undefined)?.says.profile ?? PROFILES[0].name;
  const profile = PROFILES.find((candidate) => candidate.name === name || candidate.formerly === name);
  if (profile !== undefined) return profile;
  const known = PROFILES.map((candidate) => candidate.name).join(', ');
  throw new SandboxError('policy.unknown_profile', `there is no profile "${name}"; known: ${known}`);
}

const OF_TABLE = new Map<Profile, PolicyFile>();

/** The same for every policy with that table, so it is merged once: a warm server makes several policies for each call. */
function saidByProfile(profile: Profile, keys: readonly PlacedKey[]): PolicyFile {
  if (keys !== PLACED_KEYS) return profileFile(profile, keys);
  const says = OF_TABLE.get(profile) ?? profileFile(profile, keys);
  OF_TABLE.set(profile, says);
  return says;
}

/** All that a built-in profile says: the defaults of the table, what every profile says, and its own. */
export function profileFile({ name, says }: Profile, keys: readonly PlacedKey[] = PLACED_KEYS): PolicyFile {
  const defaults: Record<string, unknown> = {};
  for (const { place, row } of keys) if (row.default !== undefined) putAt(defaults, place, row.default);
  const layers = [defaults, EVERY_PROFILE.says, says, { profile: name }].map(
    (part): PolicyLayer => ({ name: 'profile', says: part }),
  );
  return mergedFile(layers, keys);
}

function withAbsolutePath(entry: Entry, { workspace, home }: PolicyPlace): Entry {
  const path = String(entry.value);
  const value = /^~(?=\/|$)/.test(path) ? `${home}${path.slice(1)}` : resolve(workspace, path);
  return { ...entry, value };
}

/** What the layers open, with the reason that reports and messages name. */
function grantsOf(entries: readonly Entry[]): readonly PathRule[] {
  return (['read', 'write'] as const).flatMap((access) =>
    entries
      .filter(({ key }) => key === `filesystem.${access}`)
      .map(({ value, layer }) => ({
        path: String(value),
        access,
        required: true,
        reason: layer.name === 'caller' ? 'asked for by the caller' : `filesystem.${access} in the policy`,
      })),
  );
}

/** A file in the workspace accepts nothing: it may only ask for more. */
function minimumOfOperator(layers: readonly PolicyLayer[]): BackendId | undefined {
  return layers.findLast(({ name, says }) => name !== 'workspace' && says.sandbox?.minimum !== undefined)
    ?.says.sandbox?.minimum;
}

/** What in a policy is weaker than in the default one: key and meaning. */
export function weakenings(
  policy: Policy,
  keys: readonly PlacedKey[] = PLACED_KEYS,
): readonly { readonly key: string; readonly meaning: string }[] {
  const { accepted } = policy.sandbox;
  const backend =
    accepted === 'firejail' || accepted === 'application'
      ? [
          {
            key: 'sandbox.minimum',
            meaning: 'commands run under a backend that cannot hold all that is required by default',
          },
        ]
      : [];
  return [
    ...keys.flatMap(({ key, at, row: { weaker } }) =>
      weaker?.is(valueAt(policy, at)) === true ? [{ key, meaning: weaker.meaning }] : [],
    ),
    ...backend,
  ];
}
