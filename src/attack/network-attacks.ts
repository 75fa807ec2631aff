import type { Attack, Place } from './attack.ts';

/** Says a word to a server of the victim; it worked if the word came. */
function says(attack: Omit<Attack, 'stage'>, move: string, to: (place: Place) => string | number): Attack {
  return {
    ...attack,
    stage: (place) => {
      const word = place.name();
      return { move: [move, String(to(place)), word], worked: () => place.victim.got(word) };
    },
  };
}

const network = (id: string, does: string) => ({ id, does, control: 'network' }) as const;
const inPart = { claimedInPart: true } as const;

const asks = (id: string, does: string, ...what: readonly [number, number, number]): Attack => ({
  ...network(id, does),
  stage: () => ({ move: ['ask-for-socket', ...what.map(String)] }),
});

/** `htons(ETH_P_ALL)`. */
const ALL_PACKETS = 0x0300;

/** Reaching servers of the host: by the network, by sockets with a path, by abstract ones. */
export const NETWORK_ATTACKS: readonly Attack[] = [
  says(
    { ...network('connect-tcp', 'connects to a server on 127.0.0.1'), ...inPart },
    'tcp',
    (p) => p.victim.tcp,
  ),
  says(
    { ...network('connect-tcp-mapped', 'the same by an IPv6 socket'), ...inPart },
    'tcp-mapped',
    (p) => p.victim.tcp,
  ),
  says(
    { ...network('fast-open', 'connects by sending (TCP fast open)'), ...inPart },
    'fast-open',
    (p) => p.victim.tcp,
  ),
  says({ ...network('connect-mptcp', 'connects by MPTCP'), ...inPart }, 'mptcp', (p) => p.victim.tcp),
  says({ ...network('send-udp', 'sends a datagram'), ...inPart }, 'udp', (p) => p.victim.udp),
  asks('raw-socket', 'asks for a raw socket', 2, 3, 1),
  asks('packet-socket', 'asks for a packet socket', 17, 3, ALL_PACKETS),
  asks('vsock', 'asks for a socket to the hypervisor (AF_VSOCK)', 40, 1, 0),
  asks('crypto-socket', 'asks for a socket of the kernel’s cryptography (AF_ALG)', 38, 5, 0),
  asks('netlink-socket', 'asks for a netlink socket other than for routes', 16, 3, 15),
  says(
    {
      id: 'connect-path-socket',
      control: 'unix-sockets',
      does: 'connects to a socket by path, outside',
      ...inPart,
    },
    'local-stream',
    (p) => p.socketOutside,
  ),
  says(
    { id: 'send-to-path-socket', control: 'unix-sockets', does: 'sends a datagram to one', ...inPart },
    'local-datagram',
    (p) => `${p.socketOutside}.datagram`,
  ),
  says(
    {
      id: 'connect-socket-in-workspace',
      control: 'unix-sockets',
      does: 'connects to a server of the host whose socket lies in the workspace',
    },
    'local-stream',
    (p) => p.socketInside,
  ),
  says(
    { id: 'connect-abstract-socket', control: 'abstract-sockets', does: 'connects to an abstract socket' },
    'local-stream',
    (p) => p.victim.abstract,
  ),
  says(
    { id: 'send-to-abstract-socket', control: 'abstract-sockets', does: 'sends a datagram to one' },
    'local-datagram',
    (p) => `${p.victim.abstract}.datagram`,
  ),
];
