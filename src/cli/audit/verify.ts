import { SandboxError } from '../../base/errors/sandbox-error.ts';
import { visibleText } from '../../base/visible-text.ts';
import { loadAddon } from '../../confine/native/load.ts';
import { openAudit, verifyStream, verifyTrail } from '../../gate/index.ts';
import type { StreamVerification, Verification } from '../../model/index.ts';
import { defaultPrincipal, operatorPolicy } from '../../run/index.ts';
import { ensureStateDirectory, loadAuditKey } from '../../workspace/index.ts';
import { jsonText, printOut, startProgress } from '../shared/print.ts';
import { reading, trailDirectory, withFleetStream } from './records.ts';

/** So many are shown to people. */
const MOST_SHOWN = 50;

/** Options of `audit verify`. */
export interface VerifyOptions {
  readonly key?: string;
  readonly anchor?: string;
  readonly complete?: boolean;
  readonly fleet?: boolean;
  readonly json?: boolean;
}

/** Prints what is wrong with the trail, or the trails of a fleet; 1 if anything is. */
export async function verify(given: VerifyOptions): Promise<number> {
  return given.fleet === true ? verifyFleet(given) : verifyOwn(given);
}

/** Every trail in the stream, and what this machine knows of its own. */
async function verifyFleet({ key, anchor, complete, json }: VerifyOptions): Promise<number> {
  if (anchor !== undefined)
    throw new SandboxError('usage.invalid', '--anchor is for the trail of this machine, without --fleet');
  const progress = startProgress();
  const options = {
    ...{ key: await signingKey(key), complete, directory: ownTrail() },
    onProgress: (read: number, of: number) => progress.show(`${read} of ${of} entries`),
  };
  const found = await withFleetStream(async (stream) => {
    try {
      return await verifyStream(stream, options);
    } finally {
      progress.clear();
    }
  });
  const ok = found.problemCount === 0;
  printOut(json === true ? jsonText({ ok, ...found }) : describeFleet(found));
  return ok ? 0 : 1;
}

/** The directory of this machine's trail; `undefined`: there is none. */
function ownTrail(): string | undefined {
  try {
    return trailDirectory();
  } catch (error) {
    if (error instanceof SandboxError && error.code === 'audit.unreadable') return undefined;
    throw error;
  }
}

async function verifyOwn({ key, anchor, complete, json }: VerifyOptions): Promise<number> {
  const progress = startProgress();
  const options = {
    key: await signingKey(key),
    anchor: anchor === undefined ? undefined : parseAnchor(anchor),
    complete,
    onFile: (name: string, done: number, of: number) => progress.show(`${name}, ${done} of ${of} files`),
  };
  const directory = trailDirectory();
  const found = reading(() => {
    try {
      return verifyTrail(directory, options);
    } finally {
      progress.clear();
    }
  });
  const ok = found.problemCount === 0;
  printOut(json === true ? jsonText({ ok, ...found }) : describe(found));
  return ok ? 0 : 1;
}

/** The key that is named, or that of the policy: without it a trail that was made anew looks right. */
async function signingKey(named: string | undefined): Promise<Uint8Array | undefined> {
  const path = named ?? (await operatorPolicy()).audit.hmacKeyFile;
  return path === undefined ? undefined : loadAuditKey(path);
}

function parseAnchor(text: string): { readonly seq: number; readonly hash: string } {
  const [, seq, hash] = /^([1-9]\d{0,15}):([0-9a-f]{64})$/.exec(text) ?? [];
  if (hash === undefined)
    throw new SandboxError('usage.invalid', '--anchor takes NUMBER:HASH as verify prints them');
  return { seq: Number(seq), hash };
}

function describeFleet({ problems, problemCount, trails, records, remarks }: StreamVerification): string {
  const lines = trails.flatMap((one) => [
    ...one.problems.slice(0, MOST_SHOWN).map(({ kind, message }) => `${one.trail}: ${kind}: ${message}`),
    ...one.remarks.map((remark) => `${one.trail}: ${remark}`),
    `${one.trail}: ${one.records} records${one.first === undefined ? '' : `, first: ${one.first}`}${one.last === undefined ? '' : `, last: ${one.last.seq}:${one.last.hash}`}${one.signed === undefined ? '' : `, signed: ${one.signed.records}`}`,
  ]);
  lines.unshift(...problems.slice(0, MOST_SHOWN).map(({ kind, message }) => `${kind}: ${message}`));
  lines.push(...remarks);
  const what = `${records} records of ${trails.length} trails`;
  lines.push(
    problemCount === 0
      ? `verified: ${what}`
      : `BROKEN: ${problemCount} ${problemCount === 1 ? 'problem' : 'problems'} in ${what}`,
  );
  return lines.map((line) => `${visibleText(line)}\n`).join('');
}

function describe(found: Verification): string {
  const { problems, problemCount, records, files, first, last, signed, remarks } = found;
  const lines = problems.slice(0, MOST_SHOWN).map(({ kind, message, file, line }) => {
    const where = file === undefined ? '' : `${file}${line === undefined ? '' : `:${line}`}: `;
    return `${where}${kind}: ${message}`;
  });
  if (problemCount > MOST_SHOWN) lines.push(`… and ${problemCount - MOST_SHOWN} more`);
  lines.push(...remarks);
  const what = `${records} records in ${files} files`;
  lines.push(
    problemCount === 0
      ? `verified: ${what}`
      : `BROKEN: ${problemCount} ${problemCount === 1 ? 'problem' : 'problems'} in ${what}`,
  );
  if (signed !== undefined)
    lines.push(`signed with the key: ${signed.records} records, since record ${signed.since ?? '-'}`);
  if (first !== undefined && last !== undefined)
    lines.push(`first: ${first.seq}`, `last: ${last.seq}:${last.hash}`);
  return lines.map((line) => `${visibleText(line)}\n`).join('');
}

/** Goes on after a break at the end of the trail; 1 if there is none. */
export async function acknowledge({ key }: { readonly key?: string }): Promise<number> {
  const directory = ensureStateDirectory(trailDirectory());
  const trail = openAudit(directory, { lock: loadAddon(), hmacKey: await signingKey(key) });
  try {
    const record = await trail.acknowledge(defaultPrincipal());
    if (record === undefined) {
      printOut('nothing to acknowledge: the end of the trail is whole\n');
      return 1;
    }
    const { kept } = record.details;
    const torn = kept === '' ? '' : `; what was torn is in ${directory}/${kept}`;
    printOut(`${visibleText(`${record.message}${torn}`)}\n`);
    return 0;
  } finally {
    await trail.close();
  }
}
