import { readFileSync } from 'node:fs';
import { arch, release, totalmem } from 'node:os';
import { SandboxError } from '../base/errors/sandbox-error.ts';
import { readOr, refuseShortageOf } from '../base/errors/shortage.ts';
import { errnoName } from './kernel/errno.ts';
import type { NativeAddon } from './native/contract.ts';
import { loadAddon } from './native/load.ts';
import type { Facility, HostFeatures } from './plan/host-features.ts';

const AVAILABLE: Facility = { available: true };
const CAP_SYS_PTRACE = 19n;
/** @see capabilities(7) */
export const CAP_SYS_ADMIN = 21n;

let cached: HostFeatures | undefined;

/**
 * What the host offers, asked once per process. Namespaces and seccomp's listeners are assumed here: whether they can be
 * had is found out by making those of the first sandbox.
 * @throws {SandboxError} `launch.failed` if there is too little of something to ask it now.
 */
export function probeHost(addon: NativeAddon = loadAddon()): HostFeatures {
  cached ??= probeNow(addon);
  return cached;
}

function probeNow(addon: NativeAddon): HostFeatures {
  const architecture = arch();
  if (architecture !== 'x64' && architecture !== 'arm64') {
    throw new SandboxError(
      'addon.unavailable',
      `sandbox-run supports x64 and arm64, this is ${architecture}`,
    );
  }
  const kernel = addon.probe();
  return {
    kernelRelease: release(),
    architecture,
    landlock:
      kernel.landlockAbi > 0 ? AVAILABLE : { available: false, reason: landlockReason(-kernel.landlockAbi) },
    landlockAbi: Math.max(0, kernel.landlockAbi),
    landlockErrata: kernel.landlockErrata,
    seccomp:
      kernel.seccompErrno === 0
        ? AVAILABLE
        : {
            available: false,
            reason: `the kernel refuses seccomp filters (${errnoName(-kernel.seccompErrno)})`,
          },
    namespaces: AVAILABLE,
    needsUserNamespace: !hasCapability(CAP_SYS_ADMIN),
    cgroup: probeCgroup(addon),
    memoryBytes: totalmem(),
    processList: processListFacility(addon.processListErrno(), hasCapability(CAP_SYS_PTRACE)),
    signalScope: kernel.landlockAbi >= 6 && probeSignalScope(addon),
    seccompListener: true,
  };
}

function probeSignalScope(addon: NativeAddon): boolean {
  const proven = addon.signalScope();
  if (typeof proven === 'boolean') return proven;
  const errno = errnoName(proven.errno);
  refuseShortageOf(errno, 'signal scopes');
  throw new SandboxError('launch.failed', `signal scopes cannot be tried (${proven.stage}: ${errno})`);
}

function probeCgroup(addon: NativeAddon): HostFeatures['cgroup'] {
  const found = addon.cgroupParent();
  if ('cloneInto' in found) return found;
  // In one that has as many as it may have (cgroup.max.descendants) there is none for us either, for good.
  const isForGood = found.stage === 'cgroup.create' && errnoName(found.errno) === 'EAGAIN';
  if (!isForGood) refuseShortageOf(errnoName(found.errno), 'control groups');
  const none = found.stage === 'cgroup.mount';
  return {
    path: undefined,
    reason: none
      ? 'cgroup v2 is not mounted'
      : `no control group with memory and processes can be made (${found.stage}: ${errnoName(found.errno)})`,
  };
}

/** @throws {SandboxError} as probeHost. */
function landlockReason(errno: number): string {
  refuseShortageOf(errnoName(errno), 'Landlock');
  switch (errnoName(errno)) {
    case 'ENOSYS':
      return 'the kernel is built without Landlock (needs 5.13 and CONFIG_SECURITY_LANDLOCK)';
    case 'EOPNOTSUPP':
      return 'Landlock is built in but disabled at boot (add landlock to the lsm= kernel parameter)';
    default:
      return `landlock_create_ruleset fails with ${errnoName(errno)} (an outer sandbox may refuse it)`;
  }
}

/** Whether this process has it in force. */
export function hasCapability(number: bigint): boolean {
  // Without /proc: try the way that needs no capability.
  const status = readOr(() => readFileSync('/proc/self/status', 'utf8'), '');
  const match = /^CapEff:\s*([0-9a-f]+)$/m.exec(status);
  return match?.[1] !== undefined && ((BigInt(`0x${match[1]}`) >> number) & 1n) === 1n;
}

/** `ESRCH` of `NativeAddon.processListErrno`. */
const OTHER_NAMESPACE = 'ESRCH';

/** Whether /proc shows every process of a tree. `seesAll`: we have CAP_SYS_PTRACE, from which no mount option hides any. */
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
  return readOr(() => readFileSync('/proc/self/mountinfo', 'utf8'), '');
}

/** Ids that there are: all but -1. */
const ALL = 0xffff_ffff;

/**
 * The user id that stands for all users without an id in our user namespace (user_namespaces(7)): a user who seems to be that
 * one may be any of them. `undefined`: every user has an id here, or nothing is known of user namespaces.
 */
export function ambiguousUid(read: (path: string) => string = readText): number | undefined {
  try {
    const rows = read('/proc/self/uid_map').trim().split('\n');
    const mapped = rows.reduce((sum, row) => sum + Number(row.trim().split(/\s+/)[2]), 0);
    return mapped >= ALL ? undefined : Number(read('/proc/sys/kernel/overflowuid'));
  } catch {
    return undefined;
  }
}

function readText(path: string): string {
  return readFileSync(path, 'utf8');
}
