import type { NativeLaunchExtras } from '../../confine/native/contract.ts';
import type { OutputLimits, Policy, RunOptions } from '../../model/index.ts';
import type { NamedFiles } from './named-files.ts';
import { LONGEST_OPEN_SEQUENCE } from './neutralize.ts';
import type { OutputView } from './show.ts';

/** What the options of a run say about its output. */
export interface OutputSettings {
  readonly view: OutputView;
  /** For the addon. */
  readonly outputLimit: number;
  readonly extras: NativeLaunchExtras | undefined;
  /** Bytes of each spill file at most; `undefined`: none is wanted. */
  readonly spillLimit: number | undefined;
  /** The files, where they are named. */
  readonly spillTo?: NamedFiles;
}

/** Bytes written to the spill file of a stream, unless the run sets a limit: a mistake must not fill the disk. */
const DEFAULT_SPILL_LIMIT = 256 * 1024 * 1024;

/** Settings from the policy's limits and the options of a run. Most runs have none and share what this makes once. */
export function createOutputSettings(limits: Policy['limits']): (options: RunOptions) => OutputSettings {
  const standard = settings(policyLimits(limits), {});
  return (options) => {
    const { maxOutput, encoding, escapes, combined, spill } = options;
    const isPlain =
      maxOutput === undefined && !combined && !spill && encoding !== 'bytes' && escapes !== 'neutralize';
    if (isPlain) return standard;
    return settings(maxOutput === undefined ? policyLimits(limits) : outputLimits(maxOutput), options);
  };
}

/** Both limits, from what an option says. */
function outputLimits(maxOutput: number | OutputLimits): OutputLimits {
  if (typeof maxOutput !== 'number') return maxOutput;
  const head = defaultHead(maxOutput);
  return { head, tail: maxOutput - head };
}

/** How many of the retained bytes of a stream are its first ones. */
function defaultHead(outputLimit: number): number {
  return outputLimit - Math.floor(outputLimit / 2);
}

function policyLimits({ outputBytes, outputHeadBytes }: Policy['limits']): OutputLimits {
  const head = Math.min(outputHeadBytes ?? defaultHead(outputBytes), outputBytes);
  return { head, tail: outputBytes - head };
}

function settings(
  limits: OutputLimits,
  { encoding, escapes, combined, spill }: Pick<RunOptions, 'encoding' | 'escapes' | 'combined' | 'spill'>,
): OutputSettings {
  const neutralizes = escapes === 'neutralize';
  // So that a sequence is seen that was cut by the gap.
  const outputLimit = limits.head + limits.tail + (neutralizes ? LONGEST_OPEN_SEQUENCE : 0);
  const extras: NativeLaunchExtras = {
    ...(limits.head === defaultHead(outputLimit) ? {} : { headBytes: limits.head }),
    ...(combined === true ? { combined } : {}),
  };
  const asked = spill === undefined || spill === false ? undefined : spill;
  return {
    view: { limits, headBytes: limits.head, asBytes: encoding === 'bytes', neutralizes },
    outputLimit,
    extras: Object.keys(extras).length === 0 ? undefined : extras,
    spillLimit: asked && ((typeof asked === 'object' ? asked.maxBytes : undefined) ?? DEFAULT_SPILL_LIMIT),
    ...(typeof asked === 'object' && (asked.stdout ?? asked.stderr) !== undefined ? { spillTo: asked } : {}),
  };
}
