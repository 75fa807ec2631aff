import { chmodSync, chownSync, copyFileSync, existsSync } from 'node:fs';
import { join } from 'node:path';
import { type Attack, type Place, showsSecret } from './attack.ts';

/** Somebody else than root. */
const ANOTHER = 65534;
/** Devices that programs of users have no part in; opening one of them does nothing by itself. */
const OTHER_DEVICES = ['/dev/net/tun', '/dev/kvm', '/dev/fuse', '/dev/loop-control', '/dev/kmsg', '/dev/mem'];

const asRoot = (stage: Attack['stage']): Attack['stage'] =>
  process.getuid?.() === 0 ? stage : () => 'only root could do it in the first place';

/** A program in the workspace that belongs to another user and is set-uid. */
function setUidProgram({ workspace, program, name }: Place): string {
  const path = join(workspace, name());
  copyFileSync(program, path);
  chownSync(path, ANOTHER, ANOTHER);
  chmodSync(path, 0o4755);
  return path;
}

const limited = (id: string, does: string) =>
  ({ id, control: 'resource-limits', does, manner: 'limited', claimedInPart: true }) as const;

/** How long more than the limit is used: long enough for whoever looks now and then. */
const HELD_MS = '500';

/** Devices and what the launcher has: rights, descriptors, variables, its terminal, the machine’s resources. */
export const OWN_ATTACKS: readonly Attack[] = [
  {
    id: 'open-device',
    control: 'devices',
    does: 'opens a device that is not listed',
    claimedInPart: true,
    stage: (place) => {
      const device = OTHER_DEVICES.find((path) => existsSync(path) && !place.isGranted(path));
      return device === undefined
        ? 'this machine has none, or the policy grants them'
        : { move: ['open-device', device] };
    },
  },
  {
    id: 'control-device',
    control: 'devices',
    does: 'sends an ioctl to a device that may only be read (/dev/urandom)',
    stage: () => ({ move: ['control-device', '/dev/urandom'] }),
  },
  {
    id: 'make-device',
    control: 'devices',
    does: 'makes a device file',
    claimedInPart: true,
    stage: asRoot((place) => ({ move: ['make-device', join(place.workspace, place.name())] })),
  },
  {
    id: 'type-into-terminal',
    control: 'terminal-injection',
    does: 'types into its terminal (TIOCSTI)',
    manner: 'terminal',
    stage: ({ inSandbox }) => ({ move: ['type', inSandbox ? 'standard-input' : 'own'] }),
  },
  {
    id: 'type-with-high-bits',
    control: 'terminal-injection',
    does: 'the same with bits that filters may overlook',
    manner: 'terminal',
    stage: ({ inSandbox }) => ({ move: ['type-with-high-bits', inSandbox ? 'standard-input' : 'own'] }),
  },
  {
    id: 'open-terminal',
    control: 'terminal-injection',
    does: 'opens the terminal of the user (/dev/tty)',
    claimedInPart: true,
    stage: () => ({ move: ['open-terminal'] }),
  },
  {
    id: 'has-capabilities',
    control: 'privileges',
    does: 'looks for capabilities that it was left',
    stage: () => ({ move: ['has-capabilities'] }),
  },
  {
    id: 'gain-by-execve',
    control: 'privileges',
    does: 'looks whether set-uid programs would give it rights (no_new_privs)',
    stage: () => ({ move: ['can-gain-privileges'] }),
  },
  {
    id: 'run-set-uid',
    control: 'privileges',
    does: 'runs a set-uid program of another user',
    stage: asRoot((place) => ({ move: ['become-owner', setUidProgram(place)] })),
  },
  {
    id: 'become-another',
    control: 'privileges',
    does: 'becomes another user',
    stage: asRoot(() => ({ move: ['become-another'] })),
  },
  {
    id: 'find-descriptors',
    control: 'descriptors',
    does: 'looks for open descriptors besides the standard ones',
    stage: () => ({ move: ['open-descriptors'] }),
  },
  {
    id: 'read-through-descriptor',
    control: 'descriptors',
    does: 'reads a file outside through a directory that the launcher has open',
    stage: (place) => ({
      move: ['read-through-descriptors', 'open-by-launcher'],
      worked: showsSecret(place),
    }),
  },
  {
    id: 'read-variable',
    control: 'environment',
    does: 'reads a secret variable of the launcher',
    stage: (place) => ({ move: ['variable', place.variable], worked: showsSecret(place) }),
  },
  {
    ...limited('many-processes', 'starts three times as many processes as it may'),
    stage: () => ({ move: ['processes', '150', HELD_MS] }),
  },
  {
    ...limited('much-memory', 'uses three times the memory that it may'),
    stage: () => ({ move: ['memory', '96', HELD_MS] }),
  },
  {
    ...limited('large-files', 'writes four times the temporary files that it may'),
    stage: ({ sharesTemporary }) =>
      sharesTemporary
        ? 'the policy shares the temporary directory, in which nothing is counted'
        : { move: ['files', '16', HELD_MS] },
  },
];

/** The limits of the sandbox for attacks of the manner `limited`. */
export const LOW_LIMITS = { processes: 50, memory: 32 << 20, tmpBytes: 4 << 20 } as const;
