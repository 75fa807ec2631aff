import { createSocket, type Socket } from 'node:dgram';
import { once } from 'node:events';
import { connect, createServer, type Server } from 'node:net';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { makeArena } from '../support/arena.ts';
import { until } from '../support/bystander.ts';
import { makeHold } from '../support/hold.ts';
import { lacks } from '../support/programs.ts';
import { compile, confined, unconfined, worked } from '../support/sandboxee.ts';
import { OLDER_TIERS, stateOf, TIERS } from '../support/tiers.ts';

const ADDRESS = `
  #include <netinet/in.h>
  #include <arpa/inet.h>
  #include <netinet/tcp.h>
  #include <poll.h>
`;

/** Every way to get a byte to the given ports of 127.0.0.1 and ::1. */
const caller = compile(
  'call-out',
  `${ADDRESS}
  int main(int argc, char **argv) {
    struct sockaddr_in to = {AF_INET, htons(atoi(argv[1])), {htonl(INADDR_LOOPBACK)}};
    struct sockaddr_in udp = {AF_INET, htons(atoi(argv[2])), {htonl(INADDR_LOOPBACK)}};
    struct sockaddr_in6 mapped = {AF_INET6, htons(atoi(argv[1]))};
    inet_pton(AF_INET6, "::ffff:127.0.0.1", &mapped.sin6_addr);
    struct iovec piece = {"x", 1};
    struct msghdr message = {&to, sizeof to, &piece, 1};
    struct msghdr datagram = {&udp, sizeof udp, &piece, 1};
    struct mmsghdr several[1] = {{datagram}};
    int fd;
    TRY("tcp", (fd = socket(AF_INET, SOCK_STREAM, 0)) < 0 ? -1 : connect(fd, (void *)&to, sizeof to));
    TRY("tcp-nonblocking", ({ long r = (fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 6)) < 0 ? -1 : connect(fd, (void *)&to, sizeof to);
      if (r < 0 && errno == EINPROGRESS) { struct pollfd p = {fd, POLLOUT}; int e; socklen_t l = sizeof e; poll(&p, 1, 1000); getsockopt(fd, SOL_SOCKET, SO_ERROR, &e, &l); errno = e; r = e ? -1 : 0; } r; }));
    TRY("tcp-mapped", (fd = socket(AF_INET6, SOCK_STREAM, 0)) < 0 ? -1 : connect(fd, (void *)&mapped, sizeof mapped));
    TRY("fast-open-sendto", (fd = socket(AF_INET, SOCK_STREAM, 0)) < 0 ? -1 : sendto(fd, "x", 1, MSG_FASTOPEN | MSG_NOSIGNAL, (void *)&to, sizeof to));
    TRY("fast-open-sendmsg", (fd = socket(AF_INET, SOCK_STREAM, 0)) < 0 ? -1 : sendmsg(fd, &message, MSG_FASTOPEN | MSG_NOSIGNAL));
    TRY("fast-open-connect", ({ int one = 1; fd = socket(AF_INET, SOCK_STREAM, 0); setsockopt(fd, IPPROTO_TCP, TCP_FASTOPEN_CONNECT, &one, sizeof one);
      fd < 0 ? -1 : connect(fd, (void *)&to, sizeof to) < 0 ? -1 : send(fd, "x", 1, MSG_NOSIGNAL); }));
    TRY("mptcp", (fd = socket(AF_INET, SOCK_STREAM, 262)) < 0 ? -1 : connect(fd, (void *)&to, sizeof to));
    TRY("udp-sendto", (fd = socket(AF_INET, SOCK_DGRAM, 0)) < 0 ? -1 : sendto(fd, "x", 1, 0, (void *)&udp, sizeof udp) == 1 ? 0 : -1);
    TRY("udp-connect", (fd = socket(AF_INET, SOCK_DGRAM, 17)) < 0 ? -1 : connect(fd, (void *)&udp, sizeof udp) || send(fd, "x", 1, 0) < 0 ? -1 : 0);
    TRY("udp-sendmsg", (fd = socket(AF_INET, SOCK_DGRAM, 0)) < 0 ? -1 : sendmsg(fd, &datagram, 0));
    TRY("udp-sendmmsg", (fd = socket(AF_INET, SOCK_DGRAM, 0)) < 0 ? -1 : sendmmsg(fd, several, 1, 0));
    return 0;
  }`,
);

/** Every family, type and protocol that one could ask for. */
const asker = compile(
  'ask-for-sockets',
  `${ADDRESS}
  int main() {
    for (int family = 0; family < 50; family++) {
      int types[] = {1, 2, 3, 4, 5, 6, 10};
      for (int t = 0; t < 7; t++) {
        char name[64];
        sprintf(name, "family:%d:%d", family, types[t]);
        if (family == AF_UNIX || family == AF_INET || family == AF_INET6 || family == AF_NETLINK) continue;
        TRY(name, socket(family, types[t], 0));
      }
    }
    TRY("raw-icmp", socket(AF_INET, SOCK_RAW, IPPROTO_ICMP));
    TRY("raw-ip", socket(AF_INET, SOCK_RAW, IPPROTO_RAW));
    TRY("raw-icmp6", socket(AF_INET6, SOCK_RAW, IPPROTO_ICMPV6));
    TRY("ping", socket(AF_INET, SOCK_DGRAM, IPPROTO_ICMP));
    TRY("old-packet", socket(AF_INET, SOCK_PACKET, htons(3)));
    TRY("packet", socket(AF_PACKET, SOCK_RAW, htons(3)));
    TRY("packet-dgram", socket(AF_PACKET, SOCK_DGRAM, htons(3)));
    TRY("vsock", socket(AF_VSOCK, SOCK_STREAM, 0));
    TRY("alg", socket(AF_ALG, SOCK_SEQPACKET, 0));
    TRY("mptcp", socket(AF_INET, SOCK_STREAM, 262));
    TRY("mptcp6", socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 262));
    TRY("sctp", socket(AF_INET, SOCK_STREAM, IPPROTO_SCTP));
    TRY("sctp-seqpacket", socket(AF_INET, SOCK_SEQPACKET, IPPROTO_SCTP));
    TRY("dccp", socket(AF_INET, 6, 33));
    TRY("smc", socket(AF_INET, SOCK_STREAM, 256));
    TRY("udplite", socket(AF_INET, SOCK_DGRAM, IPPROTO_UDPLITE));
    TRY("high-bits", syscall(SYS_socket, 40ull | 1ull << 32, 1, 0));
    for (int protocol = 1; protocol < 23; protocol++) {
      char name[64];
      sprintf(name, "netlink:%d", protocol);
      TRY(name, socket(AF_NETLINK, SOCK_RAW, protocol));
    }
    TRY("vsock-pair", ({ int pair[2]; socketpair(AF_VSOCK, SOCK_STREAM, 0, pair); }));
    TRY("route", socket(AF_NETLINK, SOCK_RAW, 0));
    TRY("pair", ({ int pair[2]; socketpair(AF_UNIX, SOCK_STREAM, 0, pair); }));
    return 0;
  }`,
);

/** Asks the kernel for what listens (SOCK_DIAG_BY_FAMILY, TCP, state LISTEN), as ss does. */
const NO_PYTHON = lacks('python3');
const LISTENERS = `
import socket, struct
s = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 4)
body = struct.pack('=BBBBI', socket.AF_INET, 6, 0, 0, 1 << 10) + bytes(48)
s.send(struct.pack('=IHHII', 16 + len(body), 20, 0x301, 1, 0) + body)
done = False
while not done:
    data = s.recv(65536)
    while data:
        size, kind = struct.unpack('=IH', data[:6])
        if kind in (2, 3): done = True
        else: print('port', struct.unpack('!H', data[20:22])[0])
        data = data[(size + 3) & ~3:]
print('done')
`;

const server = compile(
  'serve',
  `${ADDRESS}
  int main(int argc, char **argv) {
    int fd;
    // listen without bind: the kernel picks a port on all addresses.
    if (TRY("listen", (fd = socket(AF_INET, SOCK_STREAM, 0)) < 0 ? -1 : listen(fd, 5)) < 0) return 0;
    struct sockaddr_in self;
    socklen_t size = sizeof self;
    getsockname(fd, (void *)&self, &size);
    printf("port=P%d\\n", ntohs(self.sin_port));
    fflush(stdout);
    self.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (argc > 2) {
      int client = socket(AF_INET, SOCK_STREAM, 0);
      TRY("own-client", connect(client, (void *)&self, sizeof self));
      TRY("own-accept", accept(fd, 0, 0));
    }
    struct pollfd p = {fd, POLLIN};
    // Until somebody has tried to call, and said so.
    while (poll(&p, 1, 0) == 0 && access(argv[argc - 1], F_OK)) usleep(10000);
    if (p.revents & POLLIN) SAY("called", "ok");
    return 0;
  }`,
);

/** How many of the calls send a datagram that arrives. */
const DATAGRAMS = 4;

describe('reaching the network', () => {
  const arena = makeArena();
  let tcp: Server;
  let udp: Socket;
  let calls = 0;
  let datagrams = 0;
  const ports = () => {
    const address = tcp.address();
    if (address === null || typeof address === 'string') throw new Error('no port');
    return [String(address.port), String(udp.address().port)] as const;
  };

  beforeAll(async () => {
    tcp = createServer((socket) => {
      calls++;
      socket.on('error', () => {});
      socket.resume();
    });
    tcp.listen(0, '127.0.0.1');
    await once(tcp, 'listening');
    udp = createSocket('udp4', () => datagrams++);
    udp.bind(0, '127.0.0.1');
    await once(udp, 'listening');
  });
  afterAll(() => {
    tcp.close();
    udp.close();
  });

  /** Without a sandbox; says how many connections arrive. */
  const callFreely = async () => {
    const trace = await unconfined([caller, ...ports()]);
    const streams = worked(trace).filter((name) => !name.startsWith('udp-')).length;
    return { trace, streams };
  };

  it('works without a sandbox', async () => {
    const [before, beforeUdp] = [calls, datagrams];
    const { trace, streams } = await callFreely();
    expect(worked(trace)).toEqual(
      expect.arrayContaining(['tcp', 'tcp-nonblocking', 'tcp-mapped', 'fast-open-sendto']),
    );
    expect(await until(() => calls - before >= streams && datagrams - beforeUdp >= DATAGRAMS)).toBe(true);
    expect([calls - before, datagrams - beforeUdp]).toEqual([streams, DATAGRAMS]);
  });

  describe.each([...TIERS, ...OLDER_TIERS])('$name', (tier) => {
    it('never arrives at servers of the host', async () => {
      const [before, beforeUdp] = [calls, datagrams];
      const sandbox = await arena.sandbox(tier);
      const trace = await confined(sandbox, [caller, ...ports()]);
      // A datagram into an empty network is sent, and goes nowhere.
      expect(worked(trace).filter((name) => !(tier.view && name.startsWith('udp-')))).toEqual([]);
      expect(Object.keys(trace.results)).toHaveLength(11);
      // Whatever arrived came before this, and has been counted when this has.
      const { streams } = await callFreely();
      expect(await until(() => calls - before >= streams && datagrams - beforeUdp >= DATAGRAMS)).toBe(true);
      expect([calls - before, datagrams - beforeUdp]).toEqual([streams, DATAGRAMS]);
      expect(stateOf(sandbox, 'network')).toBe('enforced');
    });

    it('gets no raw, packet, vsock, netlink, MPTCP, SCTP or other exotic sockets', async () => {
      const sandbox = await arena.sandbox(tier);
      const trace = await confined(sandbox, [asker]);
      // Route queries (getifaddrs) and socketpair keep working; both lead nowhere. So do lists of the sockets (ss), where
      // those of the host are not among them.
      expect(worked(trace)).toEqual([...(tier.view ? ['netlink:4'] : []), 'route', 'pair']);
    });

    it.skipIf(NO_PYTHON)('cannot list the sockets of the host', async () => {
      const [port] = ports();
      expect((await unconfined(['python3', '-c', LISTENERS])).stdout).toContain(`port ${port}\n`);
      const sandbox = await arena.sandbox(tier);
      const listed = await confined(sandbox, ['python3', '-c', LISTENERS]);
      expect(listed.stdout).toMatch(tier.view ? /^done\n$/ : /^$/);
      if (tier.view) return;
      expect(listed.stderr).toContain('Permission denied');
    });

    it('cannot be called from the host', async () => {
      const sandbox = await arena.sandbox(tier);
      let text = '';
      let refusals = 0;
      const hold = makeHold(arena.workspace);
      const result = await sandbox.run([server, hold.file], {
        onOutput: async ({ bytes }) => {
          text += Buffer.from(bytes).toString();
          const port = /port=P(\d+)/.exec(text)?.[1];
          if (port === undefined) return;
          const socket = connect(Number(port), '127.0.0.1');
          await once(socket, 'connect').catch(() => refusals++);
          socket.destroy();
          hold.letGo();
        },
      });
      expect(result.stdout).not.toContain('called=ok');
      if (tier.view) expect(refusals).toBe(1);
      else expect(result.stdout).toMatch(/^listen=13$/m);
    });
  });

  describe.each(TIERS.filter((tier) => tier.view))('$name', (tier) => {
    it('leaves servers on a loopback interface of its own', async () => {
      const sandbox = await arena.sandbox(tier);
      const trace = await confined(sandbox, [server, 'call', arena.workspace]);
      expect(worked(trace)).toEqual(['listen', 'own-client', 'own-accept']);
    });
  });

  describe.each(TIERS)('$name, profile networked', (tier) => {
    it('works, as the report says, and exotic sockets are still refused', async () => {
      const before = calls;
      const sandbox = await arena.sandbox(tier, { profile: 'networked' });
      expect(stateOf(sandbox, 'network')).toBe('off');
      const trace = await confined(sandbox, [caller, ...ports()]);
      expect(worked(trace)).toContain('tcp');
      expect(trace.results.mptcp).not.toBe('ok');
      expect(await until(() => calls > before)).toBe(true);
      const asked = await confined(sandbox, [asker]);
      expect(worked(asked)).toEqual(['route', 'pair']);
    });

    it.skipIf(NO_PYTHON)('cannot list the sockets of the host either', async () => {
      const sandbox = await arena.sandbox(tier, { profile: 'networked' });
      const listed = await confined(sandbox, ['python3', '-c', LISTENERS]);
      expect([listed.stdout, listed.stderr]).toEqual(['', expect.stringContaining('Permission denied')]);
    });
  });
});
