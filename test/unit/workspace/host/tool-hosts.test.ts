import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, it } from 'vitest';
import { hostsOfTool } from '../../../../src/workspace/host/tool-hosts.ts';

const home = mkdtempSync(join(tmpdir(), 'tool-hosts-'));
const etc = join(home, 'etc');
mkdirSync(join(etc, 'apt/sources.list.d'), { recursive: true });
afterAll(() => rmSync(home, { recursive: true, force: true }));

it('npm has its own registry, or those of the user’s settings', () => {
  expect(hostsOfTool('@npm', { home, etc, environment: {} })).toEqual(['registry.npmjs.org:443']);
  writeFileSync(
    join(home, '.npmrc'),
    '; registry=https://no.example.org\nregistry = https://npm.example.org:8443/x/\n@team:registry="http://team.example.org/"\n//npm.example.org/:_authToken=s\n',
  );
  expect(hostsOfTool('@npm', { home, etc, environment: {} })).toEqual([
    'npm.example.org:8443',
    'team.example.org:80',
  ]);
  const environment = { npm_config_registry: 'https://other.example.org' };
  expect(hostsOfTool('@npm', { home, etc, environment })).toContain('other.example.org:443');
  // What npm runs has it from an .npmrc of the project, where commands can write.
  for (const byNpm of [{ npm_execpath: '/npm' }, { npm_command: 'exec' }])
    expect(hostsOfTool('@npm', { home, etc, environment: { ...environment, ...byNpm } })).not.toContain(
      'other.example.org:443',
    );
});

it('apt has those of its sources, of both kinds of file', () => {
  writeFileSync(
    join(etc, 'apt/sources.list'),
    '# deb http://no.example.org x main\ndeb [signed-by=/k] http://deb.example.org/debian x main\n',
  );
  writeFileSync(
    join(etc, 'apt/sources.list.d/more.sources'),
    'Types: deb\nURIs: https://one.example.org/a http://two.example.org/b\nSuites: x\n',
  );
  writeFileSync(join(etc, 'apt/sources.list.d/old.save'), 'deb http://no.example.org x main\n');
  expect(hostsOfTool('@debian', { home, etc, environment: {} })).toEqual([
    'deb.example.org:80',
    'one.example.org:443',
    'two.example.org:80',
  ]);
});
