import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from '@photostructure/sqlite';
import { afterAll } from 'vitest';
import { loadAddon } from '../../../../src/confine/native/load.ts';
import { type AuditOptions, type AuditTrail, openAudit } from '../../../../src/gate/audit/open-audit.ts';
import { openTrail, trailPath } from '../../../../src/gate/audit/trail.ts';
import { verifyTrail } from '../../../../src/gate/audit/verify.ts';
import type { DecisionRecord, EventRecord, ResultRecord, Verification } from '../../../../src/model/index.ts';
import { decision } from './records.ts';

export { decision, reason, result } from './records.ts';

const roots: string[] = [];

afterAll(() => {
  for (const root of roots) rmSync(root, { recursive: true, force: true });
});

/** An empty directory of the test file. */
export function makeRoot(): string {
  const root = mkdtempSync(join(tmpdir(), 'sandbox-run-audit-test-'));
  roots.push(root);
  return root;
}

/** A directory for a trail. */
export function makeDirectory(): string {
  const directory = join(makeRoot(), 'audit');
  mkdirSync(directory, { mode: 0o700 });
  return directory;
}

export function open(directory: string, options: Partial<AuditOptions> = {}): AuditTrail {
  return openAudit(directory, { lock: loadAddon(), ...options });
}

/** Appends records one after the other, from a process that then ends. */
export async function write(
  directory: string,
  records: readonly (DecisionRecord | ResultRecord | EventRecord)[],
  options: Partial<AuditOptions> = {},
): Promise<void> {
  const trail = open(directory, options);
  for (const record of records) await trail.append(record);
  await trail.close();
}

/** Acknowledges a break, as the command line does. */
export async function acknowledge(directory: string, options: Partial<AuditOptions> = {}) {
  const trail = open(directory, options);
  const record = await trail.acknowledge('uid:0');
  await trail.close();
  return record;
}

export function decisions(count: number, prefix = 'r'): readonly DecisionRecord[] {
  return Array.from({ length: count }, (_, index) => decision(`${prefix}${index + 1}`));
}

type VerifyOptions = Parameters<typeof verifyTrail>[1];

export async function verify(directory: string, options: VerifyOptions = {}): Promise<Verification> {
  const trail = await openTrail(directory, { lock: loadAddon(), key: options.key });
  try {
    return verifyTrail(trail, options);
  } finally {
    trail.close();
  }
}

/** Kinds and numbers of the problems of a trail. */
export async function problemsOf(directory: string, options: VerifyOptions = {}): Promise<readonly string[]> {
  return (await verify(directory, options)).problems.map(({ kind, seq }) =>
    seq === undefined ? kind : `${kind} ${seq}`,
  );
}

/** Runs a statement on the database of a trail, as somebody does who may write it; its rows. */
export function sql(directory: string, text: string, ...values: readonly (string | number | null)[]) {
  const database = new DatabaseSync(trailPath(directory));
  try {
    return database.prepare(text).all(...values) as readonly Readonly<Record<string, unknown>>[];
  } finally {
    database.close();
  }
}

export const linesOf = (directory: string): readonly string[] =>
  sql(directory, 'SELECT line FROM trail ORDER BY seq').map(({ line }) => String(line));

/** All records, parsed. */
export const recordsOf = (directory: string): readonly Record<string, unknown>[] =>
  linesOf(directory).map((line) => JSON.parse(line));

/** A clock that is set by hand. */
export function handClock(text: string) {
  let time = Date.parse(text);
  return {
    now: () => time,
    set: (to: string) => {
      time = Date.parse(to);
    },
  };
}
