import { isUtf8 } from 'node:buffer';
import { once } from 'node:events';
import { isAbsolute, join } from 'node:path';
import type { Writable } from 'node:stream';
import { distance } from 'fastest-levenshtein';
import { z } from 'zod';
import { isObject } from '../../base/is-object.ts';
import { createLineReader } from '../../base/line-reader.ts';
import { parsedJson } from '../../base/parsed-json.ts';
import { andThen } from '../../base/promise.ts';
import { text } from '../../base/value.ts';
import { visibleLine } from '../../base/visible-text.ts';
import { TAINTS } from '../../base/words.ts';
import { type Decide, type DecisionRequest, decisionOf } from '../../gate/index.ts';
import { Autonomy, Command, type Decision, Taint } from '../../model/index.ts';
import { isTaint } from '../shared/options.ts';

const EXIT_BAD_LINE = 125;
/** Written at once: a system call per line would take longer than the decisions. */
const CHUNK = 64 * 1024;
/** A longer line is not kept. */
const MAX_LINE = 1024 * 1024;

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
export async function checkBatch(
  parts: BatchParts,
  input: AsyncIterable<Buffer>,
  output: Writable,
): Promise<number> {
  const lines = createLineReader(MAX_LINE);
  /** By id, the line that had it. */
  const ids = new Map<string, number>();
  const gone = new AbortController();
  for (const event of ['error', 'close']) output.on(event, () => gone.abort());
  let number = 0;
  let bad = 0;
  let pending = '';
  const flush = async () => {
    const text = pending;
    pending = '';
    if (text === '' || gone.signal.aborted || output.write(text)) return;
    await once(output, 'drain', { signal: gone.signal }).catch(() => {});
  };
  const answerAll = async () => {
    for (let line = lines.take(); line !== undefined && !gone.signal.aborted; line = lines.take()) {
      number += 1;
      const text = line === 'too-long' || !isUtf8(line) ? undefined : line.toString();
      if (text?.trim() === '') continue;
      const answer = await answerTo(parts, number, text, ids);
      if ('error' in answer) bad += 1;
      pending += `${JSON.stringify(answer)}\n`;
      if (pending.length > CHUNK) await flush();
    }
    // What is there is passed on before the next input is waited for.
    await flush();
  };
  for await (const chunk of input) {
    lines.push(chunk);
    await answerAll();
    if (gone.signal.aborted) break;
  }
  if (lines.isPartial()) lines.push(Buffer.from('\n'));
  await answerAll();
  return bad === 0 ? 0 : EXIT_BAD_LINE;
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

/** A line that `sandbox-run check --batch` reads. Other keys are the caller's own. */
export const BatchRequest = z.looseObject({
  id: z.unknown().optional(),
  command: Command,
  autonomy: Autonomy.optional(),
  taint: z
    .union([z.array(Taint), text.describe('separated by commas')])
    .optional()
    .describe('what the session was exposed to'),
  approved: z.boolean().optional(),
  cwd: text.optional(),
});

const KEYS = Object.keys(BatchRequest.shape);
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
  const row = parsedJson(text);
  if (row === undefined) return 'not JSON';
  return isObject(row) ? row : 'not a JSON object';
}

const NO_TAINTS = `taint must be a list of ${TAINTS.join(' and ')}`;

/** A row as a request, or what is wrong with it. */
function requestOf(row: Row, defaults: DecisionRequest): DecisionRequest | string {
  const read = BatchRequest.safeParse(row);
  if (!read.success) {
    const [issue] = read.error.issues;
    const [key] = issue?.path ?? [];
    return key === 'taint' ? NO_TAINTS : `${String(key)}: ${issue?.message}`;
  }
  const { command, autonomy, taint, approved, cwd } = read.data;
  const taints = typeof taint === 'string' ? taint.split(',').filter((word) => word !== '') : taint;
  if (taints?.every(isTaint) === false) return NO_TAINTS;
  return {
    command,
    autonomy: autonomy ?? defaults.autonomy,
    approved: approved ?? defaults.approved,
    taints: taints ?? defaults.taints,
    cwd: cwd === undefined || isAbsolute(cwd) ? (cwd ?? defaults.cwd) : join(defaults.cwd ?? '.', cwd),
  };
}
