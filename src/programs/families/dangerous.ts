import { type ProgramRow, programs } from '../behaviour.ts';
import { argumentOf } from '../use.ts';

/** Programs that are refused in every autonomy level, unless the policy permits them by name. */
export const DANGEROUS: readonly ProgramRow[] = [
  ...programs('sudo su doas pkexec sudoedit gosu su-exec run0 dzdo calife super', 'high', 'unknown', {
    danger: 'privilege',
    operands: 'none',
  }),
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
    'systemctl service mount umount iptables ip6tables iptables-restore nft ufw firewall-cmd useradd userdel usermod groupadd groupdel groupmod adduser deluser addgroup delgroup passwd chpasswd gpasswd chsh chfn vipw visudo crontab at batch setcap sysctl systemd-run systemd-nspawn initctl rc-service rc-update update-rc.d chkconfig telinit init pivot_root switch_root fusermount fusermount3 setenforce semanage restorecon auditctl aa-teardown apparmor_parser launchctl defaults hwclock grub-install update-grub update-initramfs efibootmgr',
    'high',
    'unknown',
    { danger: 'system', operands: 'none' },
  ),
  ...programs(
    'docker podman kubectl nerdctl docker-compose podman-compose oc ctr crictl buildah skopeo runc crun lxc lxc-start lxc-attach machinectl apptainer singularity dockerd containerd',
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
