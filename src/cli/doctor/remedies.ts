import type { ControlId } from '../../confine/plan/enforcement-report.ts';
import type { DoctorReport, Remedy } from '../../model/index.ts';

/** What is found out before anything is advised. */
export type Findings = Omit<DoctorReport, 'remedies'> & {
  readonly securityModules: string | undefined;
  /** What brings the addon. */
  readonly addonRemedy: string | undefined;
};

/** Looks at one thing; what it says may be nothing. */
type Advisor = (found: Findings) => Remedy | readonly Remedy[] | undefined;

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

/** THE registry of advice. */
const ADVISORS: readonly Advisor[] = [
  ({ addon, addonRemedy }) => {
    if (addon.available) return undefined;
    const text =
      'Nothing runs without the native addon. Where it has to be built, that takes g++ 11 or newer, cmake 3.18 or newer, and make.';
    return remedy('addon', 'needed', text, addonRemedy);
  },
  landlockRemedy,
  ({ landlock, controls }) => {
    const { abi } = landlock;
    if (abi === null || abi === 0) return undefined;
    const isOpen = (id: ControlId) =>
      controls.some(
        (control) => control.id === id && control.state !== 'enforced' && control.state !== 'off',
      );
    return LANDLOCK_GAINS.flatMap((gain) => {
      const open = gain.controls.filter(isOpen);
      if (gain.abi <= abi || open.length === 0) return [];
      const text = `Linux ${gain.kernel} or newer (Landlock ABI ${gain.abi}) completes: ${open.join(', ')}.`;
      return [remedy('kernel', 'useful', text)];
    });
  },
  ({ landlock: { abi, newestKnownAbi } }) => {
    if (abi === null || abi <= newestKnownAbi) return undefined;
    const text = `The kernel has Landlock ABI ${abi}; this version knows ${newestKnownAbi} and uses that. A newer sandbox-run may enforce more.`;
    return remedy('landlock', 'optional', text, 'npm install sandbox-run@latest');
  },
  ({ landlock }) => {
    const open = landlock.errata.filter((erratum) => !erratum.fixed);
    if (landlock.available !== true || open.length === 0) return undefined;
    const errata = open.map(({ number, meaning }) => `erratum ${number} (${meaning})`).join(', ');
    return remedy('errata', 'optional', `A newer stable update of the kernel fixes ${errata}.`);
  },
  ({ seccomp }) => {
    if (seccomp.available !== false) return undefined;
    const text = `Boot a kernel built with CONFIG_SECCOMP_FILTER=y, or allow seccomp(2) in the outer sandbox (${seccomp.reason ?? 'refused'}).`;
    return remedy('seccomp', 'needed', text);
  },
  (found) => (found.namespaces.available === false ? namespaceRemedies(found) : undefined),
  ({ cgroup, host }) => {
    if (cgroup.place !== null) return undefined;
    const gain = 'Limits of memory, processes and processor time are then held by the kernel, without a gap';
    if (cgroup.version === 'v1' || cgroup.version === 'none' || cgroup.version === 'v1+v2') {
      const text = `${gain}: boot with the kernel parameter systemd.unified_cgroup_hierarchy=1, or mount cgroup2 with the memory and pids controllers.`;
      return remedy('cgroup', 'optional', text);
    }
    const text = `${gain}: start sandbox-run in its own control group. In a container: with a writable cgroup namespace, and sandbox-run in a group below its root.`;
    const user = host.uid === 0 ? '' : '--user ';
    return remedy('cgroup', 'optional', text, `systemd-run ${user}--scope -p Delegate=yes sandbox-run …`);
  },
  ({ programs }) =>
    programs
      .filter(({ path }) => path === null)
      .map(({ name }) => {
        const text = `${name} is not installed. Nothing is lost where Landlock works: this version does not use it.`;
        return remedy(name, 'optional', text, `sudo apt-get install ${PACKAGES[name] ?? name}`);
      }),
];

/** By what the kernel said when it was asked for Landlock. */
function landlockRemedy({ landlock, securityModules, ok }: Findings): Remedy | undefined {
  if (landlock.available !== false) return undefined;
  const priority = ok ? 'useful' : 'needed';
  switch (landlock.errno) {
    case 'ENOSYS': {
      const text =
        'Boot Linux 5.13 or newer built with CONFIG_SECURITY_LANDLOCK=y (Debian 12, Ubuntu 22.04, Fedora 35 and later have it); if gVisor or an outer seccomp filter refuses it, start sandbox-run outside.';
      return remedy('landlock', priority, text);
    }
    case 'EOPNOTSUPP': {
      const all = securityModules ?? 'lockdown,yama,integrity,apparmor,bpf';
      const text = `Add the kernel parameter lsm=landlock,${all.replace(/^capability,?/, '')} (to GRUB_CMDLINE_LINUX in /etc/default/grub), then run this and reboot.`;
      return remedy('landlock', priority, text, 'sudo update-grub');
    }
    default: {
      const text = `Something around this process refuses Landlock (${landlock.errno ?? 'no errno'}): allow landlock_create_ruleset, landlock_add_rule and landlock_restrict_self in the outer sandbox or container.`;
      return remedy('landlock', priority, text);
    }
  }
}

const PACKAGES: Readonly<Record<string, string>> = { bwrap: 'bubblewrap' };

const ORDER: readonly Remedy['priority'][] = ['needed', 'useful', 'optional'];

/** Everything that can be done, the most important first. Pure. */
export function remediesFor(found: Findings): readonly Remedy[] {
  return ADVISORS.flatMap((advise) => advise(found) ?? []).sort(
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
