import type { DoctorReport, Remedy } from '../../host/doctor-report.ts';
import type { ControlId } from '../../model/enforcement-report.ts';

/** What is found out before anything is advised. */
export type Findings = Omit<DoctorReport, 'remedies'> & {
  readonly securityModules: string | undefined;
  /** What brings the addon. */
  readonly addonRemedy: string | undefined;
};

type Advisor = (found: Findings) => readonly Remedy[];

/** The controls that each Landlock ABI completes, and the kernel that brings it. */
const LANDLOCK_GAINS: readonly {
  readonly abi: number;
  readonly kernel: string;
  readonly controls: readonly ControlId[];
}[] = [
  { abi: 2, kernel: '5.19', controls: ['rename'] },
  { abi: 3, kernel: '6.2', controls: ['truncate'] },
  { abi: 5, kernel: '6.10', controls: ['devices'] },
  { abi: 6, kernel: '6.12', controls: ['signals', 'abstract-sockets', 'process-tree'] },
  { abi: 9, kernel: '7.1', controls: ['unix-sockets'] },
];

const remedy = (
  topic: string,
  priority: Remedy['priority'],
  text: string,
  command: string | null = null,
): Remedy => ({ topic, priority, text, command });

/** THE registry of advice: each entry looks at one thing. */
const ADVISORS: readonly Advisor[] = [
  ({ addon, addonRemedy }) =>
    addon.available
      ? []
      : [
          remedy(
            'addon',
            'needed',
            'Nothing runs without the native addon. Where it has to be built, that takes g++ 11 or newer, cmake 3.18 or newer, and make.',
            addonRemedy,
          ),
        ],
  ({ landlock, securityModules, ok }) => {
    if (landlock.available !== false) return [];
    const priority = ok ? 'useful' : 'needed';
    switch (landlock.errno) {
      case 'ENOSYS':
        return [
          remedy(
            'landlock',
            priority,
            'Boot Linux 5.13 or newer built with CONFIG_SECURITY_LANDLOCK=y (Debian 12, Ubuntu 22.04, Fedora 35 and later have it); if gVisor or an outer seccomp filter refuses it, start sandbox-run outside.',
          ),
        ];
      case 'EOPNOTSUPP': {
        const others = (securityModules ?? 'lockdown,yama,integrity,apparmor,bpf').replace(
          /^capability,?/,
          '',
        );
        return [
          remedy(
            'landlock',
            priority,
            `Add the kernel parameter lsm=landlock,${others} (to GRUB_CMDLINE_LINUX in /etc/default/grub), then run this and reboot.`,
            'sudo update-grub',
          ),
        ];
      }
      default:
        return [
          remedy(
            'landlock',
            priority,
            `Something around this process refuses Landlock (${landlock.errno ?? 'no errno'}): allow landlock_create_ruleset, landlock_add_rule and landlock_restrict_self in the outer sandbox or container.`,
          ),
        ];
    }
  },
  ({ landlock, controls }) => {
    const { abi } = landlock;
    if (abi === null || abi === 0) return [];
    return LANDLOCK_GAINS.flatMap((gain) => {
      const open = gain.controls.filter((id) =>
        controls.some(
          (control) => control.id === id && control.state !== 'enforced' && control.state !== 'off',
        ),
      );
      return gain.abi <= abi || open.length === 0
        ? []
        : [
            remedy(
              'kernel',
              'useful',
              `Linux ${gain.kernel} or newer (Landlock ABI ${gain.abi}) completes: ${open.join(', ')}.`,
            ),
          ];
    });
  },
  ({ landlock }) =>
    landlock.abi !== null && landlock.abi > landlock.newestKnownAbi
      ? [
          remedy(
            'landlock',
            'optional',
            `The kernel has Landlock ABI ${landlock.abi}; this version knows ${landlock.newestKnownAbi} and uses that. A newer sandbox-run may enforce more.`,
            'npm install sandbox-run@latest',
          ),
        ]
      : [],
  ({ landlock }) => {
    const open = landlock.errata.filter((erratum) => !erratum.fixed);
    return landlock.available !== true || open.length === 0
      ? []
      : [
          remedy(
            'errata',
            'optional',
            `A newer stable update of the kernel fixes ${open.map(({ number, meaning }) => `erratum ${number} (${meaning})`).join(', ')}.`,
          ),
        ];
  },
  ({ seccomp }) =>
    seccomp.available === false
      ? [
          remedy(
            'seccomp',
            'needed',
            `Boot a kernel built with CONFIG_SECCOMP_FILTER=y, or allow seccomp(2) in the outer sandbox (${seccomp.reason ?? 'refused'}).`,
          ),
        ]
      : [],
  (found) => (found.namespaces.available === false ? namespaceRemedies(found) : []),
  ({ cgroup, host }) => {
    if (cgroup.place !== null) return [];
    const gain = 'Limits of memory, processes and processor time are then held by the kernel, without a gap';
    return cgroup.version === 'v1' || cgroup.version === 'none' || cgroup.version === 'v1+v2'
      ? [
          remedy(
            'cgroup',
            'optional',
            `${gain}: boot with the kernel parameter systemd.unified_cgroup_hierarchy=1, or mount cgroup2 with the memory and pids controllers.`,
          ),
        ]
      : [
          remedy(
            'cgroup',
            'optional',
            `${gain}: start sandbox-run in its own control group. In a container: with a writable cgroup namespace, and sandbox-run in a group below its root.`,
            `systemd-run ${host.uid === 0 ? '' : '--user '}--scope -p Delegate=yes sandbox-run …`,
          ),
        ];
  },
  ({ programs }) =>
    programs.flatMap(({ name, path }) =>
      path !== null
        ? []
        : [
            remedy(
              name,
              'optional',
              `${name} is not installed. Nothing is lost where Landlock works: this version does not use it.`,
              `sudo apt-get install ${PACKAGES[name] ?? name}`,
            ),
          ],
    ),
];

const PACKAGES: Readonly<Record<string, string>> = { bwrap: 'bubblewrap' };

const ORDER: readonly Remedy['priority'][] = ['needed', 'useful', 'optional'];

/** Everything that can be done, the most important first. Pure. */
export function remediesFor(found: Findings): readonly Remedy[] {
  return ADVISORS.flatMap((advise) => advise(found)).sort(
    (a, b) => ORDER.indexOf(a.priority) - ORDER.indexOf(b.priority),
  );
}

/** Settings first: one that is set is surely the cause. Without one, other possible causes. */
function namespaceRemedies({ namespaces, host }: Findings): readonly Remedy[] {
  const bySetting = namespaces.sysctls.flatMap(({ name, value }) => {
    const fix = value === null ? undefined : settingThatAllows(name, value);
    const text = `Namespaces are refused while ${name} is ${value}; to keep it after a reboot, write ${name} = ${fix} into /etc/sysctl.d/60-sandbox-run.conf.`;
    return fix === undefined ? [] : [remedy('namespaces', 'useful', text, `sudo sysctl -w ${name}=${fix}`)];
  });
  if (bySetting.length > 0 && !host.sysAdmin) return bySetting;
  if (host.container === 'Docker' || host.container === 'Podman') {
    const text = `${host.container} refuses namespaces by its default seccomp profile: start the container with these options (sandbox-run then confines the commands).`;
    const options = '--security-opt seccomp=unconfined --security-opt apparmor=unconfined';
    return [remedy('namespaces', 'useful', text, `${host.container.toLowerCase()} run ${options} …`)];
  }
  const text = host.noNewPrivs
    ? 'This process runs inside another sandbox (no_new_privs is set), which refuses namespaces: start it outside.'
    : 'No setting explains the refusal: look for an outer sandbox or container, or a kernel built without CONFIG_USER_NS.';
  return [remedy('namespaces', 'useful', text)];
}

function settingThatAllows(name: string, value: string): string | undefined {
  if (name === 'kernel.unprivileged_userns_clone' && value === '0') return '1';
  if (name === 'kernel.apparmor_restrict_unprivileged_userns' && value === '1') return '0';
  if (name.startsWith('user.max_') && value === '0') return '15000';
  return undefined;
}
