import { givesUpByNature } from '../../confine/plan/enforcement.ts';
import type { BackendId, ControlState } from '../../confine/plan/enforcement-report.ts';
import type { DoctorReport, Remedy } from '../../model/index.ts';
import { BACKENDS } from '../../run/index.ts';
import { type Mood, type Paint, wrap } from '../shared/print.ts';

/** A line of the table before it is laid out. */
interface Row {
  readonly label: string;
  readonly mark: string;
  readonly mood: Mood;
  readonly text: string;
}

const WIDTH = 100;
const LABEL_WIDTH = 20;
const MARK_WIDTH = 10;
const MOOD_OF_STATE: Readonly<Record<ControlState, Mood>> = {
  enforced: 'good',
  degraded: 'part',
  unsupported: 'bad',
  off: 'plain',
};
const MOOD_OF_PRIORITY: Readonly<Record<Remedy['priority'], Mood>> = {
  needed: 'bad',
  useful: 'part',
  optional: 'plain',
};

/** The report for people: no line is longer than 100 columns, except commands to copy. */
export function doctorTable(report: DoctorReport, paint: Paint): string {
  const bold = (text: string) => paint('strong', text);

  const layOut = (row: Row): string => {
    const indent = 2 + LABEL_WIDTH + MARK_WIDTH;
    const [first = '', ...rest] = wrap(row.text, WIDTH - indent);
    const mark = paint(row.mood, row.mark.padEnd(MARK_WIDTH - 1));
    const lines = [`  ${row.label.padEnd(LABEL_WIDTH)}${mark} ${first}`];
    return [...lines, ...rest.map((line) => `${' '.repeat(indent)}${line}`)]
      .map((line) => line.trimEnd())
      .join('\n');
  };
  const section = (title: string, rows: readonly Row[]) =>
    rows.length === 0 ? [] : [bold(title), ...rows.map(layOut), ''];

  const remedies = report.remedies.flatMap(({ topic, priority, text, command }) => [
    layOut({ label: topic, mark: priority, mood: MOOD_OF_PRIORITY[priority], text }),
    ...(command === null ? [] : [`${' '.repeat(2 + LABEL_WIDTH + MARK_WIDTH)}$ ${command}`]),
  ]);
  return [
    ...wrap(verdict(report), WIDTH).map((line) => paint(report.ok ? 'good' : 'bad', line)),
    '',
    ...section('Host', hostRows(report)),
    ...section('Kernel', kernelRows(report)),
    ...section('Backends, the strongest first', backendRows(report)),
    ...section('Other programs', programRows(report)),
    ...section(
      `Controls of the default profile, ${report.profile}`,
      report.controls.map(({ id, state, demand, reason }) => ({
        label: id,
        mark: state === 'unsupported' ? 'missing' : state,
        mood: MOOD_OF_STATE[state],
        text: demand === 'required' ? `${reason} [required]` : reason,
      })),
    ),
    ...(remedies.length === 0 ? [] : [bold('What can be done'), ...remedies, '']),
  ].join('\n');
}

function verdict(report: DoctorReport): string {
  if (report.problem !== null) {
    return `sandbox-run ${report.version}: commands are refused on this host: ${report.problem.message}`;
  }
  const open = report.controls.filter(({ state }) => state === 'degraded' || state === 'unsupported');
  const rest =
    open.length === 0 ? 'every control is enforced' : `not in full: ${open.map(({ id }) => id).join(', ')}`;
  return `sandbox-run ${report.version}: the default profile can be enforced (backend ${report.backend}); ${rest}`;
}

function hostRows({ host, addon }: DoctorReport): readonly Row[] {
  const plain = (label: string, text: string): Row => ({ label, mark: '', mood: 'plain', text });
  const user = [
    `uid ${host.uid}`,
    host.sysAdmin ? 'with CAP_SYS_ADMIN' : 'without CAP_SYS_ADMIN',
    ...(host.container === null ? [] : [`it looks like ${host.container}`]),
    ...(host.seccompMode === 2 ? ['already under a seccomp filter'] : []),
    ...(host.noNewPrivs ? ['no_new_privs set'] : []),
  ];
  return [
    plain('kernel', `Linux ${host.kernel}, ${host.architecture}`),
    plain('node', host.node),
    plain('user', user.join(', ')),
    { label: 'addon', ...yesOrNo(addon.available), text: addon.reason ?? 'loaded' },
  ];
}

function kernelRows(report: DoctorReport): readonly Row[] {
  return [
    landlockRow(report.landlock),
    ...errataRows(report.landlock),
    seccompRow(report.seccomp),
    namespacesRow(report.namespaces),
    cgroupRow(report.cgroup),
  ];
}

function landlockRow(landlock: DoctorReport['landlock']): Row {
  const known = `newest known to this version: ${landlock.newestKnownAbi}`;
  const text =
    landlock.available === true
      ? `ABI ${landlock.abi} (${known})`
      : [landlock.errno, landlock.reason].filter((part) => part !== null).join(': ');
  return { label: 'Landlock', ...yesOrNo(landlock.available), text };
}

function errataRows({ errata }: DoctorReport['landlock']): readonly Row[] {
  if (errata.length === 0) return [];
  const fixed = errata.filter((erratum) => erratum.fixed).map(({ number }) => number);
  const open = errata.filter((erratum) => !erratum.fixed);
  const text = [
    `fixed: ${fixed.join(', ') || 'none'}`,
    ...open.map(({ number, meaning }) => `not fixed: ${number} (${meaning})`),
  ].join('; ');
  return [
    {
      label: 'Landlock errata',
      mark: open.length === 0 ? 'yes' : 'part',
      mood: open.length === 0 ? 'good' : 'part',
      text,
    },
  ];
}

function seccompRow({ available, actions, reason }: DoctorReport['seccomp']): Row {
  const names = (wanted: boolean) =>
    actions.filter((action) => action.available === wanted).map((action) => action.name);
  const missing = names(false);
  const parts = [
    ...(reason === null ? [] : [reason]),
    ...(names(true).length === 0 ? ['actions unknown (no /proc/sys)'] : [`actions ${names(true).join(' ')}`]),
    ...(missing.length === 0 ? [] : [`missing ${missing.join(' ')}`]),
  ];
  return { label: 'seccomp', ...yesOrNo(available), text: parts.join('; ') };
}

function namespacesRow({ available, user, reason, sysctls }: DoctorReport['namespaces']): Row {
  const kinds = user ? 'user, mount, network and IPC' : 'mount, network and IPC';
  const settings = sysctls
    .filter(({ name, value }) => value !== null && /userns|max_user/.test(name))
    .map(({ name, value }) => `${name} = ${value}`);
  const what =
    available === true
      ? `${kinds} namespaces made${user ? '' : ' (CAP_SYS_ADMIN: no user namespace needed)'}`
      : (reason ?? 'unknown without the addon');
  return { label: 'namespaces', ...yesOrNo(available), text: [what, ...settings].join('; ') };
}

function cgroupRow({ version, path, controllers, place }: DoctorReport['cgroup']): Row {
  if (version === 'none')
    return { label: 'cgroup', ...yesOrNo(false), text: 'no cgroup file system is mounted' };
  const own = path === null ? 'this process is in no v2 group' : `own group ${path}`;
  const offered = controllers.length === 0 ? 'no controllers in v2' : `controllers ${controllers.join(' ')}`;
  const groups = place === null ? 'no groups for commands can be made' : `groups for commands in ${place}`;
  return {
    label: 'cgroup',
    mark: place === null ? 'part' : 'yes',
    mood: place === null ? 'plain' : 'good',
    text: `${version}; ${own}; ${offered}; ${groups}`,
  };
}

function backendRows({ backend, backends }: DoctorReport): readonly Row[] {
  return backends.map(({ id, available, reason }) => ({
    label: id,
    ...yesOrNo(available),
    text: id === backend ? 'is used' : (reason ?? whenUsed(id)),
  }));
}

function whenUsed(id: BackendId): string {
  return BACKENDS.some((backend) => backend.id === id && givesUpByNature(backend))
    ? `is used only with --backend ${id}, or if the others fail and sandbox.minimum in the policy is ${id}`
    : 'is used with --backend, or if those above fail';
}

function programRows({ programs }: DoctorReport): readonly Row[] {
  return programs.map(({ name, path, version, problem, setuidRoot }) => ({
    label: name,
    mark: path === null ? 'no' : 'yes',
    mood: 'plain',
    text:
      path === null
        ? 'not installed (not needed)'
        : `${path} ${version ?? `(${problem})`}, ${setuidRoot ? 'set-uid root' : 'not set-uid'}`,
  }));
}

function yesOrNo(available: boolean | null): Pick<Row, 'mark' | 'mood'> {
  if (available === null) return { mark: '?', mood: 'part' };
  return available ? { mark: 'yes', mood: 'good' } : { mark: 'NO', mood: 'bad' };
}
