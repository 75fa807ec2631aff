import type { EventRecord } from '../../model/audit-record.ts';
import { commandText, isObject, objectsOf, type StoredRecord, textOf, textsOf } from '../stored-record.ts';
import { type ObservedDecision, PATTERNS } from './all-patterns.ts';

/** How long a command is remembered. */
export const REMEMBERED_MS = 10 * 60_000;
/** How many of one session, and of how many sessions. */
const MOST_COMMANDS = 200;
const MOST_SESSIONS = 500;

interface Memory {
  readonly decisions: ObservedDecision[];
  /** When which event was raised. */
  readonly raised: Map<string, number>;
}

/** Recognizes patterns in the records of a trail, which it is shown in their order. */
export class Recognizer {
  private readonly memories = new Map<string, Memory>();

  /** `own`: the record was written by this process, which is then the one to raise events about it. */
  show(record: StoredRecord, own: boolean): readonly EventRecord[] {
    if (record.type === 'event') {
      const about = isObject(record.fields.details) ? textOf(record.fields.details, 'about') : undefined;
      if (about !== undefined)
        this.memoryOf(record).raised.set(`${textOf(record.fields, 'code')} ${about}`, record.at);
      return [];
    }
    if (record.type !== 'decision') return [];
    const { decisions, raised } = this.memoryOf(record);
    const since = record.at - REMEMBERED_MS;
    const forgotten = decisions.findIndex(({ at }) => at >= since);
    decisions.splice(0, forgotten === -1 ? decisions.length : forgotten);
    for (const [key, at] of raised) if (at < since) raised.delete(key);
    const latest = observe(record);
    const events = own ? find(latest, decisions, raised, record) : [];
    if (isRemembered(latest)) decisions.push(latest);
    if (decisions.length > MOST_COMMANDS) decisions.shift();
    return events;
  }

  private memoryOf({ fields }: StoredRecord): Memory {
    const { memories } = this;
    const principal = textOf(fields, 'principal') ?? '';
    const session = textOf(fields, 'session');
    const key = JSON.stringify(session === undefined ? [principal] : [principal, session]);
    const memory = memories.get(key) ?? { decisions: [], raised: new Map() };
    // Moves it to the end: the one that was used longest ago is forgotten first.
    memories.delete(key);
    memories.set(key, memory);
    const [oldest] = memories.keys();
    if (memories.size > MOST_SESSIONS && oldest !== undefined) memories.delete(oldest);
    return memory;
  }
}

/** Of what was launched, only the files that it wrote matter later. */
function isRemembered({ launched, writes }: ObservedDecision): boolean {
  return !launched || writes.length > 0;
}

function find(
  latest: ObservedDecision,
  earlier: readonly ObservedDecision[],
  raised: Map<string, number>,
  { fields }: StoredRecord,
): readonly EventRecord[] {
  const events: EventRecord[] = [];
  for (const { code, find: findIn } of PATTERNS) {
    for (const { about, message, details } of findIn(latest, earlier)) {
      const key = `${code} ${about}`;
      if (raised.has(key)) continue;
      raised.set(key, latest.at);
      const principal = textOf(fields, 'principal') ?? '';
      const session = textOf(fields, 'session');
      events.push({ type: 'event', code, principal, session, message, details: { about, ...details } });
    }
  }
  return events;
}

/** What says that the policy or a person was against it; not that a program is missing, or that the caller gave up. */
const REFUSALS = new Set(['command.denied', 'command.needs_approval', 'approval.void']);

function wasAsked(fields: StoredRecord['fields'], outcome: string): boolean {
  const { approval, verdict } = fields;
  if (isObject(approval) && approval.reason !== 'nobody') return true;
  return verdict === 'ask' && outcome === 'command.needs_approval';
}

/** Words for which the check of paths refused a command, or asked. */
function refusedPaths(fields: StoredRecord['fields']): readonly string[] {
  return objectsOf(fields, 'checks')
    .filter(({ check, verdict }) => check === 'paths' && (verdict === 'deny' || verdict === 'ask'))
    .filter(({ code }) => /^(?:may_)?escapes?_/.test(String(code)))
    .flatMap((check) => textsOf(check, 'words'));
}

function observe(record: StoredRecord): ObservedDecision {
  const { seq, at, fields } = record;
  const outcome = textOf(fields, 'outcome') ?? '';
  const asked = wasAsked(fields, outcome);
  const launched = outcome === 'launch' || outcome === 'allow';
  const files = isObject(fields.files) ? fields.files : {};
  return {
    seq,
    at,
    request: textOf(fields, 'request') ?? '',
    words: asked ? commandWords(commandText(record)) : new Set(),
    asked,
    refused: REFUSALS.has(outcome),
    launched,
    escapes: launched ? [] : refusedPaths(fields),
    writes: textsOf(files, 'writes'),
    executes: textsOf(files, 'executes'),
  };
}

/** Words that do not change what is done, but that an agent adds when it tries again. */
const AROUND = new Set([
  'sudo',
  'env',
  'command',
  'exec',
  'nohup',
  'nice',
  'time',
  'sh',
  'bash',
  'dash',
  '-c',
  '-lc',
  '--',
]);
const MOST_WORDS = 200;

/** The words that make a command what it is: without quotes, directories of programs and spellings of options. */
function commandWords(command: string): ReadonlySet<string> {
  const words = command
    .slice(0, 4096)
    .split(/[\s;|&()<>{}'"`\\]+/)
    .filter((word) => word !== '' && !AROUND.has(word))
    .slice(0, MOST_WORDS)
    .map((word) => word.replace(/^(?:\.\/)+|^\/(?:usr\/)?(?:local\/)?s?bin\//, ''))
    // -rf, -r -f and -fr
    .flatMap((word) =>
      /^-[A-Za-z]{2,4}$/.test(word) ? [...word.slice(1)].map((letter) => `-${letter}`) : [word],
    )
    .filter((word) => word !== '' && !AROUND.has(word));
  return new Set(words);
}
