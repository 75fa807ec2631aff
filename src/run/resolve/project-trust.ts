import { createHash } from 'node:crypto';
import { lstatSync, readdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import { errnoOf } from '../../base/errno-of.ts';
import { isObject } from '../../base/is-object.ts';
import { parsedJson } from '../../base/parsed-json.ts';
import { PLACED_KEYS, TRUST_RISKS } from '../../model/index.ts';
import { type Entry, effectivePolicy, type PolicyLayer } from '../../policy/index.ts';
import {
  type Environment,
  ensureStateDirectory,
  identityOf,
  readRegular,
  replaceAt,
} from '../../workspace/index.ts';
import { holdsSecretAt, LOOKS_SECRET, type Places, whyNotByPath } from '../proposals.ts';
import { stateDirectory } from '../state.ts';
import { realPath } from './own-program.ts';

/** One thing that the workspace's file asks for and the policy without it does not give. */
export interface Widening {
  readonly key: string;
  readonly value: unknown;
  readonly risk: (typeof TRUST_RISKS)[number];
  /** What commands can do then, as a sentence. */
  readonly opens: string;
}

/** The workspace's file as far as it asks for something. */
export interface Project {
  readonly workspace: string;
  readonly layer: PolicyLayer;
  /** Of the text that `layer` was parsed from. */
  readonly sha256: string;
  /** Which directory the workspace is. */
  readonly identity: string;
  /** Worst first. */
  readonly widenings: readonly Widening[];
  readonly standing: 'trusted' | 'changed' | 'untrusted';
  /** The text that was trusted, if the file has another one now. */
  readonly before: string | undefined;
}

/** What a person trusted, as it is stored. */
interface TrustRecord {
  readonly workspace: string;
  readonly identity: string;
  readonly sha256: string;
  readonly text: string;
  /** ISO 8601. */
  readonly at: string;
}

/** The text of a file may double in JSON, and is at most 256 KiB. */
const LARGEST_RECORD = 4 * 1024 * 1024;

const hashOf = (text: string) => createHash('sha256').update(text).digest('hex');

/** Where it is kept which files of workspaces a person trusts; it need not be there. */
export const trustDirectory = (): string => join(stateDirectory(), 'trust');

/** A path has one record, whichever directory is there: a new decision replaces the old one. */
const recordPath = (workspace: string) => join(trustDirectory(), `${hashOf(workspace)}.json`);

/**
 * Compares what the workspace's file asks for with the policy without it, and with what was trusted. The hash is that of the
 * text that was parsed: the file is not read again, so nothing can be put in its place in between.
 * @throws {SandboxError} `state.untrusted` if others can write the records.
 */
export function lookAtProject(
  layer: PolicyLayer,
  others: readonly PolicyLayer[],
  place: Parameters<typeof effectivePolicy>[1],
  env: Environment,
): Project {
  const { workspace, home } = place;
  const text = layer.text ?? '';
  const sha256 = hashOf(text);
  const identity = identityOf(workspace) ?? '';
  const record = readRecord(recordPath(workspace));
  const isOfWorkspace = record?.workspace === workspace && record.identity === identity && identity !== '';
  const isTrusted = isOfWorkspace && record.sha256 === sha256 && record.text === text;
  const without = effectivePolicy(others, place).entries;
  const added = effectivePolicy([layer, ...others], place).entries.filter(
    (entry) => !without.some((other) => isSameEntry(entry, other)),
  );
  return {
    ...{ workspace, layer, sha256, identity },
    widenings: added
      .flatMap((entry) => wideningOf(entry, { home, workspace, secret: [], env }))
      .sort((one, two) => rank(one) - rank(two)),
    standing: isTrusted ? 'trusted' : isOfWorkspace ? 'changed' : 'untrusted',
    before: isOfWorkspace && !isTrusted ? record.text : undefined,
  };
}

const rank = ({ risk }: Widening) => TRUST_RISKS.indexOf(risk);

const isSameEntry = (one: Entry, other: Entry) =>
  one.key === other.key && isDeepStrictEqual(one.value, other.value);

function wideningOf({ key, value }: Entry, places: Places): readonly Widening[] {
  const row = PLACED_KEYS.find((placed) => key === placed.key || key.startsWith(`${placed.key}.`))?.row;
  if (row?.trust === undefined) return [];
  const { risk, opens } = row.trust;
  const why =
    row.paths === true && typeof value === 'string' ? whyNeverProposed(value, places, key) : undefined;
  return [
    { key, value, ...(why === undefined ? { risk, opens } : { risk: 'high', opens: `${opens} (${why})` }) },
  ];
}

/** Why nothing would propose to open a path; `undefined`: it is an ordinary one. Large directories are not looked through: each start asks. */
function whyNeverProposed(path: string, places: Places, list: string): string | undefined {
  const real = realPath(path);
  const [why] = [path, real].flatMap((one) => whyNotByPath(one, places, list) ?? []);
  return why ?? (holdsSecretAt(real) ? LOOKS_SECRET : undefined);
}

/** What each start says of a file that asks for something and is not trusted as it is. */
export function remarksOn({ standing, widenings, before, layer }: Project): readonly string[] {
  if (standing === 'trusted' || widenings.length === 0) return [];
  const count = widenings.length === 1 ? '1 thing' : `${widenings.length} things`;
  const since =
    before === undefined
      ? 'was not trusted'
      : `changed since it was trusted (${sizeOf(before, layer.text ?? '')})`;
  return [
    `.sandbox-run.toml ${since}: ${count} that it asks for do not hold. The user can look and decide: sandbox-run trust`,
  ];
}

/** The size of a difference: lines that only one of two texts has. */
function sizeOf(before: string, after: string): string {
  const missing = (text: string, from: string) => {
    const left = new Map<string, number>();
    for (const line of from.split('\n')) left.set(line, (left.get(line) ?? 0) + 1);
    return text.split('\n').filter((line) => {
      const count = left.get(line) ?? 0;
      left.set(line, count - 1);
      return count <= 0;
    }).length;
  };
  return `+${missing(after, before)} -${missing(before, after)} lines`;
}

/** Trusts a project as it was looked at: what is in its file by now is not looked at again. */
export function trustProject({ workspace, identity, sha256, layer }: Project): void {
  ensureStateDirectory(stateDirectory());
  ensureStateDirectory(trustDirectory());
  const record: TrustRecord = {
    ...{ workspace, identity, sha256, text: layer.text ?? '' },
    at: new Date().toISOString(),
  };
  const path = recordPath(workspace);
  replaceAt({ at: path, path }, `${JSON.stringify(record)}\n`, { mode: 0o600 });
}

/** Forgets what was trusted in a workspace; false: nothing was. */
export function untrustProject(workspace: string): boolean {
  const path = recordPath(workspace);
  const isThere = lstatSync(path, { throwIfNoEntry: false }) !== undefined;
  if (isThere) rmSync(path);
  return isThere;
}

/** The policy files of workspaces that this user has trusted. */
export function trustedProjects(): readonly Pick<TrustRecord, 'workspace' | 'sha256' | 'at'>[] {
  return recordNames()
    .flatMap((name) => readRecord(join(trustDirectory(), name)) ?? [])
    .map(({ workspace, sha256, at }) => ({ workspace, sha256, at }))
    .sort((one, two) => (one.workspace < two.workspace ? -1 : 1));
}

function recordNames(): readonly string[] {
  try {
    return readdirSync(trustDirectory()).filter((name) => /^[0-9a-f]{64}\.json$/.test(name));
  } catch (error) {
    if (errnoOf(error) === 'ENOENT') return [];
    throw error;
  }
}

/** A record that is damaged trusts nothing. */
function readRecord(path: string): TrustRecord | undefined {
  if (lstatSync(path, { throwIfNoEntry: false }) === undefined) return undefined;
  // Whoever can write here could trust in the user's place.
  ensureStateDirectory(stateDirectory());
  ensureStateDirectory(trustDirectory());
  const content = readRegular(path, LARGEST_RECORD);
  const value = content === undefined ? undefined : parsedJson(content);
  if (!isObject(value)) return undefined;
  const { workspace, identity, sha256, text, at } = value;
  const isWhole = [workspace, identity, sha256, text, at].every((part) => typeof part === 'string');
  // All fields were just checked to be strings.
  return isWhole ? (value as unknown as TrustRecord) : undefined;
}
