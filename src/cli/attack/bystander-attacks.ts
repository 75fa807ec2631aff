import { setTimeout as sleep } from 'node:timers/promises';
import {
  ALL_PACKETS,
  type Attack,
  asksForSocket,
  attacksOn,
  freshName,
  getsSecret,
  IN_PART,
  LAUNCHER,
  onlyIf,
  type Place,
  type Stage,
  says,
} from './attack.ts';
import { isKilled, markedProcesses, socketIn } from './bystander.ts';

/** Says a word to a server of the victim; it worked if the word came. */
const tells =
  (move: string, to: (place: Place) => string | number): Stage =>
  (place) => {
    const word = freshName();
    const target = to(place);
    onlyIf(typeof target === 'string' || !place.isListed(target), 'the policy lists this machine');
    return { move: [move, String(target), word], worked: () => place.victim.got(word) };
  };

const sends =
  (move: string): Stage =>
  (place) => {
    const number = place.signal();
    return {
      move: [move, String(place.victim.pid), String(number)],
      worked: () => place.victim.got(`signal-${number}`),
    };
  };

/** A look into the victim, of which the program itself says whether it could. */
const looks =
  (move: string, ...args: readonly string[]): Stage =>
  ({ victim }) => ({ move: [move, String(victim.pid), ...args] });

const tcp = ({ victim }: Place) => victim.tcp;
/** How long a process that was not killed may be seen after the end of its command before it counts as left behind. */
const GRACE_MS = 500;
/** How long one that was killed may take to be gone: on a busy machine it waits for a processor. */
const KILLED_GRACE_MS = 10_000;
const STEP_MS = 20;

const leavesDaemon: Stage = (place) => {
  const mark = freshName();
  const worked = async () => {
    const ended = Date.now();
    for (;;) {
      const left = markedProcesses(mark);
      if (left.length === 0) return false;
      if (!place.inSandbox) return true;
      const waited = Date.now() - ended;
      if (waited > GRACE_MS && !left.every(isKilled)) return true;
      if (waited > KILLED_GRACE_MS) throw new Error('the process was killed, and is not gone yet');
      await sleep(STEP_MS);
    }
  };
  return { move: ['daemonize', '20', mark], mark, worked };
};

/**
 * Reaching servers of the host: by the network, by sockets with a path, by abstract ones. Signals to, and looks into, a
 * process of the same user; a process that stays.
 */
export const BYSTANDER_ATTACKS: readonly Attack[] = [
  ...attacksOn('network', [
    ['connect-tcp', 'connects to a server on 127.0.0.1', tells('tcp', tcp), IN_PART],
    ['connect-tcp-mapped', 'the same by an IPv6 socket', tells('tcp-mapped', tcp), IN_PART],
    ['fast-open', 'connects by sending (TCP fast open)', tells('fast-open', tcp), IN_PART],
    ['connect-mptcp', 'connects by MPTCP', tells('mptcp', tcp), IN_PART],
    ['send-udp', 'sends a datagram', tells('udp', ({ victim }) => victim.udp), IN_PART],
    ['raw-socket', 'asks for a raw socket', asksForSocket(2, 3, 1)],
    ['packet-socket', 'asks for a packet socket', asksForSocket(17, 3, ALL_PACKETS)],
    ['vsock', 'asks for a socket to the hypervisor (AF_VSOCK)', asksForSocket(40, 1, 0)],
    ['crypto-socket', 'asks for a socket of the kernel’s cryptography (AF_ALG)', asksForSocket(38, 5, 0)],
    ['netlink-socket', 'asks for a netlink socket other than for routes', asksForSocket(16, 3, 15)],
  ]),
  ...attacksOn('unix-sockets', [
    [
      'connect-path-socket',
      'connects to a socket by path, outside',
      tells('local-stream', ({ outside }) => socketIn(outside)),
      IN_PART,
    ],
    [
      'send-to-path-socket',
      'sends a datagram to one',
      tells('local-datagram', ({ outside }) => `${socketIn(outside)}.datagram`),
      IN_PART,
    ],
    [
      'connect-socket-in-workspace',
      'connects to a server of the host whose socket lies in the workspace',
      tells('local-stream', ({ workspace }) => socketIn(workspace)),
    ],
  ]),
  ...attacksOn('abstract-sockets', [
    [
      'connect-abstract-socket',
      'connects to an abstract socket',
      tells('local-stream', ({ victim }) => victim.abstract),
    ],
    [
      'send-to-abstract-socket',
      'sends a datagram to one',
      tells('local-datagram', ({ victim }) => `${victim.abstract}.datagram`),
    ],
  ]),
  ...attacksOn('signals', [
    ['kill', 'sends a signal to a process of the user', sends('kill')],
    ['kill-group', 'sends it to a process group', sends('kill-group')],
    ['kill-thread', 'sends it to a thread', sends('kill-thread')],
    ['queue-signal', 'queues it with a value', sends('queue-signal')],
    ['kill-by-descriptor', 'sends it by a process descriptor', sends('kill-by-descriptor')],
    ['signal-by-owner', 'lets the kernel send it, as the owner of a pipe', sends('signal-by-owner')],
  ]),
  ...attacksOn('process-inspection', [
    [
      'read-environment-of-process',
      'reads the environment of a process of the user',
      getsSecret(({ victim }) => ['environment-of', String(victim.pid), 'SANDBOX_RUN_BYSTANDER']),
    ],
    [
      'read-environment-of-launcher',
      'reads the environment of the launcher',
      says('environment-of', LAUNCHER, 'PATH'),
    ],
    [
      'read-memory',
      'reads its memory by /proc/PID/mem',
      getsSecret(({ victim }) => ['memory-of', String(victim.pid), victim.address]),
    ],
    [
      'process-vm-readv',
      'reads its memory by process_vm_readv',
      getsSecret(({ victim }) => ['read-memory-of', String(victim.pid), victim.address]),
    ],
    ['attach', 'takes it over (ptrace)', looks('attach')],
    ['attach-launcher', 'takes over the launcher', says('attach', LAUNCHER)],
    ['read-maps', 'reads its memory map', looks('map-of')],
    ['take-descriptor', 'takes a descriptor of it (pidfd_getfd)', looks('descriptor-of')],
    ['see-working-directory', 'asks for its working directory', looks('link-of', 'cwd')],
    ['see-descriptors', 'asks for what its descriptors are', looks('link-of', 'fd/0')],
  ]),
  ...attacksOn('process-tree', [
    [
      'leave-daemon',
      'leaves a process behind, in a session of its own',
      leavesDaemon,
      { manner: 'alone', ...IN_PART },
    ],
  ]),
];
