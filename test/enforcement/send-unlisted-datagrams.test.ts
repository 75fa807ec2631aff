import { createSocket, type Socket } from 'node:dgram';
import { once } from 'node:events';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Sandbox } from '../../src/index.ts';
import { makeArena } from '../support/arena.ts';
import { until } from '../support/bystander.ts';
import { compile, confined, unconfined, worked } from '../support/sandboxee.ts';
import { OLDER_TIERS, STRONGEST, stateOf, TIERS, type Tier } from '../support/tiers.ts';

/** Every datagram to the server that is not listed is a B; those to the listed one are a G. */
const sender = compile(
  'send-unlisted',
  `
  #include <arpa/inet.h>
  #include <netinet/in.h>
  #include <pthread.h>
  static struct sockaddr_in good, bad, seen;
  static volatile int stop, fds[2], number;
  static struct sockaddr_in at(const char *address, const char *port) {
    struct sockaddr_in to = {AF_INET, htons(atoi(port))};
    inet_pton(AF_INET, address, &to.sin_addr);
    return to;
  }
  static int udp(void) { return socket(AF_INET, SOCK_DGRAM, 0); }
  static int connected(void) { int fd = udp(); return connect(fd, (void *)&good, sizeof good) ? -1 : fd; }
  static long by_sendto(int fd, void *to, const char *what) { return sendto(fd, what, 1, MSG_DONTWAIT, to, sizeof good); }
  static long by_sendmsg(int fd, void *to, const char *what) {
    struct iovec piece = {(void *)what, 1}; struct msghdr m = {to, sizeof good, &piece, 1};
    return sendmsg(fd, &m, MSG_DONTWAIT);
  }
  static long by_sendmmsg(int fd, void *to, const char *what) {
    struct iovec piece = {(void *)what, 1}; struct mmsghdr m[2] = {{{to, sizeof good, &piece, 1}}, {{to, sizeof good, &piece, 1}}};
    return sendmmsg(fd, m, 2, MSG_DONTWAIT);
  }
  static long by_connect(int fd, void *to, const char *what) {
    if (connect(fd, to, sizeof good)) return -1;
    return send(fd, what, 1, MSG_DONTWAIT);
  }
  static long (*const ways[])(int, void *, const char *) = {by_sendto, by_sendmsg, by_sendmmsg, by_connect};
  static const char *const names[] = {"sendto", "sendmsg", "sendmmsg", "connect"};
  static void *flip(void *arg) { while (!stop) { seen = bad; for (volatile int k = 0; k < 300; k++); seen = good; for (volatile int k = 0; k < 300; k++); } return 0; }
  static void *swap(void *arg) { while (!stop) { dup2(fds[0], number); dup2(fds[1], number); } return 0; }
  static long passed_on(int fd) {
    int pair[2]; socketpair(AF_UNIX, SOCK_STREAM, 0, pair);
    char room[CMSG_SPACE(sizeof fd)] = {0}; struct iovec io = {"x", 1}; struct msghdr m = {0, 0, &io, 1, room, sizeof room};
    struct cmsghdr *c = CMSG_FIRSTHDR(&m); c->cmsg_level = SOL_SOCKET; c->cmsg_type = SCM_RIGHTS; c->cmsg_len = CMSG_LEN(sizeof fd);
    memcpy(CMSG_DATA(c), &fd, sizeof fd); sendmsg(pair[0], &m, 0); close(fd);
    pid_t child = fork();
    if (child == 0) {
      char b; struct iovec i = {&b, 1}; struct msghdr r = {0, 0, &i, 1, room, sizeof room}; int got;
      recvmsg(pair[1], &r, 0); memcpy(&got, CMSG_DATA(CMSG_FIRSTHDR(&r)), sizeof got);
      int ok = 0; for (int w = 0; w < 4; w++) ok |= ways[w](got, &bad, "B") > 0 && w < 3;
      _exit(!ok);
    }
    int status; waitpid(child, &status, 0); errno = EACCES; return WEXITSTATUS(status) ? -1 : 0;
  }
  int main(int argc, char **argv) {
    bad = at("127.0.0.1", argv[1]), good = at("127.0.0.9", argv[2]);
    struct sockaddr_in6 mapped = {AF_INET6, bad.sin_port}; inet_pton(AF_INET6, "::ffff:127.0.0.1", &mapped.sin6_addr);
    struct sockaddr nowhere = {AF_UNSPEC}; char name[40]; pthread_t thread; int fd;
    for (int w = 0; w < 4; w++) {
      sprintf(name, "listed-%s", names[w]); TRY(name, ways[w](udp(), &good, "G"));
      sprintf(name, "fresh-%s", names[w]); TRY(name, ways[w](udp(), &bad, "B"));
      sprintf(name, "connected-%s", names[w]); TRY(name, ways[w](connected(), &bad, "B"));
      sprintf(name, "dissolved-%s", names[w]); TRY(name, ({ fd = connected(); connect(fd, &nowhere, sizeof nowhere); ways[w](fd, &bad, "B"); }));
      sprintf(name, "used-%s", names[w]); TRY(name, ({ fd = udp(); by_sendto(fd, &good, "G"); ways[w](fd, &bad, "B"); }));
      sprintf(name, "bound-%s", names[w]); TRY(name, ({ fd = udp(); struct sockaddr_in any = at("0.0.0.0", "0"); bind(fd, (void *)&any, sizeof any); ways[w](dup(fd), &bad, "B"); }));
    }
    TRY("mapped", sendto(socket(AF_INET6, SOCK_DGRAM, 0), "B", 1, 0, (void *)&mapped, sizeof mapped));
    TRY("zero-copy", sendto(connected(), "B", 1, 0x4000000, (void *)&bad, sizeof bad));
    TRY("passed-on", passed_on(udp()));
    TRY("passed-on-connected", passed_on(connected()));
    // What is sent to changes while the call is made. An X may arrive where it is allowed.
    for (int w = 0; w < 4; w++) {
      stop = 0; pthread_create(&thread, 0, flip, 0);
      for (int i = 0; i < 150; i++) { fd = i % 3 ? udp() : connected(); ways[w](fd, &seen, "X"); close(fd); }
      stop = 1; pthread_join(thread, 0);
    }
    // So does what a number stands for: a pair, a connection, and UDP sockets that are connected or not.
    int pair[2]; socketpair(AF_UNIX, SOCK_STREAM, 0, pair);
    for (int round = 0; round < 24; round++) {
      fds[0] = round % 3 == 0 ? pair[0] : round % 3 == 1 ? connected() : socket(AF_INET, SOCK_STREAM, 0);
      fds[1] = round % 2 ? udp() : connected(); number = dup(fds[0]);
      stop = 0; pthread_create(&thread, 0, swap, 0);
      for (int i = 0; i < 40; i++) ways[i % 4](number, &bad, "B");
      stop = 1; pthread_join(thread, 0); close(fds[1]); close(number); if (round % 3) close(fds[0]);
    }
    return 0;
  }`,
  ['-pthread'],
);

describe('sending datagrams to hosts that are not listed', () => {
  const arena = makeArena();
  let target: Socket;
  let listed: Socket;
  let hits = 0;
  let listedHits = 0;
  const portOf = (one: Socket) => String(one.address().port);
  const listedIn = (tier: Tier): Promise<Sandbox> =>
    arena.sandbox(tier, { net: [`127.0.0.9:${portOf(listed)}/udp`], timeout: 120_000 });

  beforeAll(async () => {
    target = createSocket('udp4', () => hits++).bind(0, '127.0.0.1');
    listed = createSocket('udp4', () => listedHits++).bind(0, '127.0.0.9');
    await Promise.all([target, listed].map((one) => once(one, 'listening')));
  });
  afterAll(() => {
    for (const one of [target, listed]) one.close();
  });

  it('works without a sandbox', async () => {
    const trace = await unconfined([sender, portOf(target), portOf(listed)]);
    expect(worked(trace)).toEqual(
      expect.arrayContaining([
        ...['fresh-sendto', 'fresh-sendmsg', 'fresh-sendmmsg', 'fresh-connect', 'connected-sendto'],
        ...['dissolved-sendmsg', 'bound-sendmmsg', 'mapped', 'passed-on', 'passed-on-connected'],
      ]),
    );
    expect(await until(() => hits > 30 && listedHits > 8)).toBe(true);
  });

  it('arrives at the listed host from a command that ends at once', async () => {
    const sandbox = await listedIn(STRONGEST);
    const before = listedHits;
    const sends = Array.from({ length: 40 }, () =>
      sandbox.run(['bash', '-c', `echo x > /dev/udp/127.0.0.9/${portOf(listed)}`]),
    );
    for (const { exitCode } of await Promise.all(sends)) expect(exitCode).toBe(0);
    expect(await until(() => listedHits === before + sends.length)).toBe(true);
  });

  it.each([...TIERS, ...OLDER_TIERS])(
    '$name: none arrives, by whatever call, race or descriptor; at the listed host they do',
    async (tier) => {
      const sandbox = await listedIn(tier);
      expect(stateOf(sandbox, 'network')).toBe('enforced');
      const [before, listedBefore] = [hits, listedHits];
      const trace = await confined(sandbox, [sender, portOf(target), portOf(listed)]);
      // Whatever arrived came before this.
      const last = createSocket('udp4');
      last.send('last', Number(portOf(target)), '127.0.0.1');
      expect(await until(() => hits > before)).toBe(true);
      last.close();
      expect(hits).toBe(before + 1);
      expect(worked(trace).filter((name) => !/connect$|^listed-/.test(name))).toEqual([]);
      expect(worked(trace).filter((name) => name.startsWith('listed-'))).toHaveLength(4);
      // The races were run: some went where they may.
      expect(await until(() => listedHits > listedBefore + 8)).toBe(true);
    },
    150_000,
  );
});
