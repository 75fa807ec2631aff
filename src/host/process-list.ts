import { readFileSync } from 'node:fs';
import { refuseShortage, refuseShortageOf } from '../errors/shortage.ts';
import { errnoName } from '../kernel/errno.ts';
import type { Facility } from '../model/host-features.ts';

/** `ESRCH` of `NativeAddon.processListErrno`. */
const OTHER_NAMESPACE = 'ESRCH';

/**
 * Whether every process of a tree can be seen in /proc.
 * `seesAll`: we have CAP_SYS_PTRACE, from which no mount option hides anything.
 */
export function processListFacility(errno: number, seesAll: boolean, mounts = readMounts): Facility {
  if (errno !== 0) {
    const name = errnoName(errno);
    refuseShortageOf(name);
    const reason =
      name === OTHER_NAMESPACE
        ? '/proc is that of another process namespace (mount one that belongs to this, as `unshare --mount-proc` does)'
        : `/proc cannot be read (${name}), as if it was not mounted`;
    return { available: false, reason };
  }
  const option = seesAll ? undefined : hidingOption(mounts());
  return option === undefined
    ? { available: true }
    : {
        available: false,
        reason: `/proc is mounted with ${option}, from which a process can hide itself (prctl(PR_SET_DUMPABLE))`,
      };
}

/** The last mount at /proc is the one that is seen. */
function hidingOption(mounts: string): string | undefined {
  let option: string | undefined;
  for (const line of mounts.split('\n')) {
    const [place = '', filesystem = ''] = line.split(' - ');
    if (place.split(' ')[4] !== '/proc') continue;
    option = /(?:^|[ ,])(hidepid=(?!0|off)\w+)/.exec(filesystem)?.[1];
  }
  return option;
}

function readMounts(): string {
  try {
    return readFileSync('/proc/self/mountinfo', 'utf8');
  } catch (error) {
    refuseShortage(error);
    return '';
  }
}
