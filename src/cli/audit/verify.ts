import { SandboxError } from '../../base/errors/sandbox-error.ts';
import { visibleText } from '../../base/visible-text.ts';
import { loadAddon } from '../../confine/native/load.ts';
import { openAudit, type Trail, verifyStream, verifyTrail } from '../../gate/index.ts';
import type { StreamVerification, Verification } from '../../model/index.ts';
import { auditDirectory, defaultPrincipal } from '../../run/index.ts';
import { ensureStateDirectory } from '../../workspace/index.ts';
import { jsonText, printOut, startProgress } from '../shared/print.ts';
import { hasOwnTrail, signingKey, withFleetStream, withTrail } from './records.ts';

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
    ...{ key: await signingKey(key), complete },
    onProgress: (read: number, of: number) => progress.show(`${read} of ${of} entries`),
  };
  const verifyWith = (own?: Trail) =>
    withFleetStream(async (stream) => {
      try {
        return await verifyStream(stream, { ...options, own });
      } finally {
        progress.clear();
      }
    });
  const found = hasOwnTrail() ? await withTrail(verifyWith, key) : await verifyWith();
  const ok = found.problemCount === 0;
  printOut(json === true ? jsonText({ ok, ...found }) : describeFleet(found));
  return ok ? 0 : 1;
}

async function verifyOwn({ key, anchor, complete, json }: VerifyOptions): Promise<number> {
  const progress = startProgress();
  const options = {
    key: await signingKey(key),
    anchor: anchor === undefined ? undefined : parseAnchor(anchor),
    complete,
    onProgress: (done: number, of: number) => progress.show(`${done} of ${of} records`),
  };
  const found = await withTrail((trail) => verifyTrail(trail, options), key);
  progress.clear();
  const ok = found.problemCount === 0;
  printOut(json === true ? jsonText({ ok, ...found }) : describe(found));
  return ok ? 0 : 1;
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
  const { problems, problemCount, records, first, last, signed, remarks } = found;
  const lines = problems.slice(0, MOST_SHOWN).map(({ kind, message }) => `${kind}: ${message}`);
  if (problemCount > MOST_SHOWN) lines.push(`… and ${problemCount - MOST_SHOWN} more`);
  lines.push(...remarks);
  const what = `${records} records`;
  lines.push(
    problemCount === 0
      ? `verified: ${what}`
      : `BROKEN: ${problemCount} ${problemCount === 1 ? 'problem' : 'problems'} in ${what}`,
  );
  if (signed !== undefined)
    lines.push(`signed with the key: ${signed.records} records, since record ${signed.since ?? '-'}`);
  if (first !== undefined && last !== undefined)
    lines.push(`first: ${first}`, `last: ${last.seq}:${last.hash}`);
  return lines.map((line) => `${visibleText(line)}\n`).join('');
}

/** Goes on after a break at the end of the trail; 1 if there is none. */
export async function acknowledge({ key }: { readonly key?: string }): Promise<number> {
  const trail = openAudit(ensureStateDirectory(auditDirectory()), {
    lock: loadAddon(),
    hmacKey: await signingKey(key),
  });
  try {
    const record = await trail.acknowledge(defaultPrincipal());
    if (record === undefined) {
      printOut('nothing to acknowledge: the end of the trail is whole\n');
      return 1;
    }
    printOut(`${visibleText(record.message)}\n`);
    return 0;
  } finally {
    await trail.close();
  }
}
