import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, expect, it } from 'vitest';
import { cli, makePlace } from './support.ts';

const place = makePlace();
afterAll(() => place.dispose());

it('what commands do not get of the settings is one line, none with -q, and none where nothing is lost', async () => {
  const home = join(place.root, 'home');
  mkdirSync(home, { recursive: true });
  const networked = ['--profile', 'networked', '--', 'npm', 'config', 'get', 'registry'];
  writeFileSync(join(home, '.npmrc'), 'registry=http://127.0.0.1:1/\n');
  expect(await cli(place, networked)).toMatchObject({ stdout: 'http://127.0.0.1:1/\n', stderr: '' });

  writeFileSync(join(home, '.npmrc'), 'registry=http://me:abc123@127.0.0.1:1/\n');
  const { stdout, stderr } = await cli(place, networked);
  expect(stdout).toBe('http://127.0.0.1:1/\n');
  expect(stderr).toMatch(
    /^sandbox-run: warning: credentials stay outside of the sandbox: registry in ~\/\.npmrc; [^\n]+\n$/,
  );
  expect(stderr).not.toContain('abc123');
  expect((await cli(place, ['-q', ...networked])).stderr).toBe('');
  // Without a network nobody would ask for it.
  expect((await cli(place, networked.slice(2))).stderr).toBe('');
});
