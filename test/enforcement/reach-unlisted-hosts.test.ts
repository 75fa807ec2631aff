import { createSocket, type Socket } from 'node:dgram';
import { once } from 'node:events';
import { connect, createServer, type Server } from 'node:net';
import { networkInterfaces } from 'node:os';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Sandbox } from '../../src/index.ts';
import { makeArena } from '../support/arena.ts';
import { until } from '../support/bystander.ts';
import { type Argv, compile, confined, unconfined, worked } from '../support/sandboxee.ts';
import { OLDER_TIERS, stateOf, TIERS, type Tier } from '../support/tiers.ts';

const HEADERS = `
  #include <arpa/inet.h>
  #include <linux/filter.h>
  #include <linux/seccomp.h>
  #include <netinet/in.h>
  #include <netinet/tcp.h>
  #include <poll.h>
  #include <pthread.h>
  static struct sockaddr_in at(const char *address, const char *port) {
    struct sockaddr_in to = {AF_INET, htons(atoi(port))};
    inet_pton(AF_INET, address, &to.sin_addr);
    return to;
  }
  static int tcp(void) { return socket(AF_INET, SOCK_STREAM, 0); }
`;

/** Asks a socket, and one for datagrams, for the network interfaces of where it was made. */
const asker = compile(
  'ask-for-interfaces',
  `${HEADERS}
  #include <net/if.h>
  #include <sys/ioctl.h>
  #include <linux/sockios.h>
  int main(int argc, char **argv) {
    struct ifreq all[32], lo = {0}, first = {0}; first.ifr_ifindex = 1; strcpy(lo.ifr_name, "lo");
    struct ifconf list = {sizeof all, {(void *)all}};
    int fds[3] = {tcp(), socket(AF_INET, SOCK_DGRAM, 0), socket(AF_INET6, SOCK_STREAM, 0)};
    const char *names[3][4] = {{"tcp-list", "tcp-name", "tcp-address", "tcp-flags"}, {"udp-list", "udp-name", "udp-address", "udp-flags"}, {"six-list", "six-name", "six-mtu", "six-index"}};
    for (int i = 0; i < 3; i++) {
      unsigned long third = i < 2 ? SIOCGIFADDR : SIOCGIFMTU, fourth = i < 2 ? SIOCGIFFLAGS : SIOCGIFINDEX;
      list.ifc_len = sizeof all;
      TRY(names[i][0], ioctl(fds[i], SIOCGIFCONF, &list)); TRY(names[i][1], ioctl(fds[i], SIOCGIFNAME, &first));
      TRY(names[i][2], ioctl(fds[i], third, &lo)); TRY(names[i][3], ioctl(fds[i], fourth, &lo));
      // The kernel looks at the low half only.
      TRY("high", syscall(SYS_ioctl, fds[i], SIOCGIFNAME | 1ul << 40, &first));
    }
    int waiting = 0; TRY("own", ioctl(fds[0], FIONREAD, &waiting));
    return 0;
  }`,
);

/** Every way to get a byte to the server of the host: TARGET is not listed, LISTED is. */
const caller = compile(
  'call-unlisted',
  `${HEADERS}
  int main(int argc, char **argv) {
    struct sockaddr_in to = at("127.0.0.1", argv[1]), udp = at("127.0.0.1", argv[2]), any = at("0.0.0.0", argv[1]);
    struct sockaddr_in6 mapped = {AF_INET6, to.sin_port}, six = {AF_INET6, to.sin_port};
    inet_pton(AF_INET6, "::ffff:127.0.0.1", &mapped.sin6_addr);
    struct iovec piece = {"x", 1};
    struct msghdr message = {&to, sizeof to, &piece, 1}, datagram = {&udp, sizeof udp, &piece, 1};
    struct mmsghdr several[1] = {{message}}, datagrams[1] = {{datagram}};
    int fd, one = 1;
    TRY("tcp", connect(tcp(), (void *)&to, sizeof to));
    TRY("tcp-any", connect(tcp(), (void *)&any, sizeof any));
    TRY("tcp-long-address", ({ struct sockaddr_storage s = {0}; memcpy(&s, &to, sizeof to); connect(tcp(), (void *)&s, sizeof s); }));
    TRY("tcp-nonblocking", ({ fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 6); long r = connect(fd, (void *)&to, sizeof to);
      if (r < 0 && errno == EINPROGRESS) { struct pollfd p = {fd, POLLOUT}; int e; socklen_t l = sizeof e; poll(&p, 1, 1000); getsockopt(fd, SOL_SOCKET, SO_ERROR, &e, &l); errno = e; r = e ? -1 : 0; } r; }));
    TRY("tcp-mapped", connect(socket(AF_INET6, SOCK_STREAM, 0), (void *)&mapped, sizeof mapped));
    TRY("fast-open-sendto", sendto(tcp(), "x", 1, MSG_FASTOPEN | MSG_NOSIGNAL, (void *)&to, sizeof to));
    TRY("fast-open-sendmsg", sendmsg(tcp(), &message, MSG_FASTOPEN | MSG_NOSIGNAL));
    TRY("fast-open-sendmmsg", sendmmsg(tcp(), several, 1, MSG_FASTOPEN | MSG_NOSIGNAL));
    TRY("fast-open-connect", ({ fd = tcp(); setsockopt(fd, IPPROTO_TCP, TCP_FASTOPEN_CONNECT, &one, sizeof one);
      connect(fd, (void *)&to, sizeof to) < 0 ? -1 : send(fd, "x", 1, MSG_NOSIGNAL); }));
    TRY("mptcp", connect(socket(AF_INET, SOCK_STREAM, 262), (void *)&to, sizeof to));
    TRY("sctp", socket(AF_INET, SOCK_STREAM, 132) < 0 ? -1 : 0);
    TRY("udplite", sendto(socket(AF_INET, SOCK_DGRAM, 136), "x", 1, 0, (void *)&udp, sizeof udp));
    TRY("passed-on", ({ int pair[2]; socketpair(AF_UNIX, SOCK_STREAM, 0, pair); fd = tcp();
      char room[CMSG_SPACE(sizeof fd)] = {0}; struct iovec io = {"x", 1}; struct msghdr m = {0, 0, &io, 1, room, sizeof room};
      struct cmsghdr *c = CMSG_FIRSTHDR(&m); c->cmsg_level = SOL_SOCKET; c->cmsg_type = SCM_RIGHTS; c->cmsg_len = CMSG_LEN(sizeof fd);
      memcpy(CMSG_DATA(c), &fd, sizeof fd); sendmsg(pair[0], &m, 0); close(fd);
      pid_t child = fork(); if (child == 0) { char b; struct iovec i = {&b, 1}; struct msghdr r = {0, 0, &i, 1, room, sizeof room};
        recvmsg(pair[1], &r, 0); int got; memcpy(&got, CMSG_DATA(CMSG_FIRSTHDR(&r)), sizeof got); _exit(connect(got, (void *)&to, sizeof to) ? errno : 0); }
      int status; waitpid(child, &status, 0); errno = WEXITSTATUS(status); errno ? -1 : 0; }));
    TRY("udp-sendto", sendto(socket(AF_INET, SOCK_DGRAM, 0), "x", 1, 0, (void *)&udp, sizeof udp) == 1 ? 0 : -1);
    TRY("udp-connect", ({ fd = socket(AF_INET, SOCK_DGRAM, 17); connect(fd, (void *)&udp, sizeof udp) || send(fd, "x", 1, 0) < 0 ? -1 : 0; }));
    TRY("udp-sendmsg", sendmsg(socket(AF_INET, SOCK_DGRAM, 0), &datagram, 0));
    TRY("udp-sendmmsg", sendmmsg(socket(AF_INET, SOCK_DGRAM, 0), datagrams, 1, 0));
    return 0;
  }`,
);

/** From what is allowed to what is not: what was connected, or is being connected, is turned round. */
const turner = compile(
  'turn-round',
  `${HEADERS}
  static struct sockaddr_in good, bad, seen;
  static volatile int stop, fds[2], number;
  static void *flip(void *arg) { while (!stop) { seen = bad; for (volatile int k = 0; k < 300; k++); seen = good; for (volatile int k = 0; k < 300; k++); } return 0; }
  static void *swap(void *arg) { while (!stop) { dup2(fds[0], number); dup2(fds[1], number); } return 0; }
  int main(int argc, char **argv) {
    good = at("127.0.0.9", argv[2]), bad = at("127.0.0.1", argv[1]);
    struct sockaddr nowhere = {AF_UNSPEC};
    int fd = tcp(), allowed = 0;
    TRY("listed", connect(fd, (void *)&good, sizeof good));
    TRY("again", connect(fd, (void *)&bad, sizeof bad));
    TRY("after-dissolving", ({ connect(fd, &nowhere, sizeof nowhere); connect(fd, (void *)&bad, sizeof bad); }));
    TRY("after-shutdown", ({ shutdown(fd, SHUT_RDWR); usleep(20000); connect(fd, (void *)&bad, sizeof bad); }));
    TRY("after-failure", ({ fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0); struct sockaddr_in shut = at("127.0.0.9", "1");
      connect(fd, (void *)&shut, sizeof shut); usleep(20000); connect(fd, (void *)&bad, sizeof bad); }));
    // One processor takes turns: who never sleeps may be done before the other thread ran at all.
    pthread_t thread;
    seen = good;
    pthread_create(&thread, 0, flip, 0);
    for (int i = 0; i < 300; i++) { usleep(1); fd = tcp(); if (connect(fd, (void *)&seen, sizeof seen) == 0) allowed++; close(fd); }
    stop = 1; pthread_join(thread, 0);
    if (allowed) SAY("flipped-some", "yes");
    // Which socket a number stands for changes while it is connected: a pair, a connection and a fresh socket.
    stop = 0; int pair[2]; socketpair(AF_UNIX, SOCK_STREAM, 0, pair);
    for (int round = 0; round < 24; round++) {
      fds[0] = round % 2 ? pair[0] : tcp(); fds[1] = tcp(); number = dup(fds[0]);
      if (round % 3 == 0) connect(fds[1], (void *)&good, sizeof good);
      stop = 0; pthread_create(&thread, 0, swap, 0);
      for (int i = 0; i < 10; i++) connect(number, (void *)(i % 2 ? &bad : &good), sizeof bad);
      stop = 1; pthread_join(thread, 0); close(fds[1]); if (round % 2 == 0) close(fds[0]); close(number);
    }
    return 0;
  }`,
  ['-pthread'],
);

/** Past the filter, or past who answers for it. */
const evader = compile(
  'evade-the-supervisor',
  `${HEADERS}
  static long in_child(int (*call)(void)) {
    pid_t child = fork(); if (child == 0) _exit(call());
    int status; waitpid(child, &status, 0); errno = EPERM;
    return WIFEXITED(status) && WEXITSTATUS(status) == 0 ? 0 : -1;
  }
  #ifdef __x86_64__
  static int old_table(void) { long r; unsigned args[3] = {2, 1, 0};
    __asm__ volatile("int $0x80" : "=a"(r) : "a"(359), "b"(2), "c"(1), "d"(0) : "memory"); return r < 0; }
  static int other_table(void) { return syscall(0x40000000 | SYS_socket, 2, 1, 0) < 0; }
  #endif
  int main(int argc, char **argv) {
    char path[64], options[] = {131, 7, 4, 127, 0, 0, 1, 0};
    int fd = tcp();
  #ifdef __x86_64__
    TRY("int80", in_child(old_table));
    TRY("x32", in_child(other_table));
  #endif
    TRY("io-uring", syscall(SYS_io_uring_setup, 4, calloc(1, 256)));
    TRY("launcher-memory", (sprintf(path, "/proc/%s/mem", argv[1]), open(path, O_RDWR)));
    TRY("launcher-descriptors", (sprintf(path, "/proc/%s/fd/0", argv[1]), open(path, O_RDONLY)));
    TRY("take-descriptor", syscall(438, syscall(434, atoi(argv[1]), 0), 0, 0));
    TRY("source-route", setsockopt(fd, IPPROTO_IP, IP_OPTIONS, options, sizeof options));
    TRY("route-header", setsockopt(socket(AF_INET6, SOCK_STREAM, 0), IPPROTO_IPV6, 57, options, sizeof options));
    TRY("local-datagram", socket(AF_UNIX, SOCK_DGRAM, 0));
    TRY("local-datagrams", ({ int p[2]; socketpair(AF_UNIX, SOCK_DGRAM, 0, p); }));
    TRY("own-listener", ({ struct sock_filter f[] = {{6, 0, 0, 0x7fff0000}}; struct sock_fprog p = {1, f}; syscall(SYS_seccomp, 1, 8, &p); }));
    TRY("outer-address", ({ struct sockaddr_in a = at("127.0.0.1", "0"); a.sin_addr.s_addr = inet_addr("192.0.2.1"); bind(fd, (void *)&a, sizeof a); }));
    return 0;
  }`,
);

/** A server of the sandbox's own, which says where it listens, and calls itself by every name of the loopback interface. */
const server = compile(
  'serve-inside',
  `${HEADERS}
  int main(int argc, char **argv) {
    int fd = socket(AF_INET6, SOCK_STREAM, 0), bound = tcp(), one = 1;
    TRY("listen", listen(fd, 5));
    struct sockaddr_in6 self; socklen_t size = sizeof self;
    getsockname(fd, (void *)&self, &size);
    char port[8]; sprintf(port, "%d", ntohs(self.sin6_port));
    printf("port=P%s\\n", port); fflush(stdout);
    struct sockaddr_in four = at("127.0.0.1", port), any = at("0.0.0.0", port);
    struct sockaddr_in6 six = {AF_INET6, self.sin6_port}; six.sin6_addr.s6_addr[15] = 1;
    TRY("by-v4", connect(tcp(), (void *)&four, sizeof four));
    TRY("by-any", connect(tcp(), (void *)&any, sizeof any));
    TRY("by-v6", connect(socket(AF_INET6, SOCK_STREAM, 0), (void *)&six, sizeof six));
    TRY("accept", accept(fd, 0, 0));
    struct sockaddr_in wanted = at("127.0.0.1", "0"), got; size = sizeof got;
    TRY("bind", bind(bound, (void *)&wanted, sizeof wanted));
    getsockname(bound, (void *)&got, &size);
    if (got.sin_addr.s_addr == wanted.sin_addr.s_addr && got.sin_port != 0) SAY("name", "ok");
    close(fd); sleep(1);
    TRY("gone", connect(tcp(), (void *)&four, sizeof four));
    return 0;
  }`,
);

/** Whose connection is no try of a command, and whose datagram. */
const LAST = '127.0.0.77';

describe('reaching hosts that are not listed', () => {
  const arena = makeArena();
  let target: Server;
  let listed: Server;
  let udp: Socket;
  let hits = 0;
  let listedHits = 0;
  let datagrams = 0;

  const portOf = (one: Server) => {
    const address = one.address();
    if (address === null || typeof address === 'string') throw new Error('no port');
    return String(address.port);
  };
  const count = (hit: () => void) =>
    createServer((socket) => {
      if (socket.remoteAddress === LAST) socket.end('all');
      else hit();
      socket.on('error', () => {});
      socket.resume();
    });
  /** One address of the loopback interface and one port are listed, and a name that leads there. */
  const listedIn = (tier: Tier): Promise<Sandbox> =>
    arena.sandbox(tier, { net: [`127.0.0.9:${portOf(listed)}`, 'listed.test:1'], timeout: 60_000 });
  /** All that has arrived until now is counted then, however slow this machine is: one more is waited for. */
  const counted = async () => {
    const last = connect({ port: Number(portOf(target)), host: '127.0.0.1', localAddress: LAST });
    await once(last, 'data');
    last.destroy();
    const own = createSocket('udp4');
    const arrived = once(udp, 'last');
    own.send(LAST, udp.address().port, '127.0.0.1');
    await arrived;
    own.close();
    return [hits, datagrams];
  };
  const unreached = async (sandbox: Sandbox, argv: Argv) => {
    const before = await counted();
    const trace = await confined(sandbox, argv);
    expect(await counted()).toEqual(before);
    return trace;
  };

  beforeAll(async () => {
    target = count(() => hits++).listen(0, '127.0.0.1');
    listed = count(() => listedHits++).listen(0, '127.0.0.9');
    udp = createSocket('udp4', (bytes) => {
      if (String(bytes) === LAST) udp.emit('last');
      else datagrams++;
    }).bind(0, '127.0.0.1');
    await Promise.all([target, listed, udp].map((one) => once(one, 'listening')));
  });
  afterAll(() => {
    for (const one of [target, listed, udp]) one.close();
  });

  it('works without a sandbox', async () => {
    const before = [hits, datagrams];
    const called = await unconfined([caller, portOf(target), String(udp.address().port)]);
    expect(worked(called)).toEqual(
      expect.arrayContaining(['tcp', 'tcp-any', 'tcp-mapped', 'fast-open-sendto', 'passed-on', 'udp-sendto']),
    );
    expect(await until(() => hits - (before[0] ?? 0) >= 6 && datagrams > (before[1] ?? 0))).toBe(true);
    const between = hits;
    const turned = await unconfined([turner, portOf(target), portOf(listed)]);
    expect(worked(turned)).toEqual(expect.arrayContaining(['listed', 'after-dissolving']));
    expect(await until(() => hits > between + 1, 10_000)).toBe(true);
    const evaded = await unconfined([evader, String(process.ppid)]);
    expect(worked(evaded)).toEqual(expect.arrayContaining(['local-datagram', 'local-datagrams']));
    // A container may have no IPv6.
    const byV6 = Object.values(networkInterfaces()).some((all) =>
      all?.some(({ address }) => address === '::1'),
    );
    expect(worked(await unconfined([server]))).toEqual(
      expect.arrayContaining(['listen', 'by-v4', ...(byV6 ? ['by-v6'] : []), 'accept', 'name']),
    );
  });

  describe.each([...TIERS, ...OLDER_TIERS])('$name', (tier) => {
    it('learns nothing of the host’s network interfaces from a socket that it is handed', async () => {
      const outside = await unconfined([asker]);
      expect(Object.keys(outside.results)).toHaveLength(14);
      expect(worked(outside)).toContain('tcp-list');
      expect(worked(await confined(await listedIn(tier), [asker])).filter((name) => name !== 'own')).toEqual(
        [],
      );
    });

    it('never arrives, by whatever kind of socket or call', async () => {
      const sandbox = await listedIn(tier);
      expect(stateOf(sandbox, 'network')).toBe('enforced');
      const trace = await unreached(sandbox, [caller, portOf(target), String(udp.address().port)]);
      // A datagram goes to whoever answers for names, and is no question.
      expect(worked(trace).filter((name) => !name.startsWith('udp-'))).toEqual([]);
      expect(Object.keys(trace.results)).toHaveLength(17);
    });
  });

  // Landlock has no say in it: the supervisor answers, with a view and without.
  describe.each(TIERS.filter(({ landlockAbi }) => landlockAbi > 0 || TIERS.length === 1))('$name', (tier) => {
    it('never arrives by turning what is allowed round', async () => {
      const sandbox = await listedIn(tier);
      const before = listedHits;
      const trace = await unreached(sandbox, [turner, portOf(target), portOf(listed)]);
      expect(worked(trace)).toEqual(['listed']);
      // The races were run: some connections went where they may.
      expect(trace.results['flipped-some']).toBe('yes');
      expect(listedHits).toBeGreaterThan(before + 1);
    });

    it('finds no way past the filter, nor to who answers for it', async () => {
      const sandbox = await listedIn(tier);
      expect(worked(await confined(sandbox, [evader, String(process.pid)]))).toEqual([]);
    });

    it('leaves servers of its own on a loopback interface that is out of the host’s way', async () => {
      const sandbox = await listedIn(tier);
      let refused = 0;
      let text = '';
      const result = await sandbox.run([server], {
        onOutput: async ({ bytes }) => {
          const known = /port=P(\d+)/.test(text);
          text += Buffer.from(bytes).toString();
          const port = /port=P(\d+)/.exec(text)?.[1];
          if (port === undefined || known) return;
          const socket = connect(Number(port), '127.0.0.1');
          await once(socket, 'connect').catch(() => refused++);
          socket.destroy();
        },
      });
      expect(result.stdout.match(/\S+=ok/g)).toEqual(
        ['listen', 'by-v4', 'by-any', 'by-v6', 'accept', 'bind', 'name'].map((name) => `${name}=ok`),
      );
      expect(refused).toBe(1);
    });
  });
});
