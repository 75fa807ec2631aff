import { createSocket, type Socket } from 'node:dgram';
import { once } from 'node:events';
import { type AddressInfo, createServer, type Server } from 'node:net';
import { networkInterfaces } from 'node:os';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import type { SandboxOptions } from '../../src/index.ts';
import { makeArena } from '../support/arena.ts';
import { eventually } from '../support/eventually.ts';
import { onOnePort } from '../support/one-port.ts';
import { TIERS, type Tier } from '../support/tiers.ts';

const HAS_IPV6 = Object.values(networkInterfaces()).some((all) =>
  all?.some(({ address }) => address === '::1'),
);

/** What leads where, as whoever owns the names may set it up. */
const NAMES: Readonly<Record<string, readonly string[]>> = {
  'db.listed.test': ['127.0.0.1'],
  'mapped.listed.test': ['::ffff:127.0.0.1'],
  'six.listed.test': ['::1'],
  'inner.listed.test': ['127.0.0.9'],
  'secret.listed.test': ['127.0.0.1'],
  'other.asked.test': ['127.0.0.1'],
};

/** Ports that every address of this machine below has servers at, for TCP and UDP: one is listed, the other one is not. */
interface Ports {
  readonly listed: number;
  readonly other: number;
}

interface Row {
  readonly what: string;
  readonly net: (ports: Ports) => readonly string[];
  readonly deny?: (ports: Ports) => readonly string[];
  /** Places at the port that no entry lists for the address. */
  readonly attacks: readonly string[];
  /** The same places at the port that an entry lists, which are reached unless the row denies names. */
  readonly control?: boolean;
  readonly udp?: boolean;
  readonly asks?: boolean;
  readonly six?: boolean;
}

const ROWS: readonly Row[] = [
  {
    what: 'a wildcard and one service of this machine',
    net: ({ listed, other }) => [`*.listed.test:${other}`, `localhost:${listed}`],
    attacks: ['db.listed.test', 'mapped.listed.test', '127.0.0.1'],
  },
  {
    what: 'every port of a name, and one of an address',
    net: ({ listed }) => ['inner.listed.test:1-65535', `127.0.0.9:${listed}`],
    attacks: ['inner.listed.test', '127.0.0.9'],
  },
  {
    what: 'every name, and a range at one port',
    net: ({ listed }) => ['*:1-65535', `127.0.0.0/8:${listed}`],
    attacks: ['db.listed.test', 'inner.listed.test'],
  },
  {
    what: 'a name that has only IPv6',
    net: ({ listed, other }) => [`*.listed.test:${other}`, `localhost:${listed}`],
    attacks: ['six.listed.test'],
    six: true,
  },
  {
    what: 'an address that is written as an IPv6 one',
    net: ({ listed, other }) => [`*.listed.test:${other}`, `[::ffff:127.0.0.1]:${listed}`],
    attacks: ['mapped.listed.test', 'db.listed.test'],
  },
  {
    what: 'UDP',
    net: ({ listed }) => ['*.listed.test:1-65535/udp', `localhost:${listed}/udp`],
    attacks: ['db.listed.test', 'mapped.listed.test'],
    udp: true,
  },
  {
    what: 'a person who answers every question with yes',
    net: ({ listed }) => [`localhost:${listed}`],
    attacks: ['other.asked.test'],
    asks: true,
  },
  {
    what: 'a name that is listed and asked about at other ports',
    net: ({ listed }) => ['db.listed.test:1', `localhost:${listed}`],
    attacks: ['db.listed.test'],
    asks: true,
  },
  {
    what: 'names that are denied by a wildcard',
    net: ({ listed, other }) => ['*:1-65535', `localhost:${listed}`, `inner.listed.test:${other}`],
    deny: () => ['*.listed.test'],
    attacks: ['secret.listed.test', 'db.listed.test'],
    control: false,
  },
  {
    what: 'an address whose port is denied, and the name beside it',
    net: ({ listed, other }) => ['*.listed.test:1-65535', `localhost:${listed}`, `localhost:${other}`],
    deny: ({ other }) => [`127.0.0.0/8:${other}`],
    attacks: ['db.listed.test', '127.0.0.1'],
  },
];

/** A listed name that leads to an address of the user's own network, whose other services nobody has listed. */
describe('reaching a service that no entry lists through a name that one does', () => {
  const arena = makeArena();
  const servers: (Server | Socket)[] = [];
  let ports: Ports = { listed: 0, other: 0 };
  /** What the servers were sent: `PORT WORD`. */
  const received: string[] = [];

  /** Listens for TCP and UDP at one port of every address. */
  const listenEverywhere = async (): Promise<number> => {
    const all = ['127.0.0.1', '127.0.0.9', ...(HAS_IPV6 ? ['::1'] : [])];
    let port = 0;
    for (const address of all) {
      const server = createServer((socket) => {
        socket.on('error', () => {});
        socket.on('data', (chunk) => {
          received.push(`${port} ${String(chunk).trim()}`);
          socket.end('answer\n');
        });
      });
      servers.push(server);
      await once(server.listen(port, address), 'listening');
      port = (server.address() as AddressInfo).port;
      const datagrams = createSocket(address.includes(':') ? 'udp6' : 'udp4');
      servers.push(datagrams);
      datagrams.on('message', (message) => received.push(`${port} ${String(message).trim()}`));
      await once(datagrams.bind(port, address), 'listening');
    }
    return port;
  };
  beforeAll(async () => {
    ports = { listed: await onOnePort(listenEverywhere), other: await onOnePort(listenEverywhere) };
  });
  beforeEach(() => {
    received.length = 0;
  });
  afterAll(() => {
    for (const server of servers) server.close();
  });

  const sandboxFor = (tier: Tier, { net, deny, asks }: Row) => {
    const more: SandboxOptions = asks
      ? {
          unlisted: 'ask',
          gate: {
            lookup: async (name) => ({ addresses: NAMES[name] ?? [], ttl: 5 }),
            approver: { ask: async () => ({ approved: true, scope: 'once', by: 'a test' }) },
          },
        }
      : { gate: { lookup: async (name) => ({ addresses: NAMES[name] ?? [], ttl: 5 }) } };
    return arena.sandbox(tier, {
      net: [...net(ports)],
      policy: {
        network: deny === undefined ? {} : { deny: [...deny(ports)] },
        unsafe: { unjudged_commands: true },
      },
      timeout: 60_000,
      ...more,
    });
  };

  describe.each(TIERS)('$name', (tier) => {
    it.each(ROWS.filter(({ six }) => !six || HAS_IPV6).map((row) => [row.what, row] as const))(
      '%s',
      async (_, row) => {
        const sandbox = await sandboxFor(tier, row);
        const send = (host: string, port: number, word: string) =>
          sandbox.run(
            row.udp
              ? `echo ${word} > /dev/udp/${host}/${port}`
              : `exec 3<>/dev/tcp/${host}/${port} && echo ${word} >&3 && cat <&3`,
          );
        for (const [at, host] of row.attacks.entries()) {
          const { other, listed } = ports;
          const attack = await send(host, other, `attack-${at}`);
          expect([host, attack.stdout]).toEqual([host, '']);
          const control = await send(host, listed, `control-${at}`);
          if (row.control === false) {
            expect([host, control.stdout]).toEqual([host, '']);
          } else {
            await eventually(() => expect(received).toContain(`${listed} control-${at}`));
          }
        }
        expect(received.filter((line) => line.startsWith(`${ports.other} `))).toEqual([]);
      },
    );
  });

  it('works without a sandbox: both ports answer', async () => {
    for (const port of [ports.listed, ports.other]) {
      const socket = createSocket('udp4');
      socket.send('outside', port, '127.0.0.1');
      await eventually(() => expect(received).toContain(`${port} outside`));
      socket.close();
    }
  });
});
