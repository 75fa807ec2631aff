import {
  ALLOW,
  type ArgumentCondition,
  differs,
  equals,
  maskedEquals,
  refuseWith,
  type SeccompAction,
  type SeccompRule,
} from './ir.ts';

const AF_UNIX = 1;
const AF_INET = 2;
const AF_INET6 = 10;
const AF_NETLINK = 16;
const SOCK_STREAM = 1;
const SOCK_DGRAM = 2;
const SOCK_RAW = 3;
const SOCK_SEQPACKET = 5;
const NETLINK_ROUTE = 0;
const NETLINK_SOCK_DIAG = 4;
const IPPROTO_TCP = 6;
const IPPROTO_UDP = 17;
/** What a kernel may be built without: programs that ask for it do without where it is not supported, not where it is refused. */
const SELDOM_THERE = { IPPROTO_SCTP: 132, IPPROTO_UDPLITE: 136, IPPROTO_MPTCP: 262 };

/** The kernel reads the type from the low four bits; SOCK_NONBLOCK and SOCK_CLOEXEC are in the same argument. */
const SOCK_TYPE_MASK = 0xf;
/** Flag of sendto and its kin that connects and sends at once (include/linux/socket.h). */
const MSG_FASTOPEN = 0x2000_0000;

const [domain, type, protocol] = [0, 1, 2] as const;

/**
 * AF_UNIX of any type, plain TCP, plain UDP, route netlink and lists of sockets; every other family does not exist, and every other type or
 * protocol of those is refused. A protocol of 0 means the type's usual one.
 */
export const SOCKET_FAMILY_RULES: readonly SeccompRule[] = [
  socketRule(ALLOW, equals(domain, AF_UNIX)),
  inetRule(SOCK_STREAM, IPPROTO_TCP),
  inetRule(SOCK_DGRAM, IPPROTO_UDP),
  socketRule(ALLOW, equals(domain, AF_NETLINK), equals(protocol, NETLINK_ROUTE, NETLINK_SOCK_DIAG)),
  socketRule(
    refuseWith('EPROTONOSUPPORT'),
    equals(domain, AF_INET, AF_INET6),
    maskedEquals(type, SOCK_TYPE_MASK, SOCK_STREAM, SOCK_DGRAM, SOCK_SEQPACKET),
    equals(protocol, ...Object.values(SELDOM_THERE)),
  ),
  // An inet socket of type SOCK_PACKET becomes a packet socket in __sock_create; it is refused here by its type.
  socketRule(refuseWith('EACCES'), equals(domain, AF_INET, AF_INET6, AF_NETLINK)),
  socketRule(refuseWith('EAFNOSUPPORT')),
  { syscall: 'socketpair', when: [differs(domain, AF_UNIX)], action: refuseWith('EAFNOSUPPORT') },
];

/** No list of the sockets of the network namespace. */
export const SOCKET_DIAGNOSTICS_RULES: readonly SeccompRule[] = [
  socketRule(refuseWith('EACCES'), equals(domain, AF_NETLINK), equals(protocol, NETLINK_SOCK_DIAG)),
];

/** No socket that could reach another host, nor the loopback interface. */
export const NETWORK_OFF_RULES: readonly SeccompRule[] = [
  socketRule(refuseWith('EACCES'), equals(domain, AF_INET, AF_INET6)),
];

/** A datagram socket takes an address with every message. SOCK_RAW becomes SOCK_DGRAM in unix_create. */
const isDatagram = maskedEquals(type, SOCK_TYPE_MASK, SOCK_DGRAM, SOCK_RAW);
/** A pair of those can be connected anew, so it is no bound. */
const noDatagramPair: SeccompRule = {
  syscall: 'socketpair',
  when: [isDatagram],
  action: refuseWith('EACCES'),
};

/** No local socket with a name to connect to; socketpair stays, its two ends know only each other. */
export const UNIX_SOCKETS_OFF_RULES: readonly SeccompRule[] = [
  socketRule(refuseWith('EACCES'), equals(domain, AF_UNIX)),
  noDatagramPair,
];

/** No local socket that says by anything but connect where it leads. */
export const UNIX_DATAGRAMS_RULES: readonly SeccompRule[] = [
  socketRule(refuseWith('EACCES'), equals(domain, AF_UNIX), isDatagram),
  noDatagramPair,
];

/** Callers of TCP fast open take EOPNOTSUPP as "connect first". The flags are the last argument, except for sendto. */
export const TCP_FAST_OPEN_RULES: readonly SeccompRule[] = (
  [
    ['sendto', 3],
    ['sendmsg', 2],
    ['sendmmsg', 3],
  ] as const
).map(([syscall, flags]) => ({
  syscall,
  when: [maskedEquals(flags, MSG_FASTOPEN, MSG_FASTOPEN)],
  action: refuseWith('EOPNOTSUPP'),
}));

/** Options of a connection that send it by way of other hosts, or with extension headers (linux/in.h, linux/in6.h). */
const ROUTE_OPTIONS = [
  { level: 0, names: [4 /* IP_OPTIONS */] },
  {
    level: 41,
    // IPV6_2292PKTOPTIONS, 2292HOPOPTS, 2292DSTOPTS, 2292RTHDR, HOPOPTS, RTHDRDSTOPTS, RTHDR, DSTOPTS.
    names: [6, 3, 4, 5, 54, 55, 57, 59],
  },
];

/**
 * What a socket tells of the network interfaces of the namespace that it was made in, and how it changes them: names and
 * addresses, neighbours, drivers, bridges, wireless networks (linux/sockios.h, linux/wireless.h). Outside of these ranges
 * are the requests about the socket itself.
 */
const INTERFACE_REQUESTS = [
  maskedEquals(1, 0xffff_fff0, 0x8910, 0x8920, 0x8930, 0x8950, 0x8960, 0x8970, 0x8980, 0x8990),
  maskedEquals(1, 0xffff_fff0, 0x89a0, 0x89b0, 0x89e0, 0x89f0),
  // SIOCADDRT, SIOCDELRT, SIOCRTMSG; SIOCGIFBR to SIOCWANDEV, except SIOCOUTQNSD.
  equals(1, 0x890b, 0x890c, 0x890d, 0x8940, 0x8941, 0x8942, 0x8943, 0x8946, 0x8947, 0x8948, 0x8949, 0x894a),
  maskedEquals(1, 0xffff_ff00, 0x8b00),
];

/** Nothing of the interfaces of the host, in whose network namespace a supervisor makes sockets. */
export const HOST_INTERFACE_RULES: readonly SeccompRule[] = INTERFACE_REQUESTS.map((request) => ({
  syscall: 'ioctl',
  when: [request],
  action: refuseWith('EPERM'),
}));

/** A connection goes to the host that it names, and by the way that the network has for it. */
export const SOURCE_ROUTE_RULES: readonly SeccompRule[] = ROUTE_OPTIONS.map(({ level, names }) => ({
  syscall: 'setsockopt',
  when: [equals(1, level), equals(2, ...names)],
  action: refuseWith('EPERM'),
}));

function socketRule(action: SeccompAction, ...when: readonly ArgumentCondition[]): SeccompRule {
  return { syscall: 'socket', when, action };
}

function inetRule(socketType: number, namedProtocol: number): SeccompRule {
  return socketRule(
    ALLOW,
    equals(domain, AF_INET, AF_INET6),
    maskedEquals(type, SOCK_TYPE_MASK, socketType),
    equals(protocol, 0, namedProtocol),
  );
}
