import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { parse } from 'smol-toml';
import { afterAll, describe, expect, it } from 'vitest';
import { addressBytes, judgeAddress, judgeName, mayLeadTo, readRules } from '../../src/policy/index.ts';
import { makeArena } from '../support/arena.ts';
import { TIERS } from '../support/tiers.ts';

interface Recipe {
  readonly filesystem?: { readonly read: readonly string[] };
  readonly network: { readonly mode: 'listed'; readonly allow: string[]; readonly deny?: string[] };
}

/** The recipes of the page as they are written there, by what they are for. */
const RECIPES = new Map(
  [
    ...readFileSync('docs/network.md', 'utf8').matchAll(
      /\n\*\*([^*]+)\.\*\*[^\n]*\n[^`]*```toml\n(.*?)```/gs,
    ),
  ].map(([, title = '', text = '']) => [title, parse(text) as unknown as Recipe] as const),
);
const COMPANY = 'Everything but the network of a company';

const recipe = (title: string): Recipe => {
  const found = RECIPES.get(title);
  if (found === undefined) throw new Error(`no recipe ${title}`);
  return found;
};
const rulesOf = ({ network: { allow, deny = [] } }: Recipe) =>
  readRules({ allow, deny }, () => ['registry.test']);

describe('the recipes of docs/network.md', () => {
  const arena = makeArena();
  const server = createServer((_, response) => response.end('hello-from-the-host\n'));
  afterAll(() => server.close());

  it('are five, which can be read', () => {
    expect(RECIPES.size).toBe(5);
    for (const one of RECIPES.values()) {
      expect(one.network.mode).toBe('listed');
      expect(() => rulesOf(one)).not.toThrow();
    }
  });

  it('let ssh read which hosts it knows, without which it connects to none', () => {
    // It looks in the home of its user, not in $HOME.
    expect(recipe('ssh to one host').filesystem?.read).toEqual(['~/.ssh/known_hosts']);
  });

  it.each([
    ['93.184.215.14', 8443, true],
    ['2606:2800:21f:cb07::1', 22, true],
    ['10.1.2.3', 443, false],
    ['172.31.255.255', 443, false],
    ['192.168.0.1', 80, false],
    ['fd12::1', 443, false],
    ['127.0.0.1', 5432, false],
    ['::1', 5432, false],
    ['169.254.169.254', 80, false],
    ['::ffff:10.1.2.3', 443, false],
    ['64:ff9b::a01:203', 443, false],
  ])('keep a company’s network: %s at %i is allowed: %s', (address, port, allowed) => {
    const { addresses } = rulesOf(recipe(COMPANY));
    const bytes = addressBytes(address) ?? [];
    expect(judgeAddress(addresses, bytes, port).allowed).toBe(allowed);
    expect(mayLeadTo(addresses, bytes)).toBe(allowed);
  });

  it.each([
    ['registry.example.net', true],
    ['wiki.corp.example.org', false],
    ['corp.example.org', false],
    ['notcorp.example.org', true],
  ])('keep a company’s names: %s is allowed: %s', (name, allowed) => {
    expect(judgeName(rulesOf(recipe(COMPANY)).names, name).allowed).toBe(allowed);
  });

  it.each(TIERS)('let commands reach all but that, $name', async (tier) => {
    if (!server.listening) await once(server.listen(0, '127.0.0.9'), 'listening');
    const address = server.address();
    const port = address === null || typeof address === 'string' ? 0 : address.port;
    const asked: string[] = [];
    const sandbox = await arena.sandbox(tier, {
      policy: { network: recipe(COMPANY).network, unsafe: { unjudged_commands: true } },
      // Where the names of this test lead, which is an address of this machine.
      net: [`127.0.0.9:${port}`],
      gate: {
        lookup: async (name) => {
          asked.push(name);
          return { addresses: ['127.0.0.9'], ttl: 5 };
        },
      },
    });
    const get = (host: string) => sandbox.run(`curl -sS -m 10 http://${host}:${port}/`);
    expect((await get('registry.example.net')).stdout).toBe('hello-from-the-host\n');
    const refused = await get('wiki.corp.example.org');
    expect(refused.stdout).toBe('');
    expect(refused.connections).toContainEqual(
      expect.objectContaining({
        verdict: 'refused',
        host: 'wiki.corp.example.org',
        rule: '*.corp.example.org',
      }),
    );
    expect(asked).toEqual(['registry.example.net']);
  });
});
