import { type Behaviour, type Grammar, type ProgramRow, programs } from '../behaviour.ts';
import { argumentOf } from '../options.ts';
import { unreadable } from '../runs.ts';

const ENGINE: Grammar = {
  flags: 'D v debug tls version help',
  values: 'H c l L host context config log-level',
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
  ...programs(
    'mkfs mke2fs mkswap mkdosfs shred wipefs fdisk sfdisk cfdisk gdisk sgdisk parted partprobe badblocks hdparm blkdiscard nvme losetup cryptsetup dmsetup lvcreate lvremove vgcreate vgremove pvcreate pvremove mdadm zpool zfs debugfs tune2fs resize2fs e2fsck fsck swapon swapoff',
    'high',
    'local',
    {
      danger: 'device',
      operands: 'guess',
    },
  ),
  ...programs('dd', 'high', 'local', {
    operands: 'none',
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
    { danger: 'system', operands: 'none' },
  ),
  ...programs('at batch', 'high', 'unknown', { danger: 'system', operands: 'none', runs: unreadable }),
  ...programs('systemd-run', 'high', 'unknown', {
    danger: 'system',
    operands: 'none',
    launches: { directory: 'working-directory' },
    grammar: {
      stopAtOperand: true,
      flags: 'd P q r G t S help version user system scope wait pipe pty quiet collect same-dir',
      values: 'H M p u E unit property slice setenv working-directory uid gid description',
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
