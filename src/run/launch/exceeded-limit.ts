import { constants } from 'node:os';
import type { NativeLimit, NativeOutcome } from '../../confine/native/contract.ts';
import type { LaunchPlan } from '../../confine/plan/launch-plan.ts';
import { errorOf } from '../../gate/index.ts';
import type { Denial, ExceededLimit, ExecutionError } from '../../model/index.ts';

const SHELL_SAYS_SIGNAL = 128;

/** The limits of a plan. */
export type LimitsOfPlan = Pick<LaunchPlan, 'limits' | 'treeLimits'>;

/** The limit for which a command ended, whether we ended it or the kernel did. */
export function exceededLimit(
  outcome: NativeOutcome,
  signal: string | undefined,
  { limits, treeLimits }: LimitsOfPlan,
): ExceededLimit | undefined {
  if (outcome.limit !== undefined) return inUnits(outcome.limit);
  const fileSize = limits.find(({ name }) => name === 'fsize');
  // Not 128+n, as a shell says of a program that it ran: any command can exit so, and nothing else would speak for it.
  if (fileSize !== undefined && signal === 'SIGXFSZ')
    return { name: 'file-size', value: fileSize.value, used: undefined, by: 'rlimit' };
  // The kernel's own limit of one process, for the case that the tree could not be watched.
  const { cpuSeconds } = treeLimits;
  const used = (outcome.userCpuMs + outcome.systemCpuMs) / 1000;
  // What was used speaks for the limit, so here a shell is believed.
  const endedBy = (wanted: 'SIGXCPU' | 'SIGKILL') =>
    signal === wanted || outcome.exitCode === SHELL_SAYS_SIGNAL + constants.signals[wanted];
  if (cpuSeconds !== undefined && used >= cpuSeconds && (endedBy('SIGXCPU') || endedBy('SIGKILL')))
    return { name: 'cpu', value: cpuSeconds, used, by: 'rlimit' };
  return undefined;
}

function inUnits({ name, by, value, used }: NativeLimit): ExceededLimit {
  const unit = name === 'cpu' || name === 'idle' ? 1000 : 1;
  return { name, by, value: value / unit, used: used === undefined ? undefined : used / unit };
}

const WORDS: Readonly<
  Record<ExceededLimit['name'], { what: string; unit: 'bytes' | 'seconds' | ''; option: string; key: string }>
> = {
  memory: { what: ' of memory', unit: 'bytes', option: 'limits.memory', key: 'memory' },
  processes: { what: ' processes and threads', unit: '', option: 'limits.processes', key: 'processes' },
  cpu: { what: ' of processor time', unit: 'seconds', option: 'limits.cpuSeconds', key: 'cpu_seconds' },
  tmp: { what: ' of private temporary files', unit: 'bytes', option: 'limits.tmpBytes', key: 'tmp_bytes' },
  idle: {
    what: '',
    unit: 'seconds',
    option: 'idleTimeout',
    key: 'idle_timeout_seconds',
  },
  'file-size': { what: ' in one file', unit: 'bytes', option: '', key: 'file_size' },
};

const MEANS: Readonly<Record<ExceededLimit['by'], string>> = {
  cgroup: 'held by its control group',
  sampling: 'seen by looking now and then',
  rlimit: 'held by the kernel',
  clock: 'by the clock',
};

/** Says in one line of what there was too much, and how much. */
export function describeExcess(limit: ExceededLimit): string {
  const { what, unit } = WORDS[limit.name];
  const amount = (value: number) => amountOf(value, unit);
  // If usage and limit round to the same text, "more than" would look wrong.
  const isSeen = limit.used !== undefined && amount(limit.used) !== amount(limit.value);
  const seen = isSeen ? `, ${amount(limit.used)} were used` : '';
  return limit.name === 'idle'
    ? `ended after ${amount(limit.value)} without output`
    : `ended for using more than ${amount(limit.value)}${what}${seen} (${MEANS[limit.by]})`;
}

/** The key of a policy that says it. */
const policyKeyOf = ({ name }: Pick<ExceededLimit, 'name'>) => `limits.${WORDS[name].key}`;

/** The error for an exceeded limit, with how to allow more. */
export function describeExceeded(limit: ExceededLimit): ExecutionError {
  const { option } = WORDS[limit.name];
  const ways = [
    ...(option === '' ? [] : [`the option ${option}`]),
    `${policyKeyOf(limit)} in the policy`,
  ].join(' or ');
  return errorOf('limit.exceeded', `${describeExcess(limit)}; ${ways} allows more`);
}

/** An exceeded limit as a denial. */
export function limitDenial(limit: ExceededLimit): Denial {
  const { key } = WORDS[limit.name];
  const value = limit.value * 2;
  return {
    ...{ operation: 'limit', object: limit.name, control: 'resource-limits', why: describeExcess(limit) },
    allow: { key: `limits.${key}`, value, policy: `[limits]\n${key} = ${value}` },
    count: 1,
  };
}

function amountOf(value: number, unit: 'bytes' | 'seconds' | ''): string {
  if (unit === 'seconds') return `${Number(value.toFixed(1))} s`;
  if (unit === '') return String(value);
  const steps = ['B', 'KiB', 'MiB', 'GiB', 'TiB'];
  const step = Math.min(steps.length - 1, Math.floor(Math.log2(Math.max(value, 1)) / 10));
  return `${Number((value / 1024 ** step).toFixed(1))} ${steps[step]}`;
}
