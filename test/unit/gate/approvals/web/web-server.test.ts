import { request as httpRequest, type IncomingHttpHeaders } from 'node:http';
import { connect } from 'node:net';
import { afterEach, describe, expect, it } from 'vitest';
import type { ApprovalServer } from '../../../../../src/gate/approvals/approval-server.ts';
import { serveApprovalPage } from '../../../../../src/gate/approvals/web/web-server.ts';
import { makeStatePlace, sampleRequest } from '../../../../support/approvals.ts';

const place = makeStatePlace();
const servers: ApprovalServer[] = [];
afterEach(async () => {
  for (const server of servers.splice(0)) await server.close();
});

async function serve() {
  const { approvals: store } = await place.open();
  const server = await serveApprovalPage({ store, port: 0 });
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
    await expect(serveApprovalPage({ store, port })).rejects.toMatchObject({ code: 'gate.unusable' });
  });
});
