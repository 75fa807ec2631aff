import { decode, encode, type Packet } from 'dns-packet';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { AddressRow } from '../../../src/confine/plan/network-rules.ts';
import { readRules } from '../../../src/policy/index.ts';
import { type AskedName, NameServer } from '../../../src/run/network/name-server.ts';

const HOSTS: Readonly<Record<string, readonly string[]>> = {
  'api.example.org': ['93.184.216.34', '2606:2800:220:1::1'],
  'inner.example.org': ['10.0.0.7'],
  'this.example.org': ['203.0.114.9', '::ffff:203.0.114.9', '2a00:1450::9'],
  'listed-inner.example.org': ['10.0.0.8', '169.254.169.254'],
};

function serverFor(allow: readonly string[], ttl = 30) {
  const looked: string[] = [];
  const rows: (AddressRow & { readonly lifetimeMs: number })[] = [];
  const asked: AskedName[] = [];
  const server = new NameServer(
    readRules({ allow, deny: ['secret.example.org'], verify: 'none' }, () => []),
    {
      lookup: async (name) => {
        looked.push(name);
        return { addresses: HOSTS[name] ?? [], ttl };
      },
      ownAddresses: () => ['127.0.0.1', 'fe80::1%eth0', '203.0.114.9', '2a00:1450::9'],
      allow: (more, lifetimeMs) => rows.push(...more.map((row) => ({ ...row, lifetimeMs }))),
    },
  );
  const ask = async (name: string, type: 'A' | 'AAAA' | 'TXT' = 'A') => {
    const message = encode({ type: 'query', id: 7, flags: 0x100, questions: [{ type, name }] });
    const answer = await server.answer(message, (one) => asked.push(one));
    const packet = decode(answer ?? Buffer.alloc(0)) as unknown as Packet & { readonly rcode: string };
    const answers = (packet.answers ?? []) as readonly { readonly data?: unknown; readonly ttl?: number }[];
    return { code: packet.rcode, data: answers.map(({ data }) => data), ttl: answers[0]?.ttl };
  };
  return { server, ask, looked, rows, asked };
}

describe('the name server of a sandbox', () => {
  it('gives a listed name its addresses, as long as they are good, and opens them at its ports', async () => {
    const { ask, rows, looked } = serverFor(['*.example.org:443']);
    expect(await ask('API.Example.org')).toEqual({ code: 'NOERROR', data: ['93.184.216.34'], ttl: 30 });
    expect(await ask('api.example.org', 'AAAA')).toMatchObject({ data: ['2606:2800:220:1::1'] });
    expect(await ask('api.example.org', 'TXT')).toMatchObject({ code: 'NOERROR', data: [] });
    // One look for all of them.
    expect(looked).toEqual(['api.example.org']);
    expect(rows.map(({ first, last, bits, rule }) => [first, last, bits, rule])).toEqual([
      [443, 443, 128, '*.example.org:443'],
      [443, 443, 128, '*.example.org:443'],
    ]);
    expect(rows.every(({ lifetimeMs }) => lifetimeMs >= 300_000)).toBe(true);
  });

  it('asks nobody about a name that is not listed, or denied', async () => {
    const { ask, looked, asked } = serverFor(['*.example.org']);
    for (const name of ['data.attacker.test', 'example.org', 'secret.example.org', 'wpad'])
      expect(await ask(name)).toMatchObject({ code: 'NXDOMAIN', data: [] });
    expect(looked).toEqual([]);
    expect(asked.map(({ name, allowed, rule }) => [name, allowed, rule])).toContainEqual([
      'secret.example.org',
      false,
      'secret.example.org',
    ]);
  });

  it('lets no name lead into the user’s own network, unless the address is listed', async () => {
    const { ask, rows, asked } = serverFor(['*.example.org', '10.0.0.8:1']);
    expect(await ask('inner.example.org')).toMatchObject({ code: 'NXDOMAIN' });
    expect(asked.at(-1)).toMatchObject({ allowed: false, apart: '10.0.0.7' });
    expect(await ask('listed-inner.example.org')).toMatchObject({ data: ['10.0.0.8'] });
    // And opens no port there: the entry for the address says which.
    expect(rows).toEqual([]);
  });

  it('takes a public address of this machine for this machine', async () => {
    const { ask, rows, asked } = serverFor(['*:1-65535']);
    expect(await ask('this.example.org')).toMatchObject({ code: 'NXDOMAIN' });
    expect(asked.at(-1)).toMatchObject({ allowed: false, apart: '203.0.114.9' });
    expect(rows).toEqual([]);
    const listed = serverFor(['*:1-65535', '203.0.114.9:22', '[2a00:1450::9]:22']);
    expect(await listed.ask('this.example.org')).toMatchObject({ data: ['203.0.114.9'] });
    expect(await listed.ask('this.example.org', 'AAAA')).toMatchObject({ data: ['2a00:1450::9'] });
    expect(listed.rows).toEqual([]);
  });

  it('looks again when an answer is not good any more', async () => {
    const { ask, looked } = serverFor(['*.example.org'], 0);
    await ask('api.example.org');
    await ask('api.example.org');
    expect(looked).toHaveLength(2);
  });

  it('knows localhost, and says of a look-up that failed that it failed', async () => {
    const { ask } = serverFor([]);
    expect(await ask('localhost')).toMatchObject({ code: 'NOERROR', data: ['127.0.0.1'] });
    const server = new NameServer(
      readRules({ allow: ['*'], deny: [], verify: 'none' }, () => []),
      {
        lookup: () => Promise.reject(new Error('EAI_AGAIN')),
        allow: () => {},
      },
    );
    const message = encode({ type: 'query', id: 7, questions: [{ type: 'A', name: 'x.test' }] });
    const answer = await server.answer(message, () => {});
    expect(decode(answer ?? Buffer.alloc(0))).toMatchObject({ rcode: 'SERVFAIL', id: 7 });
  });

  it('takes any bytes at all, and looks up nothing for them', async () => {
    const { server, looked } = serverFor([]);
    const valid = encode({ type: 'query', id: 7, questions: [{ type: 'A', name: 'a.example.org' }] });
    const bytes = fc.oneof(
      fc.uint8Array({ maxLength: 600 }),
      fc.tuple(fc.nat(valid.length - 1), fc.nat(255)).map(([at, byte]) => {
        const changed = Uint8Array.from(valid);
        changed[at] = byte;
        return changed;
      }),
    );
    await fc.assert(
      fc.asyncProperty(bytes, async (message) => {
        const answer = await server.answer(Buffer.from(message), () => {});
        if (answer !== undefined) expect(decode(answer)).toMatchObject({ type: 'response' });
      }),
      { numRuns: 2000 },
    );
    expect(looked).toEqual([]);
  });
});
