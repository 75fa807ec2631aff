import type { ExecutionResult, TurnResult } from './execution-result.ts';

/*
 * What `--json` prints of a result, of which `--json=full` prints everything: what people look for first, and of the rest what
 * has something to say. Apart from the schemas, so that what only prints does not load zod.
 */

/** What only `full` has: how the command was called, kept in and measured. */
export const ONLY_IN_FULL: ReadonlySet<string> = new Set<keyof ExecutionResult>([
  ...(['argv', 'cwd', 'report', 'processTree'] as const),
  ...(['usage', 'cpu', 'peakMemoryBytes', 'outputBytes'] as const),
]);

type Whole = ExecutionResult & Pick<TurnResult, 'restarted'>;

/** What is there only if it says something, and when it does. */
export const WHEN_IT_SPEAKS: { readonly [Name in keyof Whole]?: (value: Whole[Name]) => boolean } = {
  truncated: ({ stdout, stderr }) => stdout > 0 || stderr > 0,
  treeEnded: (isEnded) => !isEnded,
  outputHeld: (isHeld) => isHeld,
  leftBehind: (some) => some.length > 0,
  warnings: (some) => some.length > 0,
  decision: (decision) => decision !== undefined && decision.verdict !== 'allow',
  restarted: (isRestarted) => isRestarted,
};

/** A result as `--json` prints it. Of the reasons of its decision, those that asked or refused. */
export function briefly({
  status,
  exitCode,
  signal,
  error,
  limit,
  stdout,
  stderr,
  ...rest
}: ExecutionResult) {
  const { decision } = rest;
  const reasons = decision?.reasons.filter(({ verdict }) => verdict === 'ask' || verdict === 'deny');
  const all = { ...rest, ...(decision === undefined ? {} : { decision: { ...decision, reasons } }) };
  const speaks = WHEN_IT_SPEAKS as Readonly<Record<string, ((value: unknown) => boolean) | undefined>>;
  const told = Object.entries(all).filter(
    ([name, value]) => !ONLY_IN_FULL.has(name) && (speaks[name]?.(value) ?? true),
  );
  return { status, exitCode, signal, error, limit, stdout, stderr, ...Object.fromEntries(told) };
}
