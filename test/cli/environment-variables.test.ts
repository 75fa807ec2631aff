import { mkdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { PACKAGE_CACHES, TOOL_CHAINS } from '../../src/policy/index.ts';
import { cli, makePlace } from './support.ts';

const place = makePlace();
afterAll(() => place.dispose());

/** Where something is found for everything that the launcher looks for in a home. */
const home = place.env.HOME ?? '';
for (const { path } of [...TOOL_CHAINS, ...PACKAGE_CACHES]) mkdirSync(join(home, path), { recursive: true });

/** What the README says that a command sees: names, in which `*` stands for anything. */
const [, row = ''] =
  /^\| Environment \|(.*)\|$/m.exec(readFileSync(new URL('../../README.md', import.meta.url), 'utf8')) ?? [];
const listed = [...row.matchAll(/`([^`]+)`/g)].flatMap(([, names = '']) =>
  names.split(' ').filter((name) => !name.includes('/')),
);
const isListed = (name: string, entry: string) => new RegExp(`^${entry.replaceAll('*', '.*')}$`).test(name);

/** Of a user who has set everything: what is passed on, and what must not be. */
async function everything(): Promise<Readonly<Record<string, string>>> {
  const { stdout } = await cli(place, ['policy', 'show', '--json']);
  const values: readonly { readonly key: string; readonly value: unknown }[] = JSON.parse(stdout).values;
  const passed = values.flatMap(({ key, value }) => (key === 'environment.pass' ? [String(value)] : []));
  const names = [...passed, ...listed].filter((name) => !['PATH', 'HOME', 'TMPDIR'].includes(name));
  const others = ['GITHUB_TOKEN', 'AWS_SECRET_ACCESS_KEY', 'SSH_AUTH_SOCK', 'EDITOR'];
  const all = [...names, ...others, 'LC_TIME', 'LANGUAGE', 'LOGNAME', 'PWD', 'DISPLAY', 'GOFLAGS'];
  return {
    ...Object.fromEntries(all.map((name) => [name.replaceAll('*', 'x'), 'C.UTF-8'])),
    // Of these, plain options are passed on.
    ...{ MAKEFLAGS: '-j2', NODE_OPTIONS: '--max-old-space-size=512' },
  };
}

async function seen(...options: readonly string[]): Promise<readonly string[]> {
  const { stdout, stderr } = await cli(place, [...options, '--', 'env', '-0'], { env: await everything() });
  // Of values that say more than plain options it is told that they stay outside.
  expect(stderr.replaceAll(/^sandbox-run: warning: \w+ stays outside, .*\n/gm, '')).toBe('');
  return stdout.split('\0').flatMap((line) => (line === '' ? [] : [line.replace(/=.*/s, '')]));
}

describe('the environment of a command', () => {
  it('is what the README lists: no name more, none less', async () => {
    expect(listed.length).toBeGreaterThan(10);
    const names = await seen();
    expect(names.filter((name) => !listed.some((entry) => isListed(name, entry)))).toEqual([]);
    expect(listed.filter((entry) => !names.some((name) => isListed(name, entry)))).toEqual([]);
  });

  it.each(['read-only', 'offline-build', 'networked'])(
    'has no others with the profile %s',
    async (profile) => {
      const names = await seen('--profile', profile);
      expect(names).toContain('HOME');
      expect(names.filter((name) => !listed.some((entry) => isListed(name, entry)))).toEqual([]);
    },
  );
});
