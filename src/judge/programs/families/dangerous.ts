import { prefixOf } from '../../../model/index.ts';
import {
  type Behaviour,
  type Call,
  finding,
  type ProgramRow,
  programs,
  type Runs,
  withVersion,
} from '../behaviour.ts';
import {
  argumentOf,
  behindOptions,
  hasOption,
  isHarmlessDevice,
  NOTHING,
  optionValue,
  readOptions,
  refused,
  runText,
  runWords,
  unreadable,
} from '../options.ts';

/** `sudo [options] [NAME=value] command`. */
const runsOfSudo = behindOptions((read, call) => {
  const first = read.rest.findIndex((word) => !/^[A-Za-z_][A-Za-z0-9_]*=/.test(prefixOf(word)));
  const command = first === -1 ? [] : read.rest.slice(first);
  if (hasOption(read, 'e edit')) return NOTHING;
  if (hasOption(read, 's i shell login')) return shellOf(call, command);
  return runWords(command, optionValue(read.options, 'D chdir'));
});

/** sudo escapes the words for its shell, so that they are words again. */
function shellOf(call: Call, command: Parameters<typeof runWords>[0]): Runs {
  if (command.length > 0) return runWords(command);
  return refused(
    `${call.name} would start a shell that reads its standard input: name the command.`,
    call.words[0],
  );
}

const runsOfDoas = behindOptions((read, call) => {
  if (hasOption(read, 'L C')) return NOTHING;
  return hasOption(read, 's') ? shellOf(call, []) : runWords(read.rest);
});

/** `su [options] [-] [user]` with `-c text`; runuser likewise, and `runuser -u user command`. */
function runsOfSu(call: Call): Runs {
  const before = readOptions(call.args, call.grammar);
  if (before.ok && call.name === 'runuser' && hasOption(before, 'u user')) return runWords(before.rest);
  const read = readOptions(call.args, call.grammar, 'anywhere');
  if (!read.ok) return refused(`${call.name}: ${read.message}`, read.word);
  if (hasOption(read, 'help version h V')) return NOTHING;
  const other = optionValue(read.options, 's shell');
  if (other !== undefined && !/^\/(?:usr\/)?bin\/(?:ba|da)?sh$/.test(other.value ?? '')) {
    return refused(`${call.name}: the shell ${other.source} is not known.`, other);
  }
  if (read.rest.filter((word) => word.value !== '-').length > 1) {
    return refused(`${call.name}: words behind the user go to the shell: use -c.`, call.words[0]);
  }
  const text = optionValue(read.options, 'c command session-command C');
  if (text === undefined) return shellOf(call, []);
  return runText([text]);
}

/** Programs that run another one as another user. */
const PRIVILEGE: readonly ProgramRow[] = [
  ...programs('sudo', 'high', 'unknown', () => ({
    danger: 'privilege',
    operands: 'none',
    runs: runsOfSudo,
    grammar: 'sudo',
  })),
  ...programs('doas', 'high', 'unknown', () => ({
    danger: 'privilege',
    operands: 'none',
    runs: runsOfDoas,
    // `-a` is of OpenBSD.
    grammar: 'doas',
  })),
  ...programs('su', 'high', 'unknown', () => ({
    danger: 'privilege',
    operands: 'none',
    runs: runsOfSu,
    grammar: 'su',
  })),
  ...programs('runuser', 'high', 'unknown', () => ({
    danger: 'privilege',
    operands: 'none',
    runs: runsOfSu,
    grammar: 'su',
  })),
  ...programs('pkexec', 'high', 'unknown', () => ({
    danger: 'privilege',
    operands: 'none',
    launches: {},
    grammar: 'pkexec',
  })),
  ...programs('gosu su-exec', 'high', 'unknown', () => ({
    danger: 'privilege',
    operands: 'none',
    launches: { operands: 1 },
    grammar: 'gosu',
  })),
  ...programs('sudoedit run0 dzdo calife super', 'high', 'unknown', () => ({
    danger: 'privilege',
    operands: 'none',
  })),
];

/** `docker exec [options] container command`: runs inside of the container. */
const EXEC: Behaviour = {
  launches: { operands: 1, elsewhere: true },
  grammar: 'docker exec',
};

/** Programs that are refused in every autonomy level, unless the policy permits them by name. */
export const DANGEROUS: readonly ProgramRow[] = [
  ...PRIVILEGE,
  ...programs(
    'mkfs mke2fs mkswap mkdosfs shred wipefs fdisk sfdisk cfdisk gdisk sgdisk parted partprobe badblocks hdparm blkdiscard nvme losetup cryptsetup dmsetup lvcreate lvremove vgcreate vgremove pvcreate pvremove mdadm zpool zfs debugfs tune2fs resize2fs e2fsck fsck swapon swapoff',
    'high',
    'local',
    () => ({
      danger: 'device',
    }),
    withVersion('mkfs'),
  ),
  ...programs('dd', 'high', 'local', () => ({
    operands: 'none',
    dangers: ({ operands }) =>
      operands
        .filter(({ text }) => text.startsWith('of=/dev/') && !isHarmlessDevice(text.slice(3)))
        .map(({ word: { source } }) =>
          finding('writes', 'device', `would write a device: ${source}`, source),
        ),
    paths: ({ operands }) =>
      operands.flatMap(({ word, text }) =>
        /^[io]f=/.test(text)
          ? [
              {
                argument: argumentOf(word, 3),
                effect: text[0] === 'o' ? ('writes' as const) : ('reads' as const),
              },
            ]
          : [],
      ),
  })),
  ...programs('chown', 'high', 'local', () => ({ danger: 'system', operands: 'none' })),
  ...programs(
    'systemctl service mount umount iptables ip6tables iptables-restore nft ufw firewall-cmd useradd userdel usermod groupadd groupdel groupmod adduser deluser addgroup delgroup passwd chpasswd gpasswd chsh chfn vipw visudo crontab setcap sysctl systemd-nspawn initctl rc-service rc-update update-rc.d chkconfig telinit init pivot_root switch_root fusermount fusermount3 setenforce semanage restorecon auditctl aa-teardown apparmor_parser launchctl defaults hwclock grub-install update-grub update-initramfs efibootmgr',
    'high',
    'unknown',
    () => ({ danger: 'system', operands: 'none' }),
    withVersion('mount'),
  ),
  ...programs('at batch', 'high', 'unknown', () => ({
    danger: 'system',
    operands: 'none',
    runs: unreadable,
  })),
  ...programs('systemd-run', 'high', 'unknown', () => ({
    danger: 'system',
    operands: 'none',
    launches: { directory: 'working-directory' },
    grammar: 'systemd-run',
  })),
  ...programs('docker podman nerdctl', 'high', 'unknown', () => ({
    danger: 'container',
    operands: 'none',
    grammar: 'docker',
    verbs: { exec: EXEC, container: { verbs: { exec: EXEC } } },
  })),
  ...programs(
    'kubectl docker-compose podman-compose oc ctr crictl buildah skopeo runc crun lxc lxc-start lxc-attach machinectl apptainer singularity dockerd containerd',
    'high',
    'unknown',
    () => ({ danger: 'container', operands: 'none' }),
  ),
  ...programs('shutdown reboot halt poweroff kexec pm-suspend rtcwake', 'high', 'local', () => ({
    danger: 'power',
    operands: 'none',
  })),
  ...programs('insmod rmmod modprobe depmod dkms kmod', 'high', 'local', () => ({
    danger: 'kernel',
    operands: 'none',
  })),
];
