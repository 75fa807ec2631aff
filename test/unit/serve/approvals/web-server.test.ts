import { request as httpRequest, type IncomingHttpHeaders } from 'node:http';
import { connect, type Socket } from 'node:net';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import type { ApprovalServer, RequestPatience } from '../../../../src/serve/approvals/web/web-server.ts';
import { serveApprovalPage } from '../../../../src/serve/approvals/web/web-server.ts';
import { OF_THIS_PROCESS } from '../../../../src/workspace/index.ts';
import { makeStatePlace, sampleRequest, until } from '../../../support/approvals.ts';
import { HALF_OPEN, holdOpen } from '../../../support/half-open.ts';

const place = makeStatePlace();
const stateHomeBefore = process.env.XDG_STATE_HOME;
beforeAll(() => {
  // What other tests preview meanwhile is not on this page.
  process.env.XDG_STATE_HOME = place.stateHome;
});
afterAll(() => {
  process.env.XDG_STATE_HOME = stateHomeBefore;
});
/** No connection is given up for taking its time: who is answered did not wait for that. */
const PATIENT: RequestPatience = { headers: 600_000, request: 600_000, check: 1_000 };
const servers: ApprovalServer[] = [];
afterEach(async () => {
  for (const server of servers.splice(0)) await server.close();
});

async function serve(patience = PATIENT) {
  const { approvals: store } = await place.open();
  const server = await serveApprovalPage({ store, around: OF_THIS_PROCESS, port: 0, patience });
  servers.push(server);
  const { port, hash } = new URL(server.address);
  return {
    store,
    server,
    port: Number(port),
    token: hash.slice(1),
    post: () => store.post(sampleRequest(), Date.now() + 60_000),
  };
}

interface Sent {
  readonly port: number;
  readonly path: string;
  readonly method?: string;
  /** `undefined` leaves one out. */
  readonly headers?: Readonly<Record<string, string | undefined>>;
  readonly body?: string;
}

/** Sends exactly these headers, and reads the whole answer. */
function send({ port, path, method = 'GET', headers = {}, body }: Sent) {
  const given = Object.entries(headers).filter((pair): pair is [string, string] => pair[1] !== undefined);
  return new Promise<{ status: number; headers: IncomingHttpHeaders; text: string }>((resolve, reject) => {
    const request = httpRequest(
      {
        host: '127.0.0.1',
        port,
        path,
        method,
        headers: Object.fromEntries(given),
        setHost: false,
        agent: false,
      },
      async (response) => {
        let text = '';
        for await (const chunk of response) text += chunk;
        resolve({ status: response.statusCode ?? 0, headers: response.headers, text });
      },
    );
    request.on('error', reject);
    request.end(body);
  });
}

/** What our page would send. */
function answer({ port, token }: { readonly port: number; readonly token: string }, id: string) {
  return {
    port,
    path: '/answer',
    method: 'POST',
    headers: {
      host: `127.0.0.1:${port}`,
      origin: `http://127.0.0.1:${port}`,
      'content-type': 'application/json',
      'sec-fetch-site': 'same-origin',
      'x-sandbox-run-token': token,
    },
    body: JSON.stringify({ id, approved: true, scope: 'once' }),
  };
}

describe('the web server of approvals', () => {
  it('listens on this machine only, under an address that nobody guesses', async () => {
    const { server, port } = await serve();
    expect(server.address).toMatch(/^http:\/\/127\.0\.0\.1:\d+\/#[\w-]{43}$/);
    const { server: other } = await serve();
    expect(other.address.split('#')[1]).not.toBe(server.address.split('#')[1]);
    // Another address of this machine.
    const refused = new Promise((resolve) => connect(port, '127.0.0.2').once('error', resolve));
    expect(await refused).toMatchObject({ code: 'ECONNREFUSED' });
  });

  it('gives a page without secrets, with headers that keep others out', async () => {
    const { port, token, post } = await serve();
    const id = await post();
    const page = await send({ port, path: '/', headers: { host: `localhost:${port}` } });
    expect(page.status).toBe(200);
    expect(page.text).not.toContain(token);
    expect(page.text).not.toContain(id);
    expect(page.headers).toMatchObject({
      'cache-control': 'no-store',
      'x-content-type-options': 'nosniff',
      'x-frame-options': 'DENY',
      'referrer-policy': 'no-referrer',
      'cross-origin-opener-policy': 'same-origin',
      'cross-origin-resource-policy': 'same-origin',
    });
    expect(page.headers['set-cookie']).toBeUndefined();
    expect(page.headers['access-control-allow-origin']).toBeUndefined();
    const policy = page.headers['content-security-policy'];
    expect(policy).toContain("default-src 'none'");
    expect(policy).toContain("frame-ancestors 'none'");
    expect(policy).not.toContain('unsafe');
  });

  it('takes an answer of its page', async () => {
    const served = await serve();
    const id = await served.post();
    expect(await send(answer(served, id))).toMatchObject({ status: 200, text: 'Approved: once.\n' });
    expect(await served.store.take(id)).toEqual({ approved: true, scope: 'once', by: 'web page' });
  });

  it('says when an answer comes too late', async () => {
    const served = await serve();
    const id = await served.post();
    await served.store.answer(id, { approved: false, reason: 'denied', by: 'test' });
    expect(await send(answer(served, id))).toMatchObject({ status: 409 });
    expect(await served.store.take(id)).toMatchObject({ approved: false });
  });

  it.each([
    ['no token', { 'x-sandbox-run-token': undefined }],
    ['an empty token', { 'x-sandbox-run-token': '' }],
    ['a wrong token', { 'x-sandbox-run-token': 'A'.repeat(43) }],
    ['no Host', { host: undefined }],
    ['a foreign Host', { host: 'attacker.example' }],
    [
      'a foreign Host with our port',
      { host: 'attacker.example:PORT', origin: 'http://attacker.example:PORT' },
    ],
    ['a name that begins like ours', { host: '127.0.0.1:PORT.attacker.example' }],
    ['our name without the port', { host: '127.0.0.1', origin: 'http://127.0.0.1' }],
    ['no Origin', { origin: undefined }],
    ['a foreign Origin', { origin: 'http://attacker.example' }],
    ['the Origin of another port', { origin: 'http://127.0.0.1:1' }],
    ['an Origin of nowhere', { origin: 'null' }],
    ['another one of our names as Origin', { origin: 'http://localhost:PORT' }],
    ['our Origin with TLS', { origin: 'https://127.0.0.1:PORT' }],
    ['a page of another site', { 'sec-fetch-site': 'cross-site' }],
    ['a page of another port', { 'sec-fetch-site': 'same-site' }],
    ['a form', { 'content-type': 'application/x-www-form-urlencoded' }],
    ['plain text', { 'content-type': 'text/plain' }],
  ])('refuses an answer with %s', async (_, change) => {
    const served = await serve();
    const id = await served.post();
    const good = answer(served, id);
    const changed = Object.entries(change).map(([name, value]) => [
      name,
      value?.replace('PORT', String(served.port)),
    ]);
    const headers = { ...good.headers, ...Object.fromEntries(changed) };
    const { status } = await send({ ...good, headers });
    // A request without Host is none in HTTP/1.1.
    expect(status).toBe('host' in change && change.host === undefined ? 400 : 403);
    expect(await served.store.take(id)).toBeUndefined();
  });

  it.each(['GET', 'PUT', 'DELETE', 'OPTIONS', 'HEAD'])('refuses an answer by %s', async (method) => {
    const served = await serve();
    const id = await served.post();
    const given = await send({ ...answer(served, id), method });
    expect(given.status).toBe(403);
    expect(given.headers['access-control-allow-origin']).toBeUndefined();
    expect(await served.store.take(id)).toBeUndefined();
  });

  it.each([
    ['no JSON', 'approve'],
    ['nothing', ''],
    ['an unknown key', '{"id":"ID","approved":true,"scope":"once","all":true}'],
    ['no scope', '{"id":"ID","approved":true}'],
    ['an unknown scope', '{"id":"ID","approved":true,"scope":"forever"}'],
    ['something like a yes', '{"id":"ID","approved":1,"scope":"once"}'],
    ['a list', '[{"id":"ID","approved":true,"scope":"once"}]'],
  ])('%s is no answer', async (_, body) => {
    const served = await serve();
    const id = await served.post();
    const given = await send({ ...answer(served, id), body: body.replace('ID', id) });
    expect(given.status).toBe(400);
    expect(await served.store.take(id)).toBeUndefined();
  });

  it('what is too long is no answer', async () => {
    const served = await serve();
    const id = await served.post();
    const good = answer(served, id);
    const given = await send({ ...good, body: good.body + ' '.repeat(100_000) }).catch(() => undefined);
    expect(given?.status ?? 400).toBe(400);
    expect(await served.store.take(id)).toBeUndefined();
  });

  it.each([
    ['no token', undefined, undefined, 403],
    ['a wrong token', 'x', undefined, 403],
    ['a token in the address only', undefined, '?token=TOKEN', 403],
  ])('lists nothing for %s', async (_, token, query = '', status) => {
    const served = await serve();
    const id = await served.post();
    const given = await send({
      port: served.port,
      path: `/events${query.replace('TOKEN', served.token)}`,
      headers: { host: `127.0.0.1:${served.port}`, 'x-sandbox-run-token': token },
    });
    expect(given.status).toBe(status);
    expect(given.text).not.toContain(id);
  });

  it.each(['/events', '/answer', '/', '/nothing'])('%s is nothing under another name', async (path) => {
    const { port, token } = await serve();
    const given = await send({
      port,
      path,
      headers: { host: `rebound.example:${port}`, 'x-sandbox-run-token': token },
    });
    expect(given.status).toBe(403);
  });

  it('a port that is taken is an error', async () => {
    const { port, store } = await serve();
    await expect(serveApprovalPage({ store, around: OF_THIS_PROCESS, port })).rejects.toMatchObject({
      code: 'gate.unusable',
    });
  });

  describe('while somebody holds connections open', () => {
    const held: { release(): void }[] = [];
    const pages: Socket[] = [];
    afterEach(() => {
      for (const one of held.splice(0)) one.release();
      for (const page of pages.splice(0)) page.destroy();
    });

    /** An open page: its events. */
    async function openPage({ port, token }: { readonly port: number; readonly token: string }) {
      const socket = connect(port, '127.0.0.1');
      pages.push(socket);
      let heard = '';
      socket.on('data', (chunk) => {
        heard += chunk;
      });
      socket.on('error', () => {});
      socket.write(
        `GET /events HTTP/1.1\r\nHost: 127.0.0.1:${port}\r\nX-Sandbox-Run-Token: ${token}\r\n\r\n`,
      );
      await until(() => /event: pending|close some/.test(heard) || undefined);
      return { socket, heard: () => heard };
    }

    it.each([
      ...HALF_OPEN.map(([what, text]) => [200, what, text] as const),
      [700, 'nothing sent', ''],
    ] as const)('%d with %s, people get through and their pages stay', async (count, _, text) => {
      const served = await serve();
      const { port } = served;
      const page = await openPage(served);
      const attacker = await holdOpen(count, () => connect(port, '127.0.0.1'), text);
      held.push(attacker);
      // So many kept everybody else out.
      expect(attacker.held()).toBeGreaterThan(64);
      for (let times = 0; times < 5; times += 1) {
        const headers = { host: `127.0.0.1:${port}` };
        expect((await send({ port, path: '/', headers })).status).toBe(200);
        const id = await served.post();
        await until(() => page.heard().includes(id) || undefined);
        expect((await send(answer(served, id))).status).toBe(200);
      }
      expect(page.socket.destroyed).toBe(false);
      if (count > 512) expect(attacker.dropped()).toBeGreaterThan(100);
    });

    it('with answers that nobody reads, people get through', async () => {
      const served = await serve();
      const { port } = served;
      const head = { host: `127.0.0.1:${port}` };
      const pages = `GET / HTTP/1.1\r\nHost: 127.0.0.1:${port}\r\n\r\n`.repeat(400);
      held.push(await holdOpen(70, () => connect(port, '127.0.0.1'), pages, { reads: false }));
      // Once what they asked for is written as far as it can be.
      expect((await send({ port, path: '/', headers: head })).status).toBe(200);
      expect((await send({ port, path: '/', headers: head })).status).toBe(200);
      const id = await served.post();
      expect((await send(answer(served, id))).status).toBe(200);
    });

    it('ends those that send nothing, after some time', async () => {
      const { port } = await serve({ headers: 50, request: 100, check: 50 });
      const attacker = await holdOpen(10, () => connect(port, '127.0.0.1'), '', { again: false });
      held.push(attacker);
      await until(() => attacker.dropped() === 10 || undefined);
    });

    it('of open pages there are only so many, and further ones are told', async () => {
      const served = await serve();
      const open = await Promise.all(Array.from({ length: 64 }, () => openPage(served)));
      for (const page of open) expect(page.heard()).toContain(' 200 ');
      expect((await openPage(served)).heard()).toContain(' 503 ');
      open[0]?.socket.destroy();
      await until(async () => (await openPage(served)).heard().includes(' 200 ') || undefined);
    });
  });
});
