import type { ExecutionResultBase } from '../../model/execution-result.ts';
import type { OutputLimits } from '../../model/output.ts';
import type { NativeCapture } from '../../native/contract.ts';
import { findGap, omissionLine } from './gap.ts';
import { neutralize, openSequence } from './neutralize.ts';

/** What a caller wants of captured output. */
export interface OutputView {
  readonly limits: OutputLimits;
  /** How many bytes of what the addon keeps are the first of a stream. */
  readonly headBytes: number;
  readonly asBytes: boolean;
  readonly neutralizes: boolean;
}

/** The part of a result that shows output. */
export type ShownOutput = Pick<ExecutionResultBase, 'stdout' | 'stderr' | 'truncated' | 'bytes'>;

interface ShownStream {
  readonly text: string;
  readonly missing: number;
}

/** Captured output as a result shows it. `headBytes`: as the addon says, where it differs from the view. */
export function showOutput(
  captured: NativeCapture,
  view: OutputView,
  headBytes?: readonly [number, number],
): ShownOutput {
  if (view.asBytes) return showBytes(captured, headBytes?.[0] ?? view.headBytes, headBytes?.[1]);
  const stdout = showStream(captured.stdout, captured.stdoutBytes, view, headBytes?.[0]);
  const stderr = showStream(captured.stderr, captured.stderrBytes, view, headBytes?.[1]);
  return {
    stdout: stdout.text,
    stderr: stderr.text,
    truncated: { stdout: stdout.missing, stderr: stderr.missing },
    bytes: undefined,
  };
}

/** One stream as text: what was kept, and a line where something is missing. */
export function showStream(
  kept: Uint8Array | undefined,
  total: number,
  view: OutputView,
  headBytes: number = view.headBytes,
): ShownStream {
  const bytes = kept ?? NOTHING;
  const show = (part: Uint8Array) => (view.neutralizes ? neutralize(decode(part)) : decode(part));
  const gap = findGap(bytes, headBytes, total, view.limits);
  if (gap === undefined) return { text: show(bytes), missing: 0 };
  const { head, tail, beforeTail, missing } = gap;
  const shownTail = view.neutralizes
    ? neutralize(openSequence(decode(beforeTail)) + decode(tail))
    : decode(tail);
  return { text: show(head) + omissionLine(missing) + shownTail, missing };
}

const NOTHING = new Uint8Array(0);

function showBytes(
  captured: NativeCapture,
  stdoutHead: number,
  stderrHead: number = stdoutHead,
): ShownOutput {
  const { stdout = NOTHING, stderr = NOTHING, stdoutBytes, stderrBytes } = captured;
  const truncated = { stdout: stdoutBytes - stdout.length, stderr: stderrBytes - stderr.length };
  return {
    stdout: '',
    stderr: '',
    truncated,
    bytes: {
      stdout,
      stderr,
      gapAt: {
        stdout: truncated.stdout === 0 ? undefined : Math.min(stdoutHead, stdout.length),
        stderr: truncated.stderr === 0 ? undefined : Math.min(stderrHead, stderr.length),
      },
    },
  };
}

function decode(bytes: Uint8Array): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('utf8');
}
