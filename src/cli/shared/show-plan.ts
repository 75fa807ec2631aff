import { isBeneath } from '../../base/absolute-path.ts';
import { visibleLine } from '../../base/visible-text.ts';
import { BACKEND_IDS } from '../../base/words.ts';
import type { EnforcementReport } from '../../confine/plan/enforcement-report.ts';
import type { LaunchPlan, PlannedPath } from '../../confine/plan/launch-plan.ts';
import type { Autonomy, RunDefaults } from '../../model/index.ts';

const MARKS = { enforced: 'yes', degraded: 'part', unsupported: 'NO', off: 'off' } as const;

/** The report as a table, one line per control. */
export function describeReport(report: EnforcementReport): string {
  const lines = report.controls.map(
    (control) => `  ${control.id.padEnd(19)} ${MARKS[control.state].padEnd(5)} ${control.reason}`,
  );
  return `sandbox-run: backend ${report.backend}, Landlock ABI ${report.landlockAbi}\n${lines.join('\n')}\n`;
}

/**
 * One line for a command that is held by less than there could be; `undefined`: nothing is to be said. `toPerson`: what the
 * strongest backend lacks here is said to people only. A program that reads standard error wants what the command wrote,
 * and the host does not change between commands: `-v`, `--json=full` and `doctor` say it. `more`: where its user finds that.
 */
export function describeBackend(
  { report, shutsInside, watchedLinks }: LaunchPlan,
  toPerson: () => boolean,
  more = '-v',
): string | undefined {
  const { backend, passedOver, controls } = report;
  if (backend === BACKEND_IDS[0]) {
    const held = controls.find(({ id }) => id === 'protected-paths');
    // Links are put back, and the report says so: no line with every command.
    const isWeak = held?.state === 'degraded' && (!shutsInside || watchedLinks.length === 0);
    return isWeak && toPerson() ? `protected-paths only in part: ${held.reason}` : undefined;
  }
  const why = passedOver.map((stronger) => `not ${stronger.backend}: ${stronger.reason}`).join('; ');
  const weaker = controls
    .filter(({ state }) => state === 'degraded' || state === 'unsupported')
    .map(({ id, state }) => `${id}${state === 'degraded' ? ' (in part)' : ''}`);
  return `backend ${backend}${why === '' ? '' : ` (${why})`}; not enforced: ${weaker.join(', ') || 'nothing'} (${more} says why, -q says nothing)`;
}

/** One line that says what a command may and may not do. */
export function describeConfinement(plan: LaunchPlan): string {
  if (plan.report.backend === 'application') {
    return 'its programs, options and paths were checked before it ran, and only paths in the workspace were allowed (backend application)';
  }
  const writable = plan.paths.filter((path) => path.access === 'write').map((path) => path.path);
  const own = plan.slotDirectories.includes('slot:tmp') ? ['a private $TMPDIR'] : [];
  const view = plan.namespaces !== undefined;
  const network = plan.report.controls.find((control) => control.id === 'network');
  const around = plan.paths.find(
    ({ path, access }) => access === 'read' && path !== plan.workspace && isBeneath(plan.workspace, path),
  );
  const parts = [
    `it can write ${[...writable, ...own].join(', ') || 'nothing'}${around === undefined ? '' : ` and read ${around.path}`}`,
    `other files than those of the system are ${view ? 'absent' : 'refused'}`,
    network?.state === 'off'
      ? 'the network is open'
      : plan.network === 'listed'
        ? 'of the network it reaches what network.allow lists'
        : `the network is off${plan.namespaces?.network === true ? ', only its own loopback answers' : ''}`,
  ];
  return parts.join('; ');
}

/** What ends a command, or what it writes, by itself. */
function describeLimits({ limits, treeLimits }: LaunchPlan, { timeout, maxOutput }: RunDefaults): string {
  const { memoryBytes, processes, cpuSeconds, tmpBytes, idleTimeoutMs } = treeLimits;
  const of = (value: number | undefined, show: (value: number) => string) =>
    value === undefined ? undefined : show(value);
  const inMebibytes = (bytes: number) => `${Math.round(bytes / 2 ** 20)} MiB`;
  const rows: readonly (readonly [string, string | undefined])[] = [
    ['time-out', timeout === 0 ? 'none' : `${timeout / 1000} s`],
    ['no output', of(idleTimeoutMs, (time) => `${time / 1000} s`)],
    ['memory', of(memoryBytes, inMebibytes)],
    ['processes', processes?.toString()],
    ['processor time', of(cpuSeconds, (time) => `${time} s`)],
    ['private files', of(tmpBytes, inMebibytes)],
    ['output kept', `${Math.round(maxOutput / 1024)} KiB of each stream, where it is captured`],
    ...limits.map(({ name, value }) => [`${name} of a process`, value.toString()] as const),
  ];
  const shown = rows.flatMap(([name, value]) =>
    value === undefined ? [] : `  ${name.padEnd(19)} ${value}\n`,
  );
  return `Limits\n${shown.join('')}`;
}

const ASKS: Readonly<Record<Autonomy, string>> = {
  readonly: 'runs commands that only read, and refuses all others',
  supervised: 'asks about commands that change something',
  contained: 'asks about commands that act outside the sandbox',
  autonomous: 'asks nothing because of risk',
};

function describeCache(cache: LaunchPlan['cache']): string {
  return cache.kind === 'private'
    ? `Caches are deleted with the command: ${cache.reason}\n`
    : `Caches are kept for this workspace in ${cache.directory}: ${cache.links.map(({ path }) => path.replace('slot:home', '~')).join(' ')}\n`;
}

/** The whole plan for people. */
export function describePlan(plan: LaunchPlan, defaults: RunDefaults): string {
  const of = (access: PlannedPath['access']) => plan.paths.filter((path) => path.access === access);
  const list = (title: string, paths: readonly PlannedPath[]) =>
    paths.length === 0
      ? ''
      : `${title}\n${paths.map((path) => `  ${path.path.padEnd(32)} ${path.reason}`).join('\n')}\n`;
  return [
    `Workspace ${plan.workspace}\nHOME ${plan.home}, TMPDIR ${plan.tmp}\n${describeCache(plan.cache)}`,
    `Autonomy ${defaults.autonomy}: ${ASKS[defaults.autonomy]}\n`,
    list('Writable', of('write')),
    list('Readable and executable', of('read')),
    list('Readable', of('data')),
    list('Devices', of('device')),
    plan.protectedPaths.length === 0
      ? ''
      : `Protected inside what is writable\n  ${plan.protectedPaths.map((path) => visibleLine(path, 400)).join('\n  ')}\n`,
    plan.hiddenPaths.length === 0 ? '' : `Hidden\n  ${plan.hiddenPaths.join('\n  ')}\n`,
    plan.emptied.length === 0
      ? ''
      : `Empty and shut (filesystem.hide)\n  ${plan.emptied.map((path) => visibleLine(path, 400)).join('\n  ')}\n`,
    plan.seccompGroups.length === 0 ? '' : `System calls refused\n  ${plan.seccompGroups.join(' ')}\n`,
    describeLimits(plan, defaults),
    describeReport(plan.report),
  ].join('');
}
