import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll } from 'vitest';
import { loadAddon } from '../../../../src/confine/native/load.ts';
import { type AuditOptions, type AuditTrail, openAudit } from '../../../../src/gate/audit/open-audit.ts';
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

export function verify(directory: string, options: Parameters<typeof verifyTrail>[1] = {}): Verification {
  return verifyTrail(directory, options);
}

/** Kinds and numbers of the problems of a trail. */
export function problemsOf(
  directory: string,
  options: Parameters<typeof verifyTrail>[1] = {},
): readonly string[] {
  return verify(directory, options).problems.map(({ kind, seq }) =>
    seq === undefined ? kind : `${kind} ${seq}`,
  );
}

export function filesOf(directory: string): readonly string[] {
  return readdirSync(directory).filter((name) => name.endsWith('.jsonl'));
}

/** The lines of the only file, with their line breaks. */
export function linesOf(directory: string, name = onlyFile(directory)): string[] {
  return readFileSync(join(directory, name), 'utf8').split(/(?<=\n)/);
}

export function replaceLines(directory: string, lines: readonly string[], name = onlyFile(directory)): void {
  writeFileSync(join(directory, name), lines.join(''));
}

/** All records, parsed. */
export function recordsOf(directory: string): readonly Record<string, unknown>[] {
  return filesOf(directory)
    .toSorted()
    .flatMap((name) => linesOf(directory, name))
    .map((line) => JSON.parse(line));
}

function onlyFile(directory: string): string {
  const [name, ...others] = filesOf(directory);
  if (name === undefined || others.length > 0) throw new Error('there is not exactly one file');
  return name;
}

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
