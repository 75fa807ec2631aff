import { isIP } from 'node:net';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { addressBytes, normalName, readEntry } from '../../../src/policy/network/entry.ts';
import {
  isPresetOfTool,
  PRESETS,
  problemOfEntry,
  readRules,
} from '../../../src/policy/network/read-rules.ts';
import { judgeAddress, judgeHost, judgeName, mayLeadTo } from '../../../src/policy/network/rules.ts';

const rulesOf = (allow: readonly string[], deny: readonly string[] = []) =>
  readRules({ allow, deny, verify: 'none' }, () => []);
const bytes = (address: string) => addressBytes(address) ?? [];

function reaches(allow: readonly string[], address: string, port: number, deny: readonly string[] = []) {
  return judgeAddress(rulesOf(allow, deny).addresses, bytes(address), port).allowed;
}

function finds(allow: readonly string[], name: string, deny: readonly string[] = []) {
  const { ports } = judgeName(rulesOf(allow, deny).names, normalName(name) ?? '');
  return ports.map(({ first, last }) => (first === last ? `${first}` : `${first}-${last}`)).join(' ');
}

describe('entries of the network', () => {
  it('/udp opens UDP at its ports, and nothing of TCP; without it what denies speaks of both', () => {
    const protocols = ['tcp', 'udp'] as const;
    const may = (allow: readonly string[], deny: readonly string[] = []) =>
      protocols.filter(
        (one) => judgeAddress(rulesOf(allow, deny).addresses, bytes('10.0.0.1'), 53, one).allowed,
      );
    expect(may(['10.0.0.0/8:53/udp'])).toEqual(['udp']);
    expect(may(['10.0.0.0/8:53/tcp'])).toEqual(['tcp']);
    expect(may(['10.0.0.1:53'])).toEqual(['tcp']);
    const both = ['10.0.0.1:53', '10.0.0.1:53/udp'];
    expect(may(both)).toEqual(['tcp', 'udp']);
    expect(may(both, ['10.0.0.1'])).toEqual([]);
    expect(may(both, ['10.0.0.1/udp'])).toEqual(['tcp']);
    expect(may(both, ['10.0.0.1:53/tcp'])).toEqual(['udp']);
    const ports = (name: string) =>
      judgeName(rulesOf(['*.example.org:443/udp', 'a.example.org'], ['b.example.org/udp']).names, name).ports;
    expect(ports('a.example.org').map(({ first, protocol }) => `${first}/${protocol}`)).toEqual([
      ...['443/udp', '443/tcp', '80/tcp'],
    ]);
    expect(ports('b.example.org')).toEqual([]);
  });

  it('a name without a port is https and http, and no name beneath it', () => {
    expect(finds(['api.example.org'], 'api.example.org')).toBe('443 80');
    expect(finds(['api.example.org'], 'x.api.example.org')).toBe('');
    expect(finds(['example.org:8000-8010'], 'example.org')).toBe('8000-8010');
  });

  it('names are compared as DNS does: case, a dot at the end, IDN', () => {
    expect(finds(['API.Example.org.'], 'api.EXAMPLE.org')).toBe('443 80');
    expect(finds(['bücher.example'], 'xn--bcher-kva.example')).toBe('443 80');
    expect(finds(['xn--bcher-kva.example'], 'BÜCHER.example')).toBe('443 80');
  });

  it('*.name is all beneath it, and not itself; * is every name', () => {
    expect(finds(['*.example.org:443'], 'a.b.example.org')).toBe('443');
    expect(finds(['*.example.org'], 'example.org')).toBe('');
    expect(finds(['*.example.org'], 'badexample.org')).toBe('');
    expect(finds(['*'], 'anything.test')).toBe('443 80');
  });

  it('what is denied is denied, whatever allows it; with a port only that port', () => {
    expect(finds(['*.example.org'], 'x.example.org', ['x.example.org'])).toBe('');
    expect(finds(['*.example.org'], 'y.x.example.org', ['*.x.example.org'])).toBe('');
    expect(finds(['a.test:1-100'], 'a.test', ['a.test:50'])).toBe('1-49 51-100');
    expect(reaches(['10.0.0.0/8:1-65535'], '10.1.2.3', 22, ['10.1.0.0/16'])).toBe(false);
    expect(reaches(['10.0.0.0/8:1-65535'], '10.2.2.3', 22, ['10.1.0.0/16'])).toBe(true);
  });

  it('a list of all addresses opens no service of this machine and no metadata of a cloud', () => {
    const all = ['0.0.0.0/0:1-65535', '[::/0]:1-65535'];
    for (const address of ['127.0.0.1', '127.9.9.9', '0.0.0.0', '169.254.169.254', '::1', '::', 'fe80::1'])
      expect([address, reaches(all, address, 80)]).toEqual([address, false]);
    for (const address of [
      ...['::127.0.0.1', '64:ff9b::7f00:1', '::ffff:0:7f00:1', '2002:7f00:1::'],
      ...['fd00:ec2::254', '224.0.0.1'],
    ])
      expect([address, reaches(all, address, 80)]).toEqual([address, false]);
    for (const address of ['93.184.216.34', '10.0.0.1', '2606:4700::1111'])
      expect([address, reaches(all, address, 80)]).toEqual([address, true]);
    // Nor does a list of all IPv6 addresses open one of IPv4.
    expect(reaches(['[::/0]:80'], '93.184.216.34', 80)).toBe(false);
    expect(reaches(['169.254.169.254:80'], '169.254.169.254', 80)).toBe(true);
  });

  it('localhost:PORT is one service of this machine', () => {
    expect(reaches(['localhost:5432'], '127.0.0.1', 5432)).toBe(true);
    expect(reaches(['localhost:5432'], '::1', 5432)).toBe(true);
    expect(reaches(['localhost:5432'], '127.0.0.1', 5433)).toBe(false);
    expect(reaches(['localhost:5432'], '127.0.0.2', 5432)).toBe(false);
  });

  it('a name leads to public addresses, and to another one only if the policy lists that', () => {
    const { addresses } = rulesOf(['10.0.0.5:22', '[2001:db8::5]:443', 'localhost:8080']);
    const leads = (address: string) => mayLeadTo(addresses, bytes(address));
    for (const address of ['93.184.216.34', '2606:4700::1111', '10.0.0.5', '127.0.0.1'])
      expect([address, leads(address)]).toEqual([address, true]);
    for (const address of [
      '10.0.0.6',
      '127.0.0.2',
      '192.168.1.1',
      '172.16.0.1',
      '100.64.0.1',
      '169.254.169.254',
    ])
      expect([address, leads(address)]).toEqual([address, false]);
    for (const address of [
      '::ffff:10.0.0.6',
      'fd00::1',
      'fe80::1',
      '64:ff9b::a00:6',
      '::',
      '0.0.0.0',
      '255.255.255.255',
    ])
      expect([address, leads(address)]).toEqual([address, false]);
  });

  it('a name has its connections looked into where the entry or the policy says so, and an address never', () => {
    const looks = (allow: readonly string[], name: string, verify: 'none' | 'sni') => {
      const { names } = readRules({ allow, deny: ['a.test:7'], verify }, () => []);
      const { ports } = judgeName(names, name);
      return ports.map(({ first, last, inside }) => `${first}-${last} ${inside ?? 'anything'}`);
    };
    expect(looks(['a.test'], 'a.test', 'none')).toEqual(['443-443 anything', '80-80 anything']);
    expect(looks(['a.test'], 'a.test', 'sni')).toEqual(['443-443 tls', '80-80 http']);
    expect(looks(['a.test/tls'], 'a.test', 'none')).toEqual(['443-443 tls']);
    expect(looks(['*.test:8443/tls', 'a.test:80/tls'], 'a.test', 'sni')).toEqual([
      '8443-8443 tls',
      '80-80 tls',
    ]);
    expect(looks(['a.test:443/udp'], 'a.test', 'none')).toEqual(['443-443 anything']);
    expect(looks(['a.test:443/udp'], 'a.test', 'sni')).toEqual([]);
    expect(looks(['*.test:440-450/udp', '*:1-80/udp'], 'a.test', 'sni')).toEqual([
      ...['440-442 anything', '444-450 anything', '1-6 anything', '8-80 anything'],
    ]);
    expect(looks(['*:5-500'], 'a.test', 'sni')).toEqual([
      ...[
        '443-443 tls',
        '80-80 http',
        '5-6 anything',
        '8-79 anything',
        '81-442 anything',
        '444-500 anything',
      ],
    ]);
    const { looksInside, addresses } = readRules(
      { allow: ['10.0.0.1', 'localhost:443'], deny: [], verify: 'sni' },
      () => [],
    );
    expect([looksInside, addresses.some(({ inside }) => inside !== undefined)]).toEqual([false, false]);
  });

  it('the host that a connection asks for is compared as names are, at its port', () => {
    const { names } = rulesOf(['*.example.org', 'bücher.example:443'], ['secret.example.org:443']);
    const may = (host: string, port = 443) => judgeHost(names, host, port);
    expect(may('API.Example.ORG.')).toEqual({ allowed: true, rule: '*.example.org' });
    expect(may('xn--bcher-kva.example').allowed).toBe(true);
    expect(may('xn--bcher-kva.example', 80).allowed).toBe(false);
    expect(may('secret.example.org')).toEqual({ allowed: false, rule: 'secret.example.org:443' });
    expect(may('secret.example.org', 80).allowed).toBe(true);
    for (const host of [
      '',
      '10.0.0.1',
      'example.org',
      'a.example.org:80',
      'a.example.org/',
      'x@a.example.org',
      '[::1]',
    ])
      expect([host, may(host)]).toEqual([host, { allowed: false, rule: undefined }]);
  });

  it.each([
    ['', 'it must be'],
    ['https://example.org', 'no scheme'],
    ['example.org:0', 'a port from 1'],
    ['example.org:70000', 'a port from 1'],
    ['example.org:9-8', 'a port from 1'],
    ['example.org:', 'a port from 1'],
    ['a*.example.org', 'whole names'],
    ['*.*.example.org', 'whole names'],
    ['10.0.0.1/8', 'bits beyond'],
    ['10.0.0.0/33', 'bits from 0 to 32'],
    ['[fe80::1%eth0]:80', 'it must be'],
    ['010.0.0.1', 'it must be'],
    ['0x7f.1', 'it must be'],
    ['2130706433', 'it must be'],
    ['127.1', 'it must be'],
    ['a\0.example.org', 'it must be'],
    ['a\r.example.org', 'it must be'],
    ['a%00.example.org', 'it must be'],
    [`${'a'.repeat(64)}.example.org`, 'it must be'],
    [`${'a.'.repeat(127)}org`, 'it must be'],
    ['localhost', 'its port'],
    ['example.org/udp', 'which port'],
    ['localhost/udp', 'which port'],
    ['localhost:80/http', 'leave /http out'],
    ['@gihub', 'no preset'],
  ])('%j is refused with a reason', (entry, reason) => {
    expect(problemOfEntry(entry, 'allow')).toContain(reason);
  });

  it('every row of a preset is an entry, with a reason', () => {
    for (const [name, rows] of Object.entries(PRESETS)) {
      for (const { entry, reason } of rows) {
        expect([name, entry, readEntry(entry, 'allow')]).toMatchObject([name, entry, { entry: {} }]);
        expect(reason).not.toBe('');
      }
    }
    expect(isPresetOfTool('@npm')).toBe(true);
  });
});

/** The 128 bits of an address, from Node's own reading of it. */
function asNumber(address: string): bigint {
  if (isIP(address) === 4)
    return address.split('.').reduce((sum, part) => sum * 256n + BigInt(part), 0xffffn) & ((1n << 128n) - 1n);
  const [head = '', tail] = address.split('::', 2);
  const groups = (text: string | undefined) => (text === undefined || text === '' ? [] : text.split(':'));
  const [left, right] = [groups(head), groups(tail)];
  const missing = tail === undefined ? 0 : 8 - left.length - right.length;
  return [...left, ...Array<string>(missing).fill('0'), ...right].reduce(
    (sum, group) => sum * 65_536n + BigInt(`0x${group}`),
    0n,
  );
}

const v4 = fc.tuple(fc.nat(255), fc.nat(255), fc.nat(3), fc.nat(3)).map((parts) => parts.join('.'));
const v6 = fc
  .array(fc.nat(0xffff), { minLength: 8, maxLength: 8 })
  .map((all) => all.map((one) => one.toString(16)).join(':'));
const address = fc.oneof(v4, v6);

describe('against a reference', () => {
  it('ranges hold the addresses that arithmetic says', () => {
    fc.assert(
      fc.property(
        address,
        address,
        fc.nat(128),
        fc.integer({ min: 1, max: 65_535 }),
        (of, one, bits, port) => {
          const isV4 = isIP(of) === 4;
          const own = isV4 ? bits % 33 : bits;
          const shift = BigInt((isV4 ? 32 : 128) - own);
          const base = (asNumber(of) >> shift) << shift;
          const text = isV4
            ? [24n, 16n, 8n, 0n].map((by) => (base >> by) & 255n).join('.')
            : Array.from({ length: 8 }, (_, at) =>
                ((base >> BigInt(112 - 16 * at)) & 0xffffn).toString(16),
              ).join(':');
          const denied = judgeAddress(
            rulesOf([], [`${isV4 ? text : `[${text}`}/${own}${isV4 ? '' : ']'}`]).addresses,
            bytes(one),
            port,
          );
          // What denies knows no range apart, but that IPv4 is not a part of IPv6.
          const sameBits = asNumber(one) >> shift === base >> shift;
          expect(denied.rule !== undefined).toBe(isV4 ? isIP(one) === 4 && sameBits : sameBits);
        },
      ),
      { numRuns: 500 },
    );
  });

  it('names are beneath a name if they end with its labels', () => {
    const label = fc.stringMatching(/^[a-z][a-z0-9]{0,3}$/);
    const name = fc.array(label, { minLength: 1, maxLength: 4 });
    fc.assert(
      fc.property(name, name, fc.boolean(), (rule, asked, beneath) => {
        const found = finds([`${beneath ? '*.' : ''}${rule.join('.')}:1`], asked.join('.')) !== '';
        const ends = asked.slice(-rule.length).join('.') === rule.join('.');
        const expected = beneath ? ends && asked.length > rule.length : ends && asked.length === rule.length;
        expect(found || rule.join('.') === 'localhost').toBe(expected);
      }),
      { numRuns: 500 },
    );
  });

  it('no text at all is read as a name that it is not', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary', maxLength: 300 }), (text) => {
        const name = normalName(text);
        if (name === undefined) return;
        expect(name).toMatch(/^[a-z0-9._-]{1,253}$/);
        expect(isIP(name)).toBe(0);
        expect(normalName(name)).toBe(name);
      }),
      { numRuns: 2000 },
    );
  });
});
