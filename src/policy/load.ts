import { constants } from 'node:fs';
import { type FileHandle, open } from 'node:fs/promises';
import { distance } from 'fastest-levenshtein';
import type { z } from 'zod';
import { errnoOf } from '../base/errno-of.ts';
import { SandboxError } from '../base/errors/sandbox-error.ts';
import { visibleLine } from '../base/visible-text.ts';
import { PLACED_KEYS, type PlacedKey, type PolicyFile } from '../model/index.ts';
import { type LayerName, type PolicyLayer, putAt, valueAt } from './layers.ts';

const MAX_WORKSPACE_FILE = 256 * 1024;
/** Far beyond what a person writes; what is larger would take long to check. */
const MAX_POLICY_FILE = 1024 * 1024;

/** Whose files are believed, by user id. Others could write themselves a policy. */
interface Trust {
  readonly owners: readonly number[];
  /** Permission bits that must not be set. */
  readonly forbidden: number;
}

/** Only root and the user may write. */
function operatorTrust(): Trust {
  return { owners: [0, process.getuid?.() ?? 0], forbidden: 0o022 };
}

/**
 * The layer of one file of the operator; `undefined` if it is missing and need not be there.
 * @throws {SandboxError} `policy.unreadable`, `policy.untrusted`, `policy.invalid` with file, line and key.
 */
export async function loadLayer(
  name: LayerName,
  path: string,
  options: { readonly required: boolean },
): Promise<PolicyLayer | undefined> {
  const text = await readText(path, operatorTrust()).catch((error: unknown) => {
    if (!options.required && isMissing(error)) return undefined;
    throw error;
  });
  return text === undefined ? undefined : { name, path, text, says: await parsePolicy(text, path) };
}

/** The workspace's file: what it takes away, and what it asks for. */
export interface WorkspaceFile {
  /** The restrictions of the workspace's file, which always hold. */
  readonly layer: PolicyLayer;
  /** The permissions that the file asks for, valid once a person has trusted it; `undefined`: none. Weaker than every file of the operator. */
  readonly wanted: PolicyLayer | undefined;
}

/**
 * Reads the workspace's file, if there is one. Besides root and the user, `workspaceOwner` may own it: by itself it cannot
 * give anything, and a workspace mounted into a container belongs to another user as a whole.
 */
export async function loadWorkspaceFile(
  path: string,
  workspaceOwner: number,
  { required = false }: { readonly required?: boolean } = {},
): Promise<WorkspaceFile | undefined> {
  const { owners } = operatorTrust();
  const trust: Trust = { owners: [...owners, workspaceOwner], forbidden: 0o002 };
  const text = await readText(path, trust, { untrustedPlace: true }).catch((error: unknown) => {
    if (!required && isMissing(error)) return undefined;
    throw error;
  });
  if (text === undefined) return undefined;
  const { projectFileSchema } = await import('../model/policy-file.ts');
  const says = await validate(text, path, projectFileSchema, WORKSPACE_HINT);
  const wanted = wantedBy(says);
  return {
    layer: { name: 'workspace', path, text, says: takenAwayBy(says) },
    wanted: wanted === undefined ? undefined : { name: 'trusted', path, text, says: wanted },
  };
}

/** A key with both columns is in both parts: a lower limit takes away, a higher one is asked for. Rules are told apart. */
function takenAwayBy(says: PolicyFile): PolicyFile {
  const part: Record<string, unknown> = {};
  for (const { place, row } of PLACED_KEYS) {
    const value = valueAt(says, place);
    if (value !== undefined && row.workspace !== undefined) putAt(part, place, value);
  }
  const rules = says.commands?.rules?.filter(({ verdict }) => verdict !== 'allow');
  if (rules !== undefined) putAt(part, ['commands', 'rules'], rules);
  return part;
}

function wantedBy(says: PolicyFile): PolicyFile | undefined {
  const part: Record<string, unknown> = {};
  for (const { place, row } of PLACED_KEYS) {
    const said = valueAt(says, place);
    if (said === undefined || row.trust === undefined) continue;
    const value =
      place.join('.') === 'commands.rules'
        ? says.commands?.rules?.filter(({ verdict }) => verdict === 'allow')
        : said;
    if (!Array.isArray(value) || value.length > 0) putAt(part, place, value);
  }
  return Object.keys(part).length === 0 ? undefined : part;
}

/** What messages about a policy file of a workspace say of such files. */
const WORKSPACE_HINT = 'a file in the workspace can only take away';

/** Parses policy text; `name` is what messages call it. Loads the TOML and schema libraries on first use. */
export async function parsePolicy(text: string, name: string): Promise<PolicyFile> {
  const { policyFileSchema } = await import('../model/policy-file.ts');
  return validate(text, name, policyFileSchema);
}

/**
 * Validates a policy that is an object already, as strictly as a file.
 * @throws {SandboxError} `policy.invalid` with the key.
 */
export async function checkPolicy(policy: unknown): Promise<PolicyFile> {
  const { policyFileSchema } = await import('../model/policy-file.ts');
  return validated(policy, policyFileSchema, 'the policy object');
}

/**
 * Validates what a submitter takes away from a policy, an object, as a file in the workspace is validated.
 * @throws {SandboxError} `policy.invalid` with the key.
 */
export async function checkNarrowingPolicy(policy: unknown): Promise<PolicyFile> {
  const { workspaceFileSchema } = await import('../model/policy-file.ts');
  return validated(policy, workspaceFileSchema, `what narrows the policy (${WORKSPACE_HINT})`);
}

async function validated(policy: unknown, schema: z.ZodType<PolicyFile>, name: string): Promise<PolicyFile> {
  const result = schema.safeParse(policy);
  const found = result.success ? await entryProblems(result.data) : result.error.issues.flatMap(problemsOf);
  if (result.success && found.length === 0) return result.data;
  const problems = found.map(({ place, message }) => `${shownPlace(place) || 'it'}: ${message}`);
  throw new SandboxError('policy.invalid', `${name}: ${problems.join('; ')}`);
}

async function validate(
  text: string,
  name: string,
  schema: z.ZodType<PolicyFile>,
  hint?: string,
): Promise<PolicyFile> {
  const { parse, TomlError } = await import('smol-toml');
  let data: unknown;
  try {
    data = parse(text);
  } catch (error) {
    if (!(error instanceof TomlError)) throw error;
    const reason = error.message.split('\n')[0]?.replace(/^Invalid TOML document: /, '');
    throw new SandboxError('policy.invalid', `${name}:${error.line}:${error.column}: ${reason}`);
  }
  const result = schema.safeParse(data);
  const found = result.success ? await entryProblems(result.data) : result.error.issues.flatMap(problemsOf);
  if (result.success && found.length === 0) return result.data;
  const { locateKey } = await import('./locate-key.ts');
  const problems = found.map(({ place, message }, index) => {
    const line = locateKey(text, place);
    const where = line === undefined ? '' : index === 0 ? `${line}:` : `line ${line}:`;
    return `${where} ${shownPlace(place)}: ${message}`.trimStart();
  });
  const note = hint === undefined ? '' : ` (${hint})`;
  const list = problems.join('; ');
  throw new SandboxError('policy.invalid', `${name}:${/^\d/.test(list) ? '' : ' '}${list}${note}`);
}

/** The most characters of a key that a message repeats. */
const KEY_CHARACTERS = 80;

interface Problem {
  readonly place: readonly (string | number)[];
  readonly message: string;
}

/** The author of the file wrote the key: text that is not a plain word is quoted, so that it cannot read as our message. */
function shownPlace(place: Problem['place']): string {
  const shown = (part: string) =>
    /^[\w-]{1,64}$/.test(part) ? part : JSON.stringify(visibleLine(part, KEY_CHARACTERS));
  return place.map((part) => shown(String(part))).join('.');
}

/** What is wrong with entries of the network: their library is loaded only if there are any. */
async function entryProblems({ network }: PolicyFile): Promise<readonly Problem[]> {
  if (network?.allow === undefined && network?.deny === undefined) return [];
  const { problemOfEntry } = await import('./network/read-rules.ts');
  return (['allow', 'deny'] as const).flatMap((kind) =>
    (network[kind] ?? []).flatMap((entry, index) => {
      const message = problemOfEntry(entry, kind);
      return message === undefined ? [] : [{ place: ['network', kind, index], message }];
    }),
  );
}

function problemsOf(issue: z.core.$ZodIssue): readonly Problem[] {
  const place = issue.path.map((part) => (typeof part === 'number' ? part : String(part)));
  if (issue.code === 'unrecognized_keys')
    return issue.keys.map((key) => ({ place: [...place, key], message: unknownKey([...place, key]) }));
  // The name of a table, such as that of a service.
  if (issue.code === 'invalid_key') return [{ place, message: issue.issues[0]?.message ?? issue.message }];
  const example = issue.code === 'invalid_type' ? exampleOf(place) : undefined;
  return [
    { place, message: example === undefined ? issue.message : `${issue.message}; for example ${example}` },
  ];
}

const NO_SUCH_KEY = 'there is no such key here';

/** Of the letters of a key, how many may be wrong for it to be taken for another. */
const ALIKE = 0.5;

/** The key that was perhaps meant: of the same table, or of the same name in another one. */
function unknownKey(place: Problem['place']): string {
  const key = place.join('.');
  // Of the operator, and not of a workspace.
  if (PLACED_KEYS.some((known) => known.key === key)) return NO_SUCH_KEY;
  const name = String(place.at(-1));
  const near = ({ key: known, place: there }: PlacedKey): number => {
    const own = String(there.at(-1));
    const inTable = known.slice(0, -own.length) === key.slice(0, -name.length);
    const isBeginning = own.startsWith(`${name}_`);
    const wrong = isBeginning ? 0 : distance(name, own) / Math.max(name.length, own.length);
    return inTable ? wrong : wrong + 0.3;
  };
  const [best] = PLACED_KEYS.map((known) => ({ known, wrong: near(known) })).sort(
    (a, b) => a.wrong - b.wrong,
  );
  if (best === undefined || best.wrong > ALIKE) return NO_SUCH_KEY;
  const sameTable = best.known.place.slice(0, -1).join('.') === place.slice(0, -1).join('.');
  const meant = sameTable ? String(best.known.place.at(-1)) : best.known.key;
  return `${NO_SUCH_KEY}: did you mean ${meant}?`;
}

/** What would be right at a place, in TOML. */
function exampleOf(place: Problem['place']): string | undefined {
  const key = place.join('.');
  const row = PLACED_KEYS.find((known) => known.key === key);
  if (row !== undefined) return `${row.place.at(-1)} = ${row.row.example}`;
  const ofTable = PLACED_KEYS.find((known) => known.place.length > 1 && known.place[0] === key);
  return ofTable && `[${key}] ${ofTable.place.at(-1)} = ${ofTable.row.example}`;
}

async function readText(
  path: string,
  trust: Trust,
  { untrustedPlace = false }: { readonly untrustedPlace?: boolean } = {},
): Promise<string> {
  // In a place that others write, a link could lead anywhere and a pipe would never end.
  const flags = untrustedPlace ? constants.O_NOFOLLOW | constants.O_NONBLOCK : 0;
  let file: FileHandle | undefined;
  try {
    file = await open(path, constants.O_RDONLY | flags);
    // Of what was opened, not of the name: nothing can be put in its place in between.
    const info = await file.stat();
    if (untrustedPlace && (!info.isFile() || info.size > MAX_WORKSPACE_FILE))
      throw new SandboxError(
        'policy.untrusted',
        `${path} is not a file of at most ${MAX_WORKSPACE_FILE} bytes`,
      );
    if (info.size > MAX_POLICY_FILE)
      throw new SandboxError('policy.invalid', `${path} is larger than ${MAX_POLICY_FILE} bytes`);
    // What is written to a device does not change what is read from it (/dev/null).
    if (info.isFile() || info.isFIFO()) refuseForeign(path, info, trust);
    return await file.readFile('utf8');
  } catch (error) {
    if (error instanceof SandboxError) throw error;
    const code = errnoOf(error) ?? String(error);
    throw new SandboxError('policy.unreadable', `cannot read the policy ${path} (${code})`, { cause: error });
  } finally {
    await file?.close();
  }
}

function refuseForeign(
  path: string,
  info: { readonly uid: number; readonly mode: number },
  trust: Trust,
): void {
  if (!trust.owners.includes(info.uid))
    throw new SandboxError(
      'policy.untrusted',
      `the policy ${path} belongs to user ${info.uid}; it must belong to root or to you`,
    );
  if ((info.mode & trust.forbidden) !== 0)
    throw new SandboxError(
      'policy.untrusted',
      `others can write the policy ${path} (mode ${(info.mode & 0o777).toString(8)}); chmod go-w it`,
    );
}

function isMissing(error: unknown): boolean {
  const cause = error instanceof SandboxError ? error.cause : undefined;
  return ['ENOENT', 'ENOTDIR'].includes(errnoOf(cause) ?? '');
}
