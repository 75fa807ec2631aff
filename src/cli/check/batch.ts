import { isUtf8 } from 'node:buffer';
import { isAbsolute, join } from 'node:path';
import type { Readable, Writable } from 'node:stream';
import { distance } from 'fastest-levenshtein';
import { type Decide, decisionOf } from '../../decide/decide.ts';
import type { DecisionRequest } from '../../decide/ports.ts';
import type { Command } from '../../model/command.ts';
import type { Autonomy, Decision, Taint } from '../../model/decision.ts';
import { AUTONOMIES } from '../../model/words.ts';
import { andThen } from '../../util/promise.ts';
import { visibleLine } from '../../util/visible-text.ts';
import { isTaint } from '../shared/options.ts';

const EXIT_BAD_LINE = 125;
/** Written at once: a system call per line would take longer than the decisions. */
const CHUNK = 64 * 1024;

/** What is said of a decision, as it becomes JSON. */
export type DecisionAnswer = (command: Command, decision: Decision) => object;

/** How lines are judged, and what is said of them. */
interface BatchParts {
  readonly decide: Decide;
  /** For what a line does not say. */
  readonly defaults: DecisionRequest;
  readonly answer: DecisionAnswer;
}

/**
 * Judges JSON lines in order. Reads no faster than its output is taken; a reader that goes away ends it.
 * Returns the exit status.
 */
export async function checkBatch(parts: BatchParts, input: Readable, output: Writable): Promise<number> {
  let bad = 0;
  let gone = false;
  let pending = '';
  /** By id, the line that had it. */
  const ids = new Map<string, number>();
  output.on('error', () => {
    gone = true;
  });
  const flush = async () => {
    const text = pending;
    pending = '';
    if (text === '' || gone || output.write(text)) return;
    await roomIn(output);
  };
  for await (const { number, text, last } of splitLines(input)) {
    if (gone) break;
    if (text === undefined || text.trim() !== '') {
      const answer = await answerTo(parts, number, text, ids);
      if ('error' in answer) bad += 1;
      pending += `${JSON.stringify(answer)}\n`;
    }
    // What is there is passed on before the next input is waited for.
    if (last || pending.length > CHUNK) await flush();
  }
  await flush();
  return bad === 0 ? 0 : EXIT_BAD_LINE;
}

/** Until the reader has taken something, or is gone. */
function roomIn(output: Writable): Promise<void> {
  const events = ['drain', 'close', 'error'] as const;
  return new Promise((done) => {
    const settle = () => {
      for (const event of events) output.off(event, settle);
      done();
    };
    for (const event of events) output.on(event, settle);
  });
}

type Answer = { readonly id: unknown; readonly error?: string };

/** A line that cannot be judged is one that must not run. */
const refused = (id: unknown, number: number, problem: string): Answer & { readonly verdict: 'deny' } => ({
  id,
  verdict: 'deny',
  error: `line ${number}: ${problem}`,
});

function answerTo(
  { decide, defaults, answer }: BatchParts,
  number: number,
  text: string | undefined,
  ids: Map<string, number>,
): Answer | Promise<Answer> {
  const row = text === undefined ? 'the line is longer than 1 MiB, or not UTF-8' : parseRow(text);
  const id = typeof row === 'string' ? number : (row.id ?? number);
  const taken = idProblem(id, number, ids);
  if (typeof row === 'string') return refused(id, number, row);
  const request = taken ?? misspelled(row) ?? requestOf(row, defaults);
  if (typeof request === 'string') return refused(id, number, request);
  return andThen(decide(request), (decided) => ({ id, ...answer(request.command, decisionOf(decided)) }));
}

type Row = Readonly<Record<string, unknown>>;

/** Two answers with one id: nobody could tell which is whose. `id`: that of the line, or its number. */
function idProblem(id: unknown, number: number, ids: Map<string, number>): string | undefined {
  const text = JSON.stringify(id);
  const before = ids.get(text);
  if (before === undefined) ids.set(text, number);
  return before === undefined ? undefined : `the id ${visibleLine(text, 100)} is that of line ${before}`;
}

const KEYS = ['id', 'command', 'autonomy', 'taint', 'approved', 'cwd'];
/** Keys besides ours are a corpus's own, but one that is nearly ours is a mistake that would change the answer. */
function misspelled(row: Row): string | undefined {
  for (const key of Object.keys(row)) {
    const near = KEYS.find((known) => known !== key && isNear(key, known));
    if (near !== undefined && !KEYS.includes(key) && !(near in row))
      return `the key ${visibleLine(JSON.stringify(key), 100)} means nothing: did you mean "${near}"?`;
  }
  return undefined;
}

/** As one is mistyped: a letter too many or too few, two that changed places, in capitals, in the plural. */
function isNear(key: string, known: string): boolean {
  const lower = key.toLowerCase();
  if (lower === known || lower === `${known}s`) return true;
  const sorted = (word: string) => [...word].sort().join('');
  if (known.length <= 3) return false;
  return (
    (Math.abs(key.length - known.length) === 1 && distance(key, known) === 1) ||
    sorted(lower) === sorted(known)
  );
}

function parseRow(text: string): Row | string {
  try {
    const row: unknown = JSON.parse(text);
    if (typeof row === 'object' && row !== null && !Array.isArray(row)) return row as Row;
    return 'not a JSON object';
  } catch {
    return 'not JSON';
  }
}

/** A row as a request, or what is wrong with it. Keys besides ours are a corpus's own. */
function requestOf(row: Row, defaults: DecisionRequest): DecisionRequest | string {
  const { command, autonomy, taint, approved, cwd } = row;
  if (!isCommand(command)) return 'command must be a string or an array of strings that is not empty';
  if (autonomy !== undefined && !isAutonomy(autonomy))
    return `autonomy must be one of ${AUTONOMIES.join(', ')}`;
  const taints = taintsOf(taint);
  if (taint !== undefined && taints === undefined) return 'taint must be a list of corruption and secret';
  if (approved !== undefined && typeof approved !== 'boolean') return 'approved must be true or false';
  if (cwd !== undefined && typeof cwd !== 'string') return 'cwd must be a string';
  return {
    command,
    autonomy: autonomy ?? defaults.autonomy,
    approved: approved ?? defaults.approved,
    taints: taints ?? defaults.taints,
    cwd: cwd === undefined || isAbsolute(cwd) ? (cwd ?? defaults.cwd) : join(defaults.cwd ?? '.', cwd),
  };
}

function isCommand(value: unknown): value is Command {
  if (typeof value === 'string') return true;
  return Array.isArray(value) && value.length > 0 && value.every((word) => typeof word === 'string');
}

function isAutonomy(value: unknown): value is Autonomy {
  return AUTONOMIES.some((autonomy) => autonomy === value);
}

function taintsOf(value: unknown): readonly Taint[] | undefined {
  const words: unknown = typeof value === 'string' ? value.split(',').filter((word) => word !== '') : value;
  return Array.isArray(words) && words.every(isTaint) ? words : undefined;
}

const MAX_LINE = 1024 * 1024;
const NEWLINE = 10;

/** One line of a stream. */
interface Line {
  /** From 1. */
  readonly number: number;
  /** `undefined`: it is too long, and was not kept, or not UTF-8, and would be another text. */
  readonly text: string | undefined;
  /** The last one of what has arrived. */
  readonly last: boolean;
}

/** Splits a stream of bytes into lines. A line break inside a character cannot be. */
async function* splitLines(input: Readable): AsyncGenerator<Line> {
  let number = 0;
  let parts: Buffer[] = [];
  let size = 0;
  const keep = (part: Buffer) => {
    size += part.length;
    if (size <= MAX_LINE) parts.push(part);
    else parts = [];
  };
  const take = (last: boolean): Line => {
    const line = Buffer.concat(parts);
    const text = size > MAX_LINE || !isUtf8(line) ? undefined : line.toString('utf8');
    parts = [];
    size = 0;
    number += 1;
    return { number, text, last };
  };
  for await (const chunk of input) {
    const bytes: Buffer = Buffer.isBuffer(chunk) ? chunk : Buffer.from(String(chunk));
    let start = 0;
    for (;;) {
      const end = bytes.indexOf(NEWLINE, start);
      if (end === -1) break;
      keep(bytes.subarray(start, end));
      start = end + 1;
      yield take(bytes.indexOf(NEWLINE, start) === -1);
    }
    keep(bytes.subarray(start));
  }
  if (size > 0) yield take(true);
}
