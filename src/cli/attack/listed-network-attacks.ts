import {
  ALL_PACKETS,
  type Attack,
  asksForSocket,
  attacksOn,
  freshName,
  LAUNCHER,
  onlyIf,
  type Place,
  type Stage,
  says,
} from './attack.ts';

/** Says a word to a server that is not listed; it worked if the word came. */
const tells =
  (move: string, ...to: readonly ((place: Place) => number)[]): Stage =>
  (place) => {
    const word = freshName();
    onlyIf(!place.isListed(tcp(place)), 'the policy lists this machine');
    return {
      move: [move, ...to.map((port) => String(port(place))), word],
      worked: () => place.victim.got(word),
    };
  };

const tcp = ({ victim }: Place) => victim.tcp;
const udp = ({ victim }: Place) => victim.udp;
const listed = ({ victim }: Place) => victim.listed;

/**
 * Ways out of a network that is listed: another server than the one that is listed is to be reached. The sandbox is one of
 * their own, in which that server must be reached, or nothing counts.
 */
export const LISTED_NETWORK_ATTACKS: readonly Attack[] = attacksOn(
  'network',
  [
    ['unlisted-tcp', 'connects to a server that is not listed, while another is', tells('tcp', tcp)],
    ['unlisted-tcp-mapped', 'the same by an IPv6 socket', tells('tcp-mapped', tcp)],
    ['unlisted-fast-open', 'connects by sending (sendto, TCP fast open)', tells('fast-open', tcp)],
    ['unlisted-fast-open-message', 'the same by sendmsg', tells('fast-open-message', tcp)],
    ['unlisted-fast-open-option', 'connects with its first word', tells('fast-open-option', tcp)],
    ['unlisted-mptcp', 'connects by MPTCP', tells('mptcp', tcp)],
    ['unlisted-udp', 'sends a datagram: a question to a name server of its own, say', tells('udp', udp)],
    ['unlisted-udp-connected', 'the same by a socket that is connected', tells('udp-connected', udp)],
    ['unlisted-udp-message', 'the same by sendmsg', tells('udp-message', udp)],
    [
      'turn-connection',
      'dissolves a connection to what is listed, and connects elsewhere',
      tells('turn-round', tcp, listed),
    ],
    ['pass-socket', 'has another process connect a socket that it was passed', tells('pass-socket', tcp)],
    [
      'flip-address',
      'changes the address in a second thread while it connects',
      tells('flip-while-connecting', tcp, listed),
    ],
    [
      'swap-descriptor',
      'changes which socket a number stands for while it is connected',
      tells('swap-while-connecting', tcp, listed),
    ],
    [
      'swap-descriptor-sending',
      'the same while a datagram is sent (sendmsg)',
      tells('swap-while-sending', udp),
    ],
    ['listed-raw-socket', 'asks for a raw socket', asksForSocket(2, 3, 1)],
    ['listed-packet-socket', 'asks for a packet socket', asksForSocket(17, 3, ALL_PACKETS)],
    ['listed-sctp', 'asks for an SCTP socket', asksForSocket(2, 1, 132)],
    ['listed-udp-lite', 'asks for a UDP-Lite socket', asksForSocket(2, 2, 136)],
    ['listed-ping-socket', 'asks for a socket for ping', asksForSocket(2, 2, 1)],
    ['listed-vsock', 'asks for a socket to the hypervisor (AF_VSOCK)', asksForSocket(40, 1, 0)],
    ['listed-netlink', 'asks for a netlink socket other than for routes', asksForSocket(16, 3, 15)],
    ['listed-io-uring', 'makes a ring for io_uring, which connects past filters', says('io-uring')],
    ['open-launcher-memory', 'opens the memory of who decides for writing', says('open-memory', LAUNCHER)],
    ...(process.arch === 'x64'
      ? ([
          [
            'unlisted-int80',
            'connects by the numbers of 32-bit programs',
            tells('connect-by-old-table', tcp),
          ],
          ['unlisted-x32', 'connects by the numbers of x32', tells('connect-by-other-table', tcp)],
        ] as const)
      : []),
  ],
  { manner: 'listed' },
);
