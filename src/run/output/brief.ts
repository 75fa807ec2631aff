import { type ONLY_IF_IT_SPEAKS, ONLY_IN_FULL } from '../../base/words.ts';
import type { ExecutionResult, TurnResult } from '../../model/index.ts';

type Whole = ExecutionResult & Pick<TurnResult, 'restarted'>;

/** When a part of a result has something to say. */
const SPEAKS: { readonly [Name in (typeof ONLY_IF_IT_SPEAKS)[number]]: (value: Whole[Name]) => boolean } = {
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
  ok,
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
  const speaks = SPEAKS as Readonly<Record<string, ((value: unknown) => boolean) | undefined>>;
  const silent: ReadonlySet<string> = new Set(ONLY_IN_FULL);
  const told = Object.entries(all).filter(
    ([name, value]) => !silent.has(name) && (speaks[name]?.(value) ?? true),
  );
  return { status, ok, exitCode, signal, error, limit, stdout, stderr, ...Object.fromEntries(told) };
}
