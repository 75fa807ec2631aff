import { once } from 'node:events';
import { existsSync, mkdirSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from 'node:fs';
import { createServer as createHttpServer } from 'node:http';
import { type AddressInfo, createServer, type Server } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import {
  type ApprovalAnswer,
  type ApprovalRequest,
  type ApprovalScope,
  type AuditRecord,
  createSandbox,
  type ExecutionResult,
  type Sandbox,
  type SandboxOptions,
} from '../../src/index.ts';
import { messageForModel, openOwnState, warningsOf } from '../../src/run/index.ts';
import { eventually, sleep } from '../support/eventually.ts';
import { onOnePort } from '../support/one-port.ts';
import { compile, PROGRAMS } from '../support/sandboxee.ts';
import { untilTimeOut } from '../support/time-out.ts';

/** Where the servers are; names lead there by what the test gives the supervisor as its name server. */
const ADDRESS = '127.0.0.9';
const WORD = 'hello-from-the-host';
const NAMES: Readonly<Record<string, readonly string[]>> = {
  'rebind.test': ['127.0.0.1'],
  'inner.test': ['10.1.2.3', '169.254.169.254'],
  'nowhere.test': [],
  // Public, and nobody's here; its last four bytes are those of the server.
  'six.test': ['2a00:1450:4001::7f00:9'],
  'web.test': ['127.0.0.10'],
};

const HEADERS = `
  #include <arpa/inet.h>
  #include <netdb.h>
  #include <poll.h>
  #include <netinet/in.h>
  #include <pthread.h>
  #include <sys/epoll.h>
  #include <fcntl.h>
  #include <signal.h>
  static struct sockaddr_in of(const char *name, const char *port) {
    struct addrinfo hints = {0, AF_INET, SOCK_STREAM}, *found = 0;
    struct sockaddr_in to = {0};
    if (getaddrinfo(name, port, &hints, &found) == 0) memcpy(&to, found->ai_addr, sizeof to);
    return to;
  }
  // The answer is given once this was called (see answeringOn), and this ends once there is a question.
  static void let_answer(void) { close(open("go", O_CREAT | O_WRONLY, 0600)); }
  static void await_question(void) { while (access("asked", F_OK) < 0) poll(0, 0, 10); }
  static int tcp(int flags) { return socket(AF_INET, SOCK_STREAM | flags, 0); }
`;

/** Waits by epoll, as what is registered before it connects, edge by edge; says what it saw meanwhile. */
const poller = compile(
  'poll-for-answer',
  `${HEADERS}
  int main(int argc, char **argv) {
    struct sockaddr_in to = of(argv[1], argv[2]), peer;
    struct epoll_event event = {EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET}, got;
    int queue = epoll_create1(0), fd = tcp(SOCK_NONBLOCK), error = 0; socklen_t size = sizeof error;
    epoll_ctl(queue, EPOLL_CTL_ADD, fd, &event);
    while (epoll_wait(queue, &got, 1, 0) > 0);
    int begun = connect(fd, (void *)&to, sizeof to), why = errno;
    printf("connect=%d\\n", begun < 0 ? why : 0);
    if (why != EINPROGRESS) return 0;
    epoll_wait(queue, &got, 1, 60000);
    getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size);
    printf("error=%d\\n", error);
    while (error == 0 && getpeername(fd, (void *)&peer, &(socklen_t){sizeof peer}) < 0 && epoll_wait(queue, &got, 1, 60000) > 0);
    if (error == 0) TRY("peer", getpeername(fd, (void *)&peer, &(socklen_t){sizeof peer}));
    if (error == 0) TRY("write", write(fd, "x", 1) == 1 ? 0 : -1);
    return 0;
  }`,
);

/** One thread waits, another one reaches a host that is listed. */
const threads = compile(
  'connect-meanwhile',
  `${HEADERS}
  static struct sockaddr_in first, second; static volatile int done;
  static void *wait_for(void *arg) { TRY("asked", connect(tcp(0), (void *)&first, sizeof first)); done = 1; return 0; }
  int main(int argc, char **argv) {
    pthread_t thread; first = of(argv[1], argv[3]), second = of(argv[2], argv[3]);
    pthread_create(&thread, 0, wait_for, 0); await_question();
    if (!done) SAY("waits", "yes");
    TRY("listed", connect(tcp(0), (void *)&second, sizeof second));
    if (!done) SAY("meanwhile", "yes");
    let_answer();
    pthread_join(thread, 0); return 0;
  }`,
  ['-pthread'],
);

/** From a socket that has a port already, and from one that has none. */
const bound = compile(
  'bind-and-connect',
  `${HEADERS}
  int main(int argc, char **argv) {
    struct sockaddr_in to = of(argv[1], argv[2]), any = {AF_INET};
    int fd = tcp(0);
    TRY("bind", bind(fd, (void *)&any, sizeof any));
    TRY("bound", connect(fd, (void *)&to, sizeof to));
    TRY("unbound", connect(tcp(0), (void *)&to, sizeof to)); return 0;
  }`,
);

/** A signal comes for a call that waits: its handler runs at once, and the call goes on, or not. */
const signals = compile(
  'interrupt-the-wait',
  `${HEADERS}
  static int restarts;
  static void rang(int number) { write(1, "rang=yes\\n", 9); if (restarts) let_answer(); }
  int main(int argc, char **argv) {
    struct sockaddr_in to = of(argv[1], argv[2]);
    restarts = strcmp(argv[3], "restart") == 0;
    struct sigaction action = {{rang}}; action.sa_flags = restarts ? SA_RESTART : 0;
    sigaction(SIGALRM, &action, 0);
    if (fork() == 0) { await_question(); kill(getppid(), SIGALRM); _exit(0); }
    int fd = tcp(0), error = 0; socklen_t size = sizeof error;
    if (TRY("connect", connect(fd, (void *)&to, sizeof to)) < 0 && errno != EINTR) return 0;
    // What connect(2) says to do then.
    struct pollfd p = {fd, POLLOUT};
    if (!restarts && poll(&p, 1, 0) == 0) SAY("waited", "yes");
    let_answer();
    poll(&p, 1, 60000);
    TRY("outcome", (getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size), errno = error, error ? -1 : 0));
    TRY("write", send(fd, "x", 1, MSG_NOSIGNAL) == 1 ? 0 : -1); return 0;
  }`,
);

/** One thread, which goes on while somebody is asked. */
const single = compile(
  'go-on-meanwhile',
  `${HEADERS}
  int main(int argc, char **argv) {
    struct sockaddr_in to = of(argv[1], argv[3]), listed = of(argv[2], argv[3]);
    int fd = tcp(SOCK_NONBLOCK), error = 0; socklen_t size = sizeof error;
    TRY("begun", connect(fd, (void *)&to, sizeof to));
    TRY("again", connect(fd, (void *)&to, sizeof to));
    TRY("elsewhere", connect(fd, (void *)&listed, sizeof listed));
    struct pollfd p = {fd, POLLOUT};
    if (poll(&p, 1, 0) == 0) SAY("on-its-way", "yes");
    TRY("listed", connect(tcp(0), (void *)&listed, sizeof listed));
    if (poll(&p, 1, 0) == 0) SAY("meanwhile", "yes");
    let_answer();
    poll(&p, 1, 60000);
    TRY("outcome", (getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size), errno = error, error ? -1 : 0));
    struct sockaddr_in peer; size = sizeof peer;
    if (getpeername(fd, (void *)&peer, &size) == 0) SAY("peer", inet_ntoa(peer.sin_addr));
    return 0;
  }`,
);

const FETCH = `fetch(process.env.U).then((r) => r.text()).then(console.log, (e) => { console.error(e.cause ?? e); process.exit(1); })`;
const ASYNCIO = `
import asyncio, os
async def main():
    reader, writer = await asyncio.open_connection(os.environ['HOST'], int(os.environ['PORT']))
    writer.write(b'GET / HTTP/1.0\\r\\n\\r\\n')
    print((await reader.read()).decode())
asyncio.run(main())`;

/** Programs that wait for their connections, and programs that do not. */
const CLIENTS: readonly (readonly [name: string, command: string])[] = [
  ['curl', 'curl -sS -m 90 http://$HOST:$PORT/'],
  ['bash itself', `exec 3<>/dev/tcp/$HOST/$PORT && printf 'GET / HTTP/1.0\\r\\n\\r\\n' >&3 && cat <&3`],
  ['git', 'git ls-remote http://$HOST:$PORT/ 2>&1; curl -sS http://$HOST:$PORT/'],
  ['node fetch', 'U=http://$HOST:$PORT/ node -e "$FETCH"'],
  [
    'python urllib',
    `U=http://$HOST:$PORT/ python3 -c 'import os, urllib.request as u; print(u.urlopen(os.environ["U"], timeout=90).read())'`,
  ],
  ['python asyncio', 'python3 -c "$ASYNCIO"'],
];

const yes = (scope: ApprovalScope = 'once'): ApprovalAnswer => ({ approved: true, scope, by: 'a test' });
const no: ApprovalAnswer = { approved: false, reason: 'denied', by: 'a test' };

describe('hosts that somebody is asked about', () => {
  const root = mkdtempSync(join(realpathSync(tmpdir()), 'ask-for-hosts-'));
  const workspace = join(root, 'workspace');
  const opened: Sandbox[] = [];
  const records: AuditRecord[] = [];
  let server: Server;
  let trap: Server;
  let port = 0;
  let requests = 0;
  let trapped = 0;
  let questions: ApprovalRequest[] = [];
  let lookedUp: string[] = [];
  const toldTooEarly: string[] = [];

  beforeAll(async () => {
    mkdirSync(workspace);
    server = createHttpServer((_, response) => {
      requests += 1;
      response.end(`${WORD}\n`);
    });
    // On the same port of this machine itself, which nothing may lead to.
    trap = createServer((socket) => {
      trapped += 1;
      socket.destroy();
    });
    await onOnePort(async () => {
      server.close();
      await once(server.listen(0, ADDRESS), 'listening');
      ({ port } = server.address() as AddressInfo);
      await once(trap.listen(port, '127.0.0.1'), 'listening');
    });
  });
  afterEach(async () => {
    forget();
    for (const sandbox of opened.splice(0)) await sandbox.close();
    questions = [];
    lookedUp = [];
    records.length = 0;
    expect(trapped).toBe(0);
    expect(toldTooEarly).toEqual([]);
  });
  const forget = () => {
    for (const name of ['asked', 'go']) rmSync(join(workspace, name), { force: true });
  };
  afterAll(() => {
    server.close();
    trap.close();
    rmSync(root, { recursive: true, force: true });
  });

  type Answer = (request: ApprovalRequest, signal: AbortSignal | undefined) => Promise<ApprovalAnswer>;
  const answering =
    (milliseconds: number, answer: ApprovalAnswer): Answer =>
    async () => {
      await sleep(milliseconds);
      return answer;
    };
  /** Answers once the command has made the file `go` in the workspace; the file `asked` is there once there is a question. */
  const answeringOn =
    (answer: ApprovalAnswer): Answer =>
    async () => {
      writeFileSync(join(workspace, 'asked'), '');
      await eventually(() => expect(existsSync(join(workspace, 'go'))).toBe(true));
      return answer;
    };
  /** The address is listed at this port: so far names may lead there. No name is, but for one. */
  const asking = async (answer: Answer, more: SandboxOptions = {}): Promise<Sandbox> => {
    const sandbox = await createSandbox({
      workspace,
      net: [`${ADDRESS}:${port}`, `listed.test:${port}`],
      unlisted: 'ask',
      readable: [PROGRAMS],
      env: { FETCH, ASYNCIO },
      gate: {
        lookup: async (name) => {
          lookedUp.push(name);
          return { addresses: NAMES[name] ?? [ADDRESS], ttl: 5 };
        },
        audit: { append: async (record) => void records.push(record) },
        approver: {
          ask: (request, { signal }) => {
            const { host = '' } = request.connection ?? {};
            const before = questions.filter(({ connection }) => connection?.host === host).length;
            if (before === 0 && lookedUp.includes(host)) toldTooEarly.push(host);
            questions.push(request);
            return answer(request, signal);
          },
        },
      },
      policy: { unsafe: { unjudged_commands: true } },
      ...more,
    });
    opened.push(sandbox);
    return sandbox;
  };
  const run = (sandbox: Sandbox, command: string, host = 'unlisted.test', timeout = 60_000) =>
    sandbox.run(command, { env: { HOST: host, PORT: String(port) }, timeout });
  const asked = () => questions.map(({ connection }) => `${connection?.host}:${connection?.port}`);
  const trace = ({ stdout }: ExecutionResult) =>
    Object.fromEntries(stdout.split('\n').map((line) => line.split('=') as [string, string]));
  const forPerson = (result: ExecutionResult) => warningsOf(result).join('\n');
  const forModel = (sandbox: Sandbox, result: ExecutionResult) =>
    messageForModel(result, sandbox.plan, { command: 'x' });

  it.each(CLIENTS)(
    '%s goes on once the answer is yes',
    async (_, command) => {
      const sandbox = await asking(answering(100, yes()));
      const before = requests;
      const result = await run(sandbox, command);
      expect(result.stdout + result.stderr).toContain(WORD);
      expect(requests).toBeGreaterThan(before);
      expect(asked()).toEqual([`unlisted.test:${port}`]);
      expect(result.connections).toContainEqual(
        expect.objectContaining({
          ...{ verdict: 'allowed', host: 'unlisted.test', address: ADDRESS, port, approval: yes() },
        }),
      );
    },
    90_000,
  );

  it.each(CLIENTS)(
    '%s is refused if the answer is no, and the name is told to nobody',
    async (_, command) => {
      const sandbox = await asking(answering(100, no));
      const before = requests;
      const result = await run(sandbox, command);
      expect(result.stdout).not.toContain(WORD);
      expect(requests).toBe(before);
      expect(lookedUp).toEqual([]);
      expect(asked()).toEqual([`unlisted.test:${port}`]);
      expect(result.connections).toContainEqual(
        expect.objectContaining({
          verdict: 'refused',
          host: 'unlisted.test',
          port,
          approval: no,
          error: 'ECONNREFUSED',
        }),
      );
      expect(forPerson(result)).toContain('the answer was no');
      const said = forModel(sandbox, result);
      expect(said).toContain('the user was asked and refused');
      expect(said).not.toMatch(/--net|network\.allow|--ask/);
    },
    90_000,
  );

  it('says who wants to reach what, and records the answer', async () => {
    const sandbox = await asking(answering(0, yes()));
    await run(sandbox, 'curl -sS http://$HOST:$PORT/');
    const [question] = questions;
    expect(question?.connection).toMatchObject({ host: 'unlisted.test', port, program: 'curl' });
    expect(question?.decision.reasons[0]?.message).toMatch(
      /^"curl" \(process \d+\) wants to reach unlisted\.test:\d+, which the policy does not list$/,
    );
    expect(records).toContainEqual(
      expect.objectContaining({
        type: 'event',
        code: 'connection_asked',
        details: expect.objectContaining({
          host: 'unlisted.test',
          port,
          program: 'curl',
          approved: true,
          by: 'a test',
        }),
      }),
    );
  });

  it('asks once for connections to the same place, and again for another port and another command', async () => {
    const sandbox = await asking(answering(100, yes()));
    const many = await run(
      sandbox,
      'for i in 1 2 3 4 5; do curl -sS http://$HOST:$PORT/ & done; wait; curl -sS http://$HOST:$PORT/',
    );
    expect(many.stdout.split(WORD)).toHaveLength(7);
    expect(asked()).toEqual([`unlisted.test:${port}`]);
    await run(sandbox, 'curl -sS http://$HOST:$PORT/; curl -sS http://$HOST:1/');
    expect(asked()).toEqual([`unlisted.test:${port}`, `unlisted.test:${port}`, 'unlisted.test:1']);
  });

  it('tells programs that do not wait for a connection what they expect', async () => {
    const granted = trace(await run(await asking(answering(100, yes())), `${poller} $HOST $PORT`));
    expect(granted).toMatchObject({ connect: '115', error: '0', peer: 'ok', write: 'ok' });
    const refused = trace(await run(await asking(answering(100, no)), `${poller} $HOST $PORT`));
    // As of a host that does not want it, told after it was on its way.
    expect(refused).toMatchObject({ connect: '115', error: '104' });
  });

  it('holds up no program that does not wait for its connections', async () => {
    const command = `${single} $HOST listed.test $PORT`;
    const onItsWay = { begun: '115', again: '114', elsewhere: '114', 'on-its-way': 'yes' };
    const meanwhile = { ...onItsWay, listed: 'ok', meanwhile: 'yes' };
    const granted = trace(await run(await asking(answeringOn(yes())), command));
    expect(granted).toMatchObject({ ...meanwhile, outcome: 'ok', peer: ADDRESS });
    const before = requests;
    forget();
    const refused = trace(await run(await asking(answeringOn(no)), command));
    expect(refused).toMatchObject({ ...meanwhile, outcome: '104' });
    expect(requests).toBe(before);
  });

  it('serves many programs at once', async () => {
    const sandbox = await asking(answering(100, yes()));
    const result = await run(
      sandbox,
      'for i in $(seq 24); do curl -sS -m 50 http://h$((i % 12)).test:$PORT/ & done; wait',
      'x',
      120_000,
    );
    expect(result.stderr).toBe('');
    expect(result.stdout.split(WORD)).toHaveLength(25);
    expect(asked()).toHaveLength(12);
  }, 150_000);

  it('does not stop another thread', async () => {
    const sandbox = await asking(answeringOn(yes()));
    const traced = trace(await run(sandbox, `${threads} unlisted.test listed.test $PORT`));
    expect(traced).toEqual(
      expect.objectContaining({ waits: 'yes', listed: 'ok', meanwhile: 'yes', asked: 'ok' }),
    );
  });

  it('lets signals through to a call that waits', async () => {
    const goesOn = trace(await run(await asking(answeringOn(yes())), `${signals} $HOST $PORT restart`));
    expect(goesOn).toMatchObject({ rang: 'yes', connect: 'ok' });
    forget();
    const denied = trace(await run(await asking(answeringOn(no)), `${signals} $HOST $PORT restart`));
    expect(denied).toMatchObject({ rang: 'yes', connect: expect.stringMatching(/^1\d\d$/) });
    // Without SA_RESTART the connection is on its way, and no more than that, until there is an answer.
    forget();
    const stops = trace(await run(await asking(answeringOn(yes())), `${signals} $HOST $PORT fail`));
    expect(stops).toMatchObject({ rang: 'yes', connect: '4', waited: 'yes', outcome: 'ok', write: 'ok' });
    forget();
    const refused = trace(await run(await asking(answeringOn(no)), `${signals} $HOST $PORT fail`));
    expect(refused).toMatchObject({ rang: 'yes', connect: '4', waited: 'yes', outcome: '104' });
  });

  it('takes whatever is no answer for a no', async () => {
    const failing: readonly (readonly [Answer, string])[] = [
      [() => Promise.reject(new Error('broken')), 'failed'],
      [
        () => {
          throw new Error('broken at once');
        },
        'failed',
      ],
      [async () => ({ approved: 'yes' }) as never, 'failed'],
      [async () => undefined as never, 'failed'],
      [() => new Promise(() => {}), 'expired'],
    ];
    for (const [answer, reason] of failing) {
      const sandbox = await asking(answer, {
        policy: { unsafe: { unjudged_commands: true }, approval: { timeout_seconds: 0.5 } },
      });
      const result = await run(sandbox, 'curl -sS http://$HOST:$PORT/');
      expect(result).toMatchObject({ status: 'exited', exitCode: 7, stdout: '' });
      expect(result.connections?.[0]).toMatchObject({
        verdict: 'refused',
        approval: { approved: false, reason },
      });
    }
    const nobody = await asking(answering(0, yes()), {
      policy: { unsafe: { unjudged_commands: true }, approval: { ask: 'nobody' } },
    });
    const result = await run(nobody, 'curl -sS http://$HOST:$PORT/');
    expect(result.connections?.[0]?.approval).toMatchObject({ approved: false, reason: 'nobody' });
    expect(lookedUp).toEqual([]);
  });

  it('refuses what cannot be recorded', async () => {
    const sandbox = await asking(answering(0, yes()), {
      gate: {
        lookup: async () => ({ addresses: [ADDRESS], ttl: 5 }),
        approver: { ask: async () => yes() },
        audit: {
          append: async ({ type }) => {
            if (type === 'event') throw new Error('full');
          },
        },
      },
    });
    const result = await run(sandbox, 'curl -sS http://$HOST:$PORT/');
    expect(result).toMatchObject({ exitCode: 7, stdout: '' });
  });

  it('ends with the command', async () => {
    let given: AbortSignal | undefined;
    const sandbox = await asking((_, signal) => {
      given = signal;
      return new Promise(() => {});
    });
    const result = await untilTimeOut(
      500,
      (timeout) => run(sandbox, 'curl -sS http://$HOST:$PORT/', 'unlisted.test', timeout),
      () => given !== undefined,
    );
    expect(result.status).toBe('timed-out');
    await eventually(() => expect(given?.aborted).toBe(true));
  });

  it('asks so often and no oftener', async () => {
    const sandbox = await asking(answering(0, no));
    const result = await run(
      sandbox,
      `for i in $(seq 400); do (exec 3<>/dev/tcp/h$i.test/$PORT) 2>/dev/null; done; echo over`,
    );
    expect(result.stdout).toBe('over\n');
    expect(questions).toHaveLength(16);
    expect(lookedUp).toEqual([]);
    expect(forPerson(result)).toContain('the answer was no');
    const unasked = result.connections?.filter(
      ({ approval }) => approval?.approved === false && approval.reason === 'failed',
    );
    expect(unasked?.length).toBeGreaterThan(100);
  });

  it('never asks about what is denied, this machine or the network around it', async () => {
    const sandbox = await asking(answering(0, yes()), {
      policy: {
        unsafe: { unjudged_commands: true },
        network: { deny: ['*.denied.test', `half.test:${port}`, '240.0.0.0/4'] },
      },
    });
    const places = [
      ...['127.0.0.1', '127.0.0.2', 'localhost', '0.0.0.0', '10.1.2.3', '192.168.1.1', '169.254.169.254'],
      ...[
        '[::1]',
        '[::ffff:127.0.0.1]',
        '[fe80::1%lo]',
        '100.64.0.1',
        '240.7.7.7',
        'a.denied.test',
        'half.test',
      ],
    ];
    const result = await run(
      sandbox,
      places.map((place) => `curl -sS -g -m 10 'http://${place}:'$PORT/`).join('; '),
    );
    expect(result.stdout).toBe('');
    expect(questions).toEqual([]);
    expect(lookedUp).toEqual([]);
    expect(result.connections?.find(({ host }) => host === 'half.test')?.rule).toBe(`half.test:${port}`);
    // What stands for a name is none of what is denied.
    expect((await run(sandbox, 'curl -sS http://$HOST:$PORT/')).stdout).toContain(WORD);
  });

  it('leads nowhere that no entry allows, whatever a name says once there is a yes', async () => {
    const sandbox = await asking(answering(0, yes()));
    const result = await run(
      sandbox,
      'for h in rebind.test inner.test nowhere.test; do curl -sS -m 10 http://$h:$PORT/; done',
    );
    expect(result.stdout).toBe('');
    expect(asked()).toEqual(['rebind.test', 'inner.test', 'nowhere.test'].map((name) => `${name}:${port}`));
    const of = (name: string) => result.connections?.find(({ host }) => host === name);
    expect(of('rebind.test')).toMatchObject({
      verdict: 'refused',
      address: '127.0.0.1',
      entry: `localhost:${port}`,
    });
    expect(of('inner.test')).toMatchObject({
      verdict: 'refused',
      address: '10.1.2.3',
      entry: `10.1.2.3:${port}`,
    });
    expect(of('nowhere.test')).toMatchObject({ verdict: 'refused', error: 'EHOSTUNREACH' });
    expect(forPerson(result)).toContain('it leads to 127.0.0.1, an address that no entry allows');
  });

  it('is told of a connection that waits when the command ends', async () => {
    const sandbox = await asking(answering(30_000, yes()));
    const result = await run(sandbox, 'curl -sS http://$HOST:$PORT/', 'unlisted.test', 1500);
    expect(result.status).toBe('timed-out');
    expect(result.connections).toMatchObject([{ verdict: 'refused', host: 'unlisted.test', port }]);
    expect(forPerson(result)).toContain(`could not reach unlisted.test:${port}: the policy does not list it`);
  });

  // 101: ENETUNREACH.
  it('an address of IPv6 leads to none of IPv4', async () => {
    const sandbox = await asking(answering(0, yes()));
    const reached = async (host: string) => (await run(sandbox, `${bound} ${host} $PORT`)).stdout;
    expect(await reached('six.test')).toBe('bind=ok\nbound=101\nunbound=101\n');
    // The same way to the server is open to its name.
    expect(await reached('$HOST')).toBe('bind=ok\nbound=ok\nunbound=ok\n');
  });

  // Only root may have the usual port.
  it.runIf(process.getuid?.() === 0)(
    'with network.verify it also has to name the host that was allowed',
    async () => {
      const web = createHttpServer((_, response) => response.end(WORD)).listen(80, '127.0.0.10');
      await once(web, 'listening');
      try {
        const sandbox = await asking(answering(0, yes()), {
          net: ['127.0.0.10:80'],
          policy: { network: { verify: 'sni' }, unsafe: { unjudged_commands: true } },
        });
        const named = await run(sandbox, 'curl -sS -m 10 http://web.test/');
        expect(named.stdout).toContain(WORD);
        expect(named.connections).toContainEqual(
          expect.objectContaining({
            verdict: 'allowed',
            host: 'web.test',
            askedFor: 'web.test',
            approval: yes(),
          }),
        );
        const other = await run(sandbox, 'curl -sS -m 10 -H "Host: other.test" http://web.test/');
        expect(other.stdout).toBe('');
        expect(other.connections).toContainEqual(
          expect.objectContaining({ verdict: 'refused', host: 'web.test', askedFor: 'other.test' }),
        );
        expect(forPerson(other)).toContain('it asked for other.test there, and the policy does not list it');
        expect(asked()).toEqual(['web.test:80', 'web.test:80']);
      } finally {
        web.close();
      }
    },
  );

  it('remembers an answer for as long as it is for', async () => {
    const session = `asks-${port}`;
    const command = 'curl -sS http://$HOST:$PORT/';
    const within = await asking(answering(0, yes('session')), { session });
    await run(within, command);
    await run(within, command);
    expect(questions).toHaveLength(1);
    expect((await run(await asking(answering(0, no), { session }), command)).stdout).toContain(WORD);
    const other = await run(await asking(answering(0, no), { session: `${session}-b` }), command);
    expect(other.stdout).toBe('');
    expect(questions).toHaveLength(2);

    await run(await asking(answering(0, yes('always'))), command);
    const remembered = await run(await asking(answering(0, no)), command);
    expect(remembered.stdout).toContain(WORD);
    expect(remembered.connections?.[0]?.approval).toMatchObject({ approved: true, scope: 'always' });
    expect(questions).toHaveLength(3);

    const { state } = await openOwnState();
    const grants = (await state.approvals.grants()).filter(({ scope }) => scope === 'always');
    expect(grants.map(({ request }) => request.connection?.host)).toEqual(['unlisted.test']);
    for (const { id } of grants) await state.approvals.revoke(id);
    state.close();
    expect((await run(await asking(answering(0, no)), command)).stdout).toBe('');
    expect(questions).toHaveLength(4);
  });

  it('asks in a shell session, too, and anew for each of its commands', async () => {
    const sandbox = await asking(answering(100, yes()));
    await using shell = await sandbox.session();
    const command = `curl -sS http://unlisted.test:${port}/`;
    expect((await shell.run(`${command}; ${command}`)).stdout.split(WORD)).toHaveLength(3);
    expect(questions).toHaveLength(1);
    const second = await shell.run(command);
    expect(second.stdout).toContain(WORD);
    expect(second.connections?.[0]).toMatchObject({ host: 'unlisted.test', approval: yes() });
    expect(questions).toHaveLength(2);
  });

  it('asks nobody without the key', async () => {
    const sandbox = await asking(answering(0, yes()), { unlisted: 'deny' });
    const result = await run(sandbox, 'curl -sS http://$HOST:$PORT/');
    expect(result.connections?.[0]).toMatchObject({
      verdict: 'refused',
      protocol: 'name',
      error: 'NXDOMAIN',
    });
    expect(questions).toEqual([]);
  });
});
