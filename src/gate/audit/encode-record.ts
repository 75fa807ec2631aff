import { createHash } from 'node:crypto';
import { assertNever } from '../../base/assert-never.ts';
import { createRedactor, type Redactor } from '../../base/redact.ts';
import { visibleJson } from '../../base/visible-text.ts';
import { LOOKS_OUTSIDE } from '../../base/words.ts';
import type { EnforcementReport } from '../../confine/plan/enforcement-report.ts';
import type { AuditRecord, Decision, DecisionRecord, ResultRecord } from '../../model/index.ts';

/**
 * The members of a record's JSON object, without its braces: redacted, of bounded size, and safe to be shown by `cat`.
 */
export function encodeRecord(record: AuditRecord): string {
  return boundedJson(plain(record, createRedactor())).slice(1, -1);
}

function plain(record: AuditRecord, redactor: Redactor): object {
  switch (record.type) {
    case 'decision':
      return plainDecision(record, redactor);
    case 'result':
      return plainResult(record, redactor);
    case 'event':
      return {
        ...record,
        message: redactor.text(record.message),
        details: Object.fromEntries(
          Object.entries(record.details).map(([name, value]) => [
            name,
            typeof value === 'string' ? redactor.text(value) : value,
          ]),
        ),
      };
    default:
      return assertNever(record);
  }
}

function plainDecision(record: DecisionRecord, redactor: Redactor): object {
  // First, because it tells the redactor what the secrets are.
  const command =
    typeof record.command === 'string' ? redactor.text(record.command) : redactor.words(record.command);
  const { approval, files, flags } = record;
  return {
    type: record.type,
    request: record.request,
    principal: record.principal,
    session: record.session,
    job: record.job,
    outcome: record.outcome,
    command,
    cwd: redactor.text(record.cwd),
    ...plainVerdict(record.decision, redactor),
    approval:
      approval === undefined
        ? undefined
        : 'detail' in approval && approval.detail !== undefined
          ? { ...approval, detail: redactor.text(approval.detail) }
          : approval,
    profile: record.profile,
    backend: record.backend,
    report: plainReport(record.report),
    files:
      files === undefined
        ? undefined
        : { writes: files.writes.map(redactor.text), executes: files.executes.map(redactor.text) },
    flags: flags?.map(redactor.text),
  };
}

/** Every check with its verdict and code; its words only if it objects, or shows that a command looks outside. */
function plainVerdict(decision: Decision | undefined, redactor: Redactor): object {
  if (decision === undefined) return { verdict: null };
  const { verdict, risk, reach, reasons } = decision;
  const checks = reasons.map((reason) => ({
    check: reason.check,
    verdict: reason.verdict ?? null,
    code: reason.code,
    ...(reason.verdict === 'ask' || reason.verdict === 'deny' || reason.code === LOOKS_OUTSIDE
      ? { message: redactor.text(reason.message), words: redactor.words(reason.words) }
      : {}),
  }));
  return { verdict, risk, reach, checks };
}

/** The commands of a sandbox have one report. */
const plainReports = new WeakMap<EnforcementReport, object>();

/** Every control's state; the reason only of what is not enforced. */
function plainReport(report: EnforcementReport): object {
  const known = plainReports.get(report);
  if (known !== undefined) return known;
  const { landlockAbi, controls, passedOver } = report;
  const short = controls.filter(({ state }) => state !== 'enforced');
  const plain = {
    landlockAbi,
    ...(passedOver.length === 0 ? {} : { passedOver }),
    controls: Object.fromEntries(controls.map(({ id, state }) => [id, state])),
    reasons: Object.fromEntries(short.map(({ id, reason }) => [id, reason])),
  };
  plainReports.set(report, plain);
  return plain;
}

function plainResult(
  { leftBehind, connections, denials, ...record }: ResultRecord,
  redactor: Redactor,
): object {
  return {
    ...record,
    // A command chooses what it asks for.
    connections: connections?.map(({ askedFor, entry, ...one }) => ({
      ...one,
      host: redactor.text(one.host),
      ...(askedFor === undefined ? {} : { askedFor: redactor.text(askedFor) }),
      ...(entry === undefined ? {} : { entry: redactor.text(entry) }),
    })),
    denials: denials?.map(({ asked, allow: _, ...one }) => ({
      ...one,
      object: redactor.text(one.object),
      ...(asked === undefined ? {} : { asked: redactor.text(asked) }),
    })),
    leftBehind: leftBehind?.map((one) => ({
      ...one,
      path: redactor.text(one.path),
      ...(one.settings === undefined ? {} : { settings: one.settings.map(redactor.text) }),
    })),
  };
}

/** A line of the trail has at most about this many bytes. */
const LONGEST = 256 * 1024;
/** Tried in this order until it fits: characters of a text, items of a list or members of an object. */
const LIMITS = [
  [32_768, 1_000],
  [4_096, 200],
  [512, 60],
  [80, 20],
  [80, 4],
] as const;

const encode = (value: unknown) => visibleJson(JSON.stringify(value));

/**
 * A value as JSON of a bounded size, safe to be shown by `cat`. What is too long is cut, and says so: its size and the SHA-256 of the whole tell it
 * from others that begin alike.
 */
function boundedJson(value: unknown): string {
  const whole = encode(value);
  if (whole.length <= LONGEST / 6 || Buffer.byteLength(whole) <= LONGEST) return whole;
  for (const [characters, items] of LIMITS) {
    const json = encode(cut(value, characters, items));
    if (Buffer.byteLength(json) <= LONGEST) return json;
  }
  return JSON.stringify({ cut: mark('everything', whole) });
}

function cut(value: unknown, characters: number, items: number): unknown {
  if (typeof value === 'string') return cutText(value, characters);
  if (Array.isArray(value)) {
    const kept = value.slice(0, items).map((item) => cut(item, characters, items));
    return kept.length === value.length
      ? kept
      : [...kept, mark(`${value.length} items`, JSON.stringify(value))];
  }
  if (typeof value !== 'object' || value === null) return value;
  const members = Object.entries(value);
  const kept = members.slice(0, Math.max(items, 20)).map(([name, member]) => {
    return [cutText(name, characters), cut(member, characters, items)] as const;
  });
  return Object.fromEntries(kept);
}

function cutText(text: string, characters: number): string {
  if (text.length <= characters) return text;
  // Not between the halves of a surrogate pair.
  return `${text.slice(0, characters).replace(/[\ud800-\udbff]$/, '')}${mark(`${Buffer.byteLength(text)} bytes`, text)}`;
}

function mark(what: string, whole: string): string {
  return `… [cut: ${what}, SHA-256 ${createHash('sha256').update(whole).digest('hex')}]`;
}
