import { join } from 'node:path';
import { beforeAll, describe, expect, it } from 'vitest';
import { makeArena } from '../support/arena.ts';
import { type Bystander, startBystander, until } from '../support/bystander.ts';
import { compile, confined, unconfined, worked } from '../support/sandboxee.ts';
import { OLDER_TIERS, stateOf, TIERS } from '../support/tiers.ts';

const ADDRESS = `
  #include <poll.h>
  socklen_t fill(struct sockaddr_un *to, const char *name) {
    memset(to, 0, sizeof *to);
    to->sun_family = AF_UNIX;
    strcpy(to->sun_path + (*name == '@'), *name == '@' ? name + 1 : name);
    return offsetof(struct sockaddr_un, sun_path) + strlen(name) + (*name != '@');
  }
`;

/** Listens on the given names ('@' = abstract), two by two: stream, datagram. Prints what arrives. */
const host = compile(
  'unix-host',
  `${ADDRESS}
  int main(int argc, char **argv) {
    struct pollfd polled[32];
    int count = argc - 1;
    for (int i = 0; i < count; i++) {
      struct sockaddr_un self;
      socklen_t size = fill(&self, argv[i + 1]);
      int fd = socket(AF_UNIX, i % 2 ? SOCK_DGRAM : SOCK_STREAM, 0);
      if (bind(fd, (void *)&self, size)) { perror("bind"); return 1; }
      if (i % 2 == 0) listen(fd, 50);
      polled[i] = (struct pollfd){fd, POLLIN};
    }
    printf("ready\\n");
    for (;;) {
      fflush(stdout);
      poll(polled, count, -1);
      for (int i = 0; i < count; i++) {
        char buffer[64];
        if (!(polled[i].revents & POLLIN)) continue;
        if (i % 2) recv(polled[i].fd, buffer, 64, 0); else close(accept(polled[i].fd, 0, 0));
        printf("arrived at %s\\n", argv[i + 1]);
      }
    }
  }`,
);

const caller = compile(
  'unix-caller',
  `${ADDRESS}
  int main(int argc, char **argv) {
    struct sockaddr_un stream, datagram;
    socklen_t stream_size = fill(&stream, argv[1]), datagram_size = fill(&datagram, argv[2]);
    int fd, pair[2];
    TRY("stream-connect", (fd = socket(AF_UNIX, SOCK_STREAM, 0)) < 0 ? -1 : connect(fd, (void *)&stream, stream_size));
    TRY("datagram-sendto", (fd = socket(AF_UNIX, SOCK_DGRAM, 0)) < 0 ? -1 : sendto(fd, "x", 1, 0, (void *)&datagram, datagram_size));
    TRY("datagram-connect", (fd = socket(AF_UNIX, SOCK_DGRAM, 0)) < 0 ? -1 : connect(fd, (void *)&datagram, datagram_size) || send(fd, "x", 1, 0) < 0 ? -1 : 0);
    TRY("raw-sendto", (fd = socket(AF_UNIX, SOCK_RAW, 0)) < 0 ? -1 : sendto(fd, "x", 1, 0, (void *)&datagram, datagram_size));
    TRY("pair-sendto", socketpair(AF_UNIX, SOCK_DGRAM, 0, pair) ? -1 : sendto(pair[0], "x", 1, 0, (void *)&datagram, datagram_size));
    TRY("pair-connect", socketpair(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0, pair) ? -1 : connect(pair[0], (void *)&datagram, datagram_size) || send(pair[0], "x", 1, 0) < 0 ? -1 : 0);
    TRY("raw-pair-sendto", socketpair(AF_UNIX, SOCK_RAW, 0, pair) ? -1 : sendto(pair[0], "x", 1, 0, (void *)&datagram, datagram_size));
    TRY("pair-sendmsg", ({ struct iovec piece = {"x", 1}; struct msghdr m = {&datagram, datagram_size, &piece, 1}; socketpair(AF_UNIX, SOCK_DGRAM, 0, pair) ? -1 : sendmsg(pair[0], &m, 0); }));
    TRY("stream-pair-connect", socketpair(AF_UNIX, SOCK_STREAM, 0, pair) ? -1 : connect(pair[0], (void *)&stream, stream_size));
    TRY("seqpacket-pair-connect", socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair) ? -1 : connect(pair[0], (void *)&stream, stream_size));
    return 0;
  }`,
);

const talker = compile(
  'unix-own',
  `${ADDRESS}
  int main(int argc, char **argv) {
    int pair[2];
    char byte;
    TRY("pair", socketpair(AF_UNIX, SOCK_STREAM, 0, pair) || write(pair[0], "x", 1) != 1 || read(pair[1], &byte, 1) != 1 ? -1 : 0);
    struct sockaddr_un self;
    for (int i = 1; i < argc; i++) {
      socklen_t size = fill(&self, argv[i]);
      int fd = socket(AF_UNIX, SOCK_STREAM, 0), client = socket(AF_UNIX, SOCK_STREAM, 0);
      TRY(*argv[i] == '@' ? "own-abstract" : "own-path", fd < 0 || bind(fd, (void *)&self, size) || listen(fd, 1) || connect(client, (void *)&self, size) ? -1 : 0);
    }
    return 0;
  }`,
);

const FREE = 8;

describe('reaching unix sockets of the host', () => {
  const arena = makeArena();
  const name = (where: string, kind: string) => join(where, `host-${kind}`);
  const places = {
    outside: [name(arena.outside, 'stream'), name(arena.outside, 'datagram')],
    abstract: [`@enforcement-${process.pid}-stream`, `@enforcement-${process.pid}-datagram`],
    inside: [name(arena.workspace, 'stream'), name(arena.workspace, 'datagram')],
  } as const;
  let bystander: Bystander;
  beforeAll(async () => {
    bystander = await startBystander([host, ...places.outside, ...places.abstract, ...places.inside]);
  });
  const arrivals = (place: keyof typeof places) =>
    bystander.lines().filter((line) => places[place].some((at) => line === `arrived at ${at}`)).length;

  /** Calls without a sandbox, and waits until that has arrived: whatever called before is counted then. How many did? */
  const arrivedSince = async (place: keyof typeof places, before: number, least = 0) => {
    await unconfined([caller, ...places[place]]);
    expect(await until(() => arrivals(place) - before >= FREE + least)).toBe(true);
    return arrivals(place) - before - FREE;
  };

  it.each(['outside', 'abstract', 'inside'] as const)('works without a sandbox: %s', async (place) => {
    const trace = await unconfined([caller, ...places[place]]);
    expect(worked(trace)).toHaveLength(FREE);
    expect(await until(() => arrivals(place) === FREE)).toBe(true);
  });

  describe.each([...TIERS, ...OLDER_TIERS])('$name', (tier) => {
    it('fails for sockets by path outside', async () => {
      const sandbox = await arena.sandbox(tier);
      const before = arrivals('outside');
      const trace = await confined(sandbox, [caller, ...places.outside]);
      const arrived = await arrivedSince('outside', before);
      // With a view, those in the workspace are another matter before ABI 9: see below.
      const isPart = tier.view && tier.landlockAbi < 9;
      expect(stateOf(sandbox, 'unix-sockets')).toBe(isPart ? 'degraded' : 'enforced');
      expect({ worked: worked(trace), arrived }).toEqual({ worked: [], arrived: 0 });
    });

    it('fails for abstract sockets', async () => {
      const sandbox = await arena.sandbox(tier);
      const before = arrivals('abstract');
      const trace = await confined(sandbox, [caller, ...places.abstract]);
      const arrived = await arrivedSince('abstract', before);
      expect(stateOf(sandbox, 'abstract-sockets')).toBe('enforced');
      expect({ worked: worked(trace), arrived }).toEqual({ worked: [], arrived: 0 });
    });

    it('reaches those inside the workspace, until Landlock tells them from its own', async () => {
      const sandbox = await arena.sandbox(tier);
      const before = arrivals('inside');
      const trace = await confined(sandbox, [caller, ...places.inside]);
      const reached = stateOf(sandbox, 'unix-sockets') === 'enforced' ? 0 : FREE;
      const arrived = await arrivedSince('inside', before, reached);
      expect(worked(trace)).toHaveLength(reached);
      expect(arrived).toBe(reached);
    });

    it('leaves socketpair, and own sockets where the host cannot be reached by them', async () => {
      const sandbox = await arena.sandbox(tier);
      const own = join(arena.freshCorner(), 'own');
      const trace = await confined(sandbox, [talker, own, '@own']);
      // From ABI 9 on Landlock keeps others' sockets shut, so that those of its own can stay.
      const isOpen = tier.view || tier.landlockAbi >= 9;
      expect(worked(trace)).toEqual(isOpen ? ['pair', 'own-path', 'own-abstract'] : ['pair']);
    });
  });

  describe.each(TIERS)('$name, unix_sockets allowed by the policy', (tier) => {
    it('is off in the report', async () => {
      const sandbox = await arena.sandbox(tier, { policy: { network: { unix_sockets: 'allowed' } } });
      expect(stateOf(sandbox, 'unix-sockets')).toBe('off');
    });
  });

  describe.each([...TIERS, ...OLDER_TIERS])('$name, profile networked', (tier) => {
    it('abstract sockets are refused, or the report says that they are not', async () => {
      const sandbox = await arena.sandbox(tier, { profile: 'networked' });
      const before = arrivals('abstract');
      const trace = await confined(sandbox, [caller, ...places.abstract]);
      const arrived = await arrivedSince('abstract', before);
      if (stateOf(sandbox, 'abstract-sockets') === 'enforced') {
        expect({ worked: worked(trace), arrived }).toEqual({ worked: [], arrived: 0 });
      } else {
        expect([stateOf(sandbox, 'abstract-sockets'), tier.landlockAbi < 6]).toEqual(['unsupported', true]);
      }
    });
  });
});
