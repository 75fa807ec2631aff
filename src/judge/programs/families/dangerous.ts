import { prefixOf } from '../../../model/index.ts';
import {
  type Behaviour,
  type Call,
  finding,
  type Grammar,
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

const SU: Grammar = {
  source: 'util-linux 2.38.1',
  flags: 'f l m p P h V login preserve-environment fast pty help version',
  values: 'c C s g G w T u command session-command shell group supp-group whitelist-environment user',
};

/** Programs that run another one as another user. */
const PRIVILEGE: readonly ProgramRow[] = [
  ...programs('sudo', 'high', 'unknown', {
    danger: 'privilege',
    operands: 'none',
    runs: runsOfSudo,
    grammar: {
      source: 'sudo 1.9.13p3',
      flags:
        'A b B e E H i K k l n P S s V v N askpass background bell edit set-home help login remove-timestamp reset-timestamp list non-interactive no-update preserve-groups stdin shell version validate',
      values:
        'C D g h p R r t T U u close-from chdir group host prompt chroot role type command-timeout other-user user',
      optionals: 'preserve-env',
    },
  }),
  ...programs('doas', 'high', 'unknown', {
    danger: 'privilege',
    operands: 'none',
    runs: runsOfDoas,
    // `-a` is of OpenBSD.
    grammar: { source: 'opendoas 6.8.2', flags: 'L n s', values: 'a C u' },
  }),
  ...programs('su', 'high', 'unknown', {
    danger: 'privilege',
    operands: 'none',
    runs: runsOfSu,
    grammar: SU,
  }),
  ...programs('runuser', 'high', 'unknown', {
    danger: 'privilege',
    operands: 'none',
    runs: runsOfSu,
    grammar: SU,
  }),
  ...programs('pkexec', 'high', 'unknown', {
    danger: 'privilege',
    operands: 'none',
    launches: {},
    grammar: {
      source: 'polkit 122',
      flags: 'help version disable-internal-agent keep-cwd',
      values: 'user',
    },
  }),
  ...programs('gosu su-exec', 'high', 'unknown', {
    danger: 'privilege',
    operands: 'none',
    launches: { operands: 1 },
    grammar: { source: 'gosu 1.14', flags: 'help version' },
  }),
  ...programs('sudoedit run0 dzdo calife super', 'high', 'unknown', {
    danger: 'privilege',
    operands: 'none',
  }),
];

const ENGINE: Grammar = {
  source: 'docker 20.10.24',
  flags: 'D v debug tls tlsverify version help',
  values: 'H c l L host context config log-level tlscacert tlscert tlskey',
};
/** `docker exec [options] container command`: runs inside of the container. */
const EXEC: Behaviour = {
  launches: { operands: 1, elsewhere: true },
  grammar: {
    flags: 'd i t detach interactive tty privileged',
    values: 'e u w env env-file user workdir detach-keys',
  },
};

/** Programs that are refused in every autonomy level, unless the policy permits them by name. */
export const DANGEROUS: readonly ProgramRow[] = [
  ...PRIVILEGE,
  ...programs(
    'mkfs mke2fs mkswap mkdosfs shred wipefs fdisk sfdisk cfdisk gdisk sgdisk parted partprobe badblocks hdparm blkdiscard nvme losetup cryptsetup dmsetup lvcreate lvremove vgcreate vgremove pvcreate pvremove mdadm zpool zfs debugfs tune2fs resize2fs e2fsck fsck swapon swapoff',
    'high',
    'local',
    {
      alsoCalled: withVersion('mkfs'),
      danger: 'device',
    },
  ),
  ...programs('dd', 'high', 'local', {
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
  }),
  ...programs('chown', 'high', 'local', { danger: 'system', operands: 'none' }),
  ...programs(
    'systemctl service mount umount iptables ip6tables iptables-restore nft ufw firewall-cmd useradd userdel usermod groupadd groupdel groupmod adduser deluser addgroup delgroup passwd chpasswd gpasswd chsh chfn vipw visudo crontab setcap sysctl systemd-nspawn initctl rc-service rc-update update-rc.d chkconfig telinit init pivot_root switch_root fusermount fusermount3 setenforce semanage restorecon auditctl aa-teardown apparmor_parser launchctl defaults hwclock grub-install update-grub update-initramfs efibootmgr',
    'high',
    'unknown',
    { alsoCalled: withVersion('mount'), danger: 'system', operands: 'none' },
  ),
  ...programs('at batch', 'high', 'unknown', { danger: 'system', operands: 'none', runs: unreadable }),
  ...programs('systemd-run', 'high', 'unknown', {
    danger: 'system',
    operands: 'none',
    launches: { directory: 'working-directory' },
    grammar: {
      stopAtOperand: true,
      source: 'systemd 252',
      flags:
        'd h P q r G t S help version user system scope wait pipe pty quiet collect same-dir shell no-ask-password no-block remain-after-exit send-sighup slice-inherit on-clock-change on-timezone-change',
      values:
        'H M p u E host machine unit property slice setenv working-directory uid gid description nice service-type on-active on-boot on-startup on-unit-active on-unit-inactive on-calendar path-property socket-property timer-property',
    },
  }),
  ...programs('docker podman nerdctl', 'high', 'unknown', {
    danger: 'container',
    operands: 'none',
    grammar: { ...ENGINE, open: true },
    verbs: { exec: EXEC, container: { verbs: { exec: EXEC } } },
  }),
  ...programs(
    'kubectl docker-compose podman-compose oc ctr crictl buildah skopeo runc crun lxc lxc-start lxc-attach machinectl apptainer singularity dockerd containerd',
    'high',
    'unknown',
    { danger: 'container', operands: 'none' },
  ),
  ...programs('shutdown reboot halt poweroff kexec pm-suspend rtcwake', 'high', 'local', {
    danger: 'power',
    operands: 'none',
  }),
  ...programs('insmod rmmod modprobe depmod dkms kmod', 'high', 'local', {
    danger: 'kernel',
    operands: 'none',
  }),
];
