import { setTimeout as sleep } from 'node:timers/promises';
import { type Attack, type Place, showsSecret } from './attack.ts';
import { markedProcesses } from './marked-processes.ts';

const signals = (id: string, does: string, move: string): Attack => ({
  id,
  control: 'signals',
  does,
  stage: (place) => {
    const number = place.signal();
    return {
      move: [move, String(place.victim.pid), String(number)],
      worked: () => place.victim.got(`signal-${number}`),
    };
  },
});

const inspects = (
  id: string,
  does: string,
  move: (place: Place, pid: string) => readonly [string, ...string[]],
  isShown: boolean,
): Attack => ({
  id,
  control: 'process-inspection',
  does,
  stage: (place) => ({
    move: move(place, String(place.victim.pid)),
    ...(isShown ? { worked: showsSecret(place) } : {}),
  }),
});

/** What a process has after the end of its command to be gone. */
const GRACE_MS = 500;
const STEP_MS = 20;

/** Signals to, and looks into, a process of the same user; a process that stays. */
export const PROCESS_ATTACKS: readonly Attack[] = [
  signals('kill', 'sends a signal to a process of the user', 'kill'),
  signals('kill-group', 'sends it to a process group', 'kill-group'),
  signals('kill-thread', 'sends it to a thread', 'kill-thread'),
  signals('queue-signal', 'queues it with a value', 'queue-signal'),
  signals('kill-by-descriptor', 'sends it by a process descriptor', 'kill-by-descriptor'),
  signals('signal-by-owner', 'lets the kernel send it, as the owner of a pipe', 'signal-by-owner'),
  inspects(
    'read-environment-of-process',
    'reads the environment of a process of the user',
    (_, pid) => ['environment-of', pid, 'SANDBOX_RUN_BYSTANDER'],
    true,
  ),
  inspects(
    'read-environment-of-launcher',
    'reads the environment of the launcher',
    () => ['environment-of', String(process.pid), 'PATH'],
    false,
  ),
  inspects(
    'read-memory',
    'reads its memory by /proc/PID/mem',
    ({ victim }, pid) => ['memory-of', pid, victim.address],
    true,
  ),
  inspects(
    'process-vm-readv',
    'reads its memory by process_vm_readv',
    ({ victim }, pid) => ['read-memory-of', pid, victim.address],
    true,
  ),
  inspects('attach', 'takes it over (ptrace)', (_, pid) => ['attach', pid], false),
  inspects('attach-launcher', 'takes over the launcher', () => ['attach', String(process.pid)], false),
  inspects('read-maps', 'reads its memory map', (_, pid) => ['map-of', pid], false),
  inspects(
    'take-descriptor',
    'takes a descriptor of it (pidfd_getfd)',
    (_, pid) => ['descriptor-of', pid],
    false,
  ),
  inspects(
    'see-working-directory',
    'asks for its working directory',
    (_, pid) => ['link-of', pid, 'cwd'],
    false,
  ),
  inspects(
    'see-descriptors',
    'asks for what its descriptors are',
    (_, pid) => ['link-of', pid, 'fd/0'],
    false,
  ),
  {
    id: 'leave-daemon',
    control: 'process-tree',
    does: 'leaves a process behind, in a session of its own',
    manner: 'alone',
    claimedInPart: true,
    stage: (place) => {
      const mark = place.name();
      return {
        move: ['daemonize', '20', mark],
        mark,
        worked: async () => {
          const ended = Date.now() + (place.inSandbox ? GRACE_MS : 0);
          while (markedProcesses(mark).length > 0 && Date.now() < ended) await sleep(STEP_MS);
          return markedProcesses(mark).length > 0;
        },
      };
    },
  },
];
