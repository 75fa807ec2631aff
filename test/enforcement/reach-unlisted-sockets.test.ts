import { readdirSync, readlinkSync, symlinkSync } from 'node:fs';
import { connect } from 'node:net';
import { join } from 'node:path';
import { beforeAll, describe, expect, it } from 'vitest';
import { orElse } from '../../src/base/or-else.ts';
import type { Sandbox } from '../../src/index.ts';
import { makeArena } from '../support/arena.ts';
import { type Bystander, startBystander, until } from '../support/bystander.ts';
import { makeHold } from '../support/hold.ts';
import { type Argv, compile, confined, unconfined, worked } from '../support/sandboxee.ts';
import { OLDER_TIERS, stateOf, TIERS, type Tier } from '../support/tiers.ts';

const HEADERS = `
  #include <poll.h>
  #include <pthread.h>
  /* '@' at the beginning: abstract. */
  static socklen_t fill(struct sockaddr_un *to, const char *name) {
    memset(to, 0, sizeof *to);
    to->sun_family = AF_UNIX;
    strncpy(to->sun_path + (*name == '@'), *name == '@' ? name + 1 : name, sizeof to->sun_path - 2);
    return offsetof(struct sockaddr_un, sun_path) + strlen(name) + (*name != '@');
  }
  static int reach(int fd, const char *name) {
    struct sockaddr_un to;
    socklen_t size = fill(&to, name);
    return fd < 0 ? -1 : connect(fd, (void *)&to, size);
  }
  static int stream(void) { return socket(AF_UNIX, SOCK_STREAM, 0); }
  static void pass(int over, int fd) {
    char room[CMSG_SPACE(sizeof fd)] = {0};
    struct iovec piece = {"x", 1};
    struct msghdr message = {0, 0, &piece, 1, room, sizeof room};
    struct cmsghdr *head = CMSG_FIRSTHDR(&message);
    head->cmsg_level = SOL_SOCKET; head->cmsg_type = SCM_RIGHTS; head->cmsg_len = CMSG_LEN(sizeof fd);
    memcpy(CMSG_DATA(head), &fd, sizeof fd);
    sendmsg(over, &message, MSG_NOSIGNAL);
  }
  static int take(int over) {
    int fd = -1; char room[CMSG_SPACE(sizeof fd)] = {0}, byte;
    struct iovec piece = {&byte, 1};
    struct msghdr message = {0, 0, &piece, 1, room, sizeof room};
    if (recvmsg(over, &message, 0) == 1 && CMSG_FIRSTHDR(&message)) memcpy(&fd, CMSG_DATA(CMSG_FIRSTHDR(&message)), sizeof fd);
    return fd;
  }
`;

/** Waits at names of the host: s: stream, d: datagrams, q: packets, l: stream that hands over a fresh socket. */
const host = compile(
  'sockets-of-the-host',
  `${HEADERS}
  int main(int argc, char **argv) {
    struct pollfd polled[32];
    int count = argc - 1;
    for (int i = 0; i < count; i++) {
      struct sockaddr_un self;
      char kind = argv[i + 1][0];
      socklen_t size = fill(&self, argv[i + 1] + 2);
      int fd = socket(AF_UNIX, kind == 'd' ? SOCK_DGRAM : kind == 'q' ? SOCK_SEQPACKET : SOCK_STREAM, 0);
      if (bind(fd, (void *)&self, size)) { perror("bind"); return 1; }
      if (kind != 'd') listen(fd, 4096);
      polled[i] = (struct pollfd){fd, POLLIN};
    }
    printf("ready\\n");
    for (;;) {
      fflush(stdout);
      poll(polled, count, -1);
      for (int i = 0; i < count; i++) {
        char buffer[64], kind = argv[i + 1][0];
        if (!(polled[i].revents & POLLIN)) continue;
        if (kind == 'd') recv(polled[i].fd, buffer, 64, 0);
        else {
          int fd = accept(polled[i].fd, 0, 0), fresh = stream();
          if (kind == 'l') pass(fd, fresh);
          close(fd); close(fresh);
        }
        printf("arrived at %s\\n", argv[i + 1] + 2);
      }
    }
  }`,
);

/** Every way to a socket of the host: stream, datagram, packet, abstract; LISTED is listed, CORNER can be written. */
const caller = compile(
  'call-sockets',
  `${HEADERS}
  int main(int argc, char **argv) {
    char *target = argv[1], *datagram = argv[2], *packets = argv[3], *abstract = argv[4], *listed = argv[5], *corner = argv[6];
    char path[256]; int fd, pair[2];
    struct sockaddr_un to, data; socklen_t size = fill(&to, target), data_size = fill(&data, datagram);
    struct iovec piece = {"x", 1};
    struct msghdr message = {&data, data_size, &piece, 1};
    struct mmsghdr several[1] = {{message}};
    TRY("stream", reach(stream(), target));
    TRY("long-length", connect(stream(), (void *)&to, sizeof to));
    TRY("nonblocking", reach(socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 1), target));
    TRY("packets", reach(socket(AF_UNIX, SOCK_SEQPACKET, 0), packets));
    TRY("abstract", reach(stream(), abstract));
    TRY("relative", ({ char *slash = strrchr(strcpy(path, target), '/'); *slash = 0; chdir(path); reach(stream(), slash + 1); }));
    TRY("dots", (chdir(corner), snprintf(path, 256, "../../../../../../../../..%s", target), reach(stream(), path)));
    TRY("through-link", (snprintf(path, 256, "%s/link", corner), symlink(target, path), reach(stream(), path)));
    TRY("through-links", ({ char other[256]; snprintf(other, 256, "%s/link2", corner); symlink(path, other); reach(stream(), other); }));
    TRY("through-root", (snprintf(path, 256, "/proc/self/root%s", target), reach(stream(), path)));
    TRY("through-descriptor", (snprintf(path, 256, "/proc/self/fd/%d", open(target, O_PATH)), reach(stream(), path)));
    TRY("second-name", (snprintf(path, 256, "%s/hard", corner), link(target, path) ? -1 : reach(stream(), path)));
    TRY("moved", ({ char back[256]; snprintf(path, 256, "%s/moved", corner); int r = rename(target, path) ? -1 : reach(stream(), path); int e = errno; rename(path, target); errno = e; r; }));
    TRY("after-binding", ({ struct sockaddr_un own; snprintf(path, 256, "%s/own", corner); socklen_t n = fill(&own, path); fd = stream(); bind(fd, (void *)&own, n); reach(fd, target); }));
    TRY("sendto", sendto(socket(AF_UNIX, SOCK_DGRAM, 0), "x", 1, 0, (void *)&data, data_size));
    TRY("sendmsg", sendmsg(socket(AF_UNIX, SOCK_DGRAM, 0), &message, 0));
    TRY("sendmmsg", sendmmsg(socket(AF_UNIX, SOCK_DGRAM, 0), several, 1, 0));
    TRY("datagram-connect", (fd = socket(AF_UNIX, SOCK_DGRAM, 0), reach(fd, datagram) || send(fd, "x", 1, 0) < 0 ? -1 : 0));
    TRY("raw", sendto(socket(AF_UNIX, SOCK_RAW, 0), "x", 1, 0, (void *)&data, data_size));
    TRY("pair", socketpair(AF_UNIX, SOCK_DGRAM, 0, pair) ? -1 : sendto(pair[0], "x", 1, 0, (void *)&data, data_size));
    TRY("passed-on", ({ socketpair(AF_UNIX, SOCK_STREAM, 0, pair); fd = stream(); pass(pair[0], fd); close(fd); reach(take(pair[1]), target); }));
    TRY("handed-over", ({ fd = stream(); reach(fd, listed); reach(take(fd), target); }));
    TRY("listed", reach(stream(), listed));
    return 0;
  }`,
);

/** What a call is about is changed while it is looked at. */
const turner = compile(
  'turn-sockets',
  `${HEADERS}
  static struct sockaddr_un good, bad, seen, abstract;
  static volatile int stop, fds[2], number;
  static char a[256], b[256], way[256], other[256];
  static void *flip(void *arg) { while (!stop) { seen = bad; for (volatile int k = 0; k < 300; k++); seen = good; for (volatile int k = 0; k < 300; k++); } return 0; }
  static void *relink(void *arg) { while (!stop) { rename(a, way); symlink(bad.sun_path, a); rename(b, way); symlink(good.sun_path, b); } return 0; }
  static void *swap(void *arg) { while (!stop) { dup2(fds[0], number); dup2(fds[1], number); } return 0; }
  static void *replace(void *arg) { while (!stop) { symlink(bad.sun_path, other); rename(other, way); usleep(0); } return 0; }
  int main(int argc, char **argv) {
    fill(&good, argv[2]); fill(&bad, argv[1]); seen = good;
    snprintf(a, 256, "%s/a", argv[3]); snprintf(b, 256, "%s/b", argv[3]); snprintf(way, 256, "%s/way", argv[3]); snprintf(other, 256, "%s/other", argv[3]);
    int fd = stream(), allowed = 0;
    pthread_t thread;
    TRY("listed", connect(fd, (void *)&good, sizeof good));
    TRY("again", connect(fd, (void *)&bad, sizeof bad));
    pthread_create(&thread, 0, flip, 0);
    for (int i = 0; i < 300; i++) { fd = stream(); if (connect(fd, (void *)&seen, sizeof seen) == 0) allowed++; close(fd); }
    stop = 1; pthread_join(thread, 0);
    if (allowed) SAY("flipped-some", "yes");
    allowed = stop = 0; symlink(bad.sun_path, a); symlink(good.sun_path, b); pthread_create(&thread, 0, relink, 0);
    for (int i = 0; i < 300; i++) { fd = stream(); if (reach(fd, way) == 0) allowed++; close(fd); }
    stop = 1; pthread_join(thread, 0); unlink(way);
    if (allowed) SAY("relinked-some", "yes");
    // A socket of its own is bound, its name leads to another one by the time that it listens.
    for (int i = 0; i < 60; i++) {
      struct sockaddr_un own; socklen_t size = fill(&own, way);
      unlink(way); stop = 0; fd = stream(); bind(fd, (void *)&own, size);
      pthread_create(&thread, 0, replace, 0);
      if (i % 2) usleep(200);
      listen(fd, 50); connect(stream(), (void *)&bad, sizeof bad); reach(stream(), way);
      stop = 1; pthread_join(thread, 0); close(fd);
    }
    // Which socket a number stands for changes while it is connected, bound or listens.
    int pair[2]; socketpair(AF_UNIX, SOCK_STREAM, 0, pair); stop = 0;
    for (int round = 0; round < 24; round++) {
      fds[0] = round % 2 ? pair[0] : stream(); fds[1] = stream(); number = dup(fds[0]);
      if (round % 3 == 0) connect(fds[1], (void *)&good, sizeof good);
      stop = 0; pthread_create(&thread, 0, swap, 0);
      for (int i = 0; i < 10; i++) connect(number, (void *)(i % 2 ? &bad : &good), sizeof bad);
      stop = 1; pthread_join(thread, 0); close(fds[1]); if (round % 2 == 0) close(fds[0]); close(number);
    }
    return 0;
  }`,
  ['-pthread'],
);

/** Sockets of its own, by path and abstract, in the directory that it is given. */
const own = compile(
  'own-sockets',
  `${HEADERS}
  static int talk(int server, int client) {
    int fd = accept(server, 0, 0); char byte = 0;
    return fd < 0 || write(client, "x", 1) != 1 || read(fd, &byte, 1) != 1 || byte != 'x' ? -1 : 0;
  }
  int main(int argc, char **argv) {
    char path[256], second[256]; struct sockaddr_un self, got, any = {AF_UNIX}; socklen_t size, room = sizeof got;
    int server = stream(), client = stream(), fd;
    snprintf(path, 256, "%s/socket", argv[1]);
    size = fill(&self, path);
    TRY("early", reach(client, path));
    TRY("bind", bind(server, (void *)&self, size));
    TRY("listen", listen(server, 1));
    TRY("name", getsockname(server, (void *)&got, &room) || strcmp(got.sun_path, path) ? -1 : 0);
    TRY("connect", reach(client, path) || talk(server, client));
    TRY("relative", ({ chdir(argv[1]); fd = stream(); reach(fd, "socket") || talk(server, fd); }));
    TRY("second-name", ({ snprintf(second, 256, "%s/second", argv[1]); link(path, second); fd = stream(); reach(fd, second) || talk(server, fd); }));
    TRY("moved", ({ snprintf(second, 256, "%s/moved", argv[1]); rename(path, second); fd = stream(); reach(fd, second) || talk(server, fd); }));
    TRY("link", ({ symlink(second, path); fd = stream(); reach(fd, path) || talk(server, fd); }));
    TRY("waits", ({ pid_t child = fork(); if (child == 0) { for (int i = 0; i < 6; i++) if (reach(stream(), second)) _exit(errno); _exit(0); }
      usleep(100000); for (int i = 0; i < 6; i++) close(accept(server, 0, 0)); int status; waitpid(child, &status, 0); errno = WEXITSTATUS(status); status ? -1 : 0; }));
    TRY("in-use", ({ unlink(path); bind(stream(), (void *)&self, size); bind(stream(), (void *)&self, size) == 0 || errno != EADDRINUSE ? -1 : 0; }));
    close(server);
    TRY("closed", reach(stream(), second) == 0 || errno != ECONNREFUSED ? -1 : 0);
    int packets = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK, 0);
    TRY("packets", ({ snprintf(path, 256, "%s/packets", argv[1]); size = fill(&self, path); bind(packets, (void *)&self, size);
      listen(packets, 5); fd = socket(AF_UNIX, SOCK_SEQPACKET, 0); reach(fd, path) || talk(packets, fd); }));
    TRY("stays-nonblocking", accept(packets, 0, 0) >= 0 || errno != EAGAIN ? -1 : 0);
    server = stream();
    TRY("abstract", ({ size = fill(&self, argv[2]); fd = stream(); bind(server, (void *)&self, size) || listen(server, 5) || reach(fd, argv[2]) || talk(server, fd); }));
    TRY("abstract-in-use", bind(stream(), (void *)&self, size) == 0 || errno != EADDRINUSE ? -1 : 0);
    TRY("abstract-name", ({ room = sizeof got; getsockname(server, (void *)&got, &room) || room != size || memcmp(&got, &self, size) ? -1 : 0; }));
    TRY("any-name", ({ server = stream(); fd = stream(); room = sizeof got; bind(server, (void *)&any, sizeof any.sun_family) || listen(server, 5) || getsockname(server, (void *)&got, &room)
      || connect(fd, (void *)&got, room) || talk(server, fd); }));
    SAY("done", "yes");
    while (argc > 3 && access(argv[3], F_OK)) usleep(10000);
    return 0;
  }`,
);

/** Calls of the test itself, behind those of an attack. */
const LAST_CALLS = 2;

describe('reaching sockets that are not listed', () => {
  const arena = makeArena();
  const at = (where: string, kind: string) => join(where, `host-${kind}`);
  const abstract = `@enforcement-listed-${process.pid}`;
  const listed = at(arena.outside, 'listed');
  const placed = (where: string) => [
    at(where, 'stream'),
    at(where, 'datagrams'),
    at(where, 'packets'),
    abstract,
  ];
  const targets = { outside: placed(arena.outside), inside: placed(arena.workspace) } as const;
  let bystander: Bystander;
  const arrived = () => bystander.lines().filter((line) => line !== `arrived at ${listed}`).length;
  const arrivedAtListed = () => bystander.lines().length - arrived();
  const listedIn = (tier: Tier): Promise<Sandbox> =>
    arena.sandbox(tier, { unix: [listed], timeout: 300_000 });
  const unreached = async (sandbox: Sandbox, argv: Argv) => {
    const before = arrived();
    const trace = await confined(sandbox, argv);
    // What arrived before was seen at the latest together with the first of these.
    for (let last = 1; last <= LAST_CALLS; last++) {
      const call = connect(at(arena.outside, 'stream'));
      expect(await until(() => arrived() >= before + last)).toBe(true);
      call.destroy();
    }
    expect({ worked: worked(trace), arrived: arrived() - before }).toEqual({
      worked: ['listed'],
      arrived: LAST_CALLS,
    });
    return trace;
  };

  beforeAll(async () => {
    const names = [arena.outside, arena.workspace].flatMap((where) => [
      `s:${at(where, 'stream')}`,
      `d:${at(where, 'datagrams')}`,
      `q:${at(where, 'packets')}`,
    ]);
    bystander = await startBystander([host, ...names, `s:${abstract}`, `l:${listed}`]);
  });

  it.each(['outside', 'inside'] as const)('works without a sandbox: %s', async (place) => {
    const before = arrived();
    const trace = await unconfined([caller, ...targets[place], listed, arena.freshCorner()]);
    expect(Object.keys(trace.results)).toHaveLength(23);
    expect(Object.entries(trace.results).filter(([, how]) => how !== 'ok')).toEqual([]);
    expect(await until(() => arrived() - before >= 22)).toBe(true);
    const between = [arrived(), arrivedAtListed()];
    const turned = await unconfined([turner, targets[place][0] ?? '', listed, arena.freshCorner()]);
    expect(turned.results['flipped-some']).toBe('yes');
    expect(
      await until(() => arrived() > (between[0] ?? 0) + 5 && arrivedAtListed() > (between[1] ?? 0) + 5),
    ).toBe(true);
    const called = await unconfined([own, arena.freshCorner(), `@own-${process.pid}`]);
    expect(Object.entries(called.results).filter(([, how]) => how !== 'ok')).toEqual([
      ['early', 'ENOENT'],
      ['done', 'yes'],
    ]);
  });

  describe.each([...TIERS, ...OLDER_TIERS])('$name', (tier) => {
    it.each(['outside', 'inside'] as const)('never arrives, by whatever call or name: %s', async (place) => {
      const sandbox = await listedIn(tier);
      expect(stateOf(sandbox, 'unix-sockets')).toBe('enforced');
      expect(stateOf(sandbox, 'abstract-sockets')).toBe('enforced');
      const before = arrivedAtListed();
      const trace = await unreached(sandbox, [caller, ...targets[place], listed, arena.freshCorner()]);
      expect(Object.keys(trace.results)).toHaveLength(23);
      expect(await until(() => arrivedAtListed() - before >= 2)).toBe(true);
    });

    it('leaves sockets of its own, by path and abstract', async () => {
      const sandbox = await listedIn(tier);
      const trace = await confined(sandbox, [own, arena.freshCorner(), '@own']);
      expect(Object.entries(trace.results).filter(([, how]) => how !== 'ok')).toEqual([
        ['early', 'ENOENT'],
        ['done', 'yes'],
      ]);
    });
  });

  // Landlock has no say in it: the supervisor answers, with a view and without.
  describe.each(TIERS.filter(({ landlockAbi }) => landlockAbi > 0 || TIERS.length === 1))('$name', (tier) => {
    it('never arrives by changing what a call is about', async () => {
      const sandbox = await listedIn(tier);
      for (const [target = ''] of [targets.outside, targets.inside]) {
        const before = arrivedAtListed();
        const trace = await unreached(sandbox, [turner, target, listed, arena.freshCorner()]);
        // The races were run: some connections went where they may.
        expect(trace.results['flipped-some']).toBe('yes');
        expect(arrivedAtListed()).toBeGreaterThan(before + 1);
      }
      // The races are so many tries, which take minutes where a machine is emulated.
    }, 400_000);

    it('cannot be reached from outside at sockets of its own', async () => {
      const sandbox = await listedIn(tier);
      const corner = arena.freshCorner();
      const hold = makeHold(corner);
      let text = '';
      const run = confined(sandbox, [own, corner, '@own', hold.file], {
        onOutput: ({ bytes }) => {
          text += Buffer.from(bytes).toString();
        },
      });
      const name = join(corner, 'packets');
      expect(await until(() => text.includes('done=yes'))).toBe(true);
      const reached = await unconfined([caller, name, name, name, '@own', name, arena.freshCorner()]);
      hold.letGo();
      expect(worked(reached)).toEqual([]);
      expect((await run).results.done).toBe('yes');
    });

    it('leaves no descriptor of sockets of its own to the launcher', async () => {
      // Of this process, which is the launcher.
      const held = () =>
        readdirSync('/proc/self/fd')
          .map((fd) => orElse(() => readlinkSync(`/proc/self/fd/${fd}`), ''))
          .filter((path) => /\/sandbox-run-slot-\w+\/s\b/.test(path)).length;
      const sandbox = await listedIn(tier);
      const corner = arena.freshCorner();
      const hold = makeHold(corner);
      const run = confined(sandbox, [own, corner, '@own', hold.file]);
      expect(await until(() => held() > 0)).toBe(true);
      hold.letGo();
      expect((await run).results.done).toBe('yes');
      // No other command comes that would find them.
      expect(await until(() => held() === 0)).toBe(true);
    });
  });

  it('is about the object: a link to a listed one leads there, another socket by its name does not', async () => {
    const link = join(arena.outside, 'a-link');
    symlinkSync(listed, link);
    const sandbox = await arena.sandbox(TIERS[0] as Tier, { unix: [link] });
    const before = arrivedAtListed();
    const trace = await unreached(sandbox, [caller, ...targets.outside, link, arena.freshCorner()]);
    expect(trace.results.listed).toBe('ok');
    expect(await until(() => arrivedAtListed() - before >= 2)).toBe(true);
  });

  it('is refused where a command can put another socket behind the name', async () => {
    const link = join(arena.freshCorner(), 'link');
    symlinkSync(listed, link);
    await expect(arena.sandbox(TIERS[0] as Tier, { unix: [link] })).rejects.toThrow(
      /^network\.unix: .*leads through the symbolic link .*commands can change/,
    );
  });

  it.each([
    [
      'a path that is not there',
      () => join(arena.outside, 'nothing'),
      /does not exist; start its server first/,
    ],
    ['a directory', () => arena.outside, /is no socket/],
    ['a relative path', () => 'host-listed', /must be an absolute path/],
  ])('refuses %s with one line', async (_, entry, message) => {
    await expect(arena.sandbox(TIERS[0] as Tier, { unix: [entry()] })).rejects.toThrow(message);
  });
});
