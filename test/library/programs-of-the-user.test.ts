import { chmodSync, mkdirSync, mkdtempSync, realpathSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { cli, makePlace } from '../cli/support.ts';
import { SECRET } from '../support/arena.ts';

const place = makePlace();
const home = realpathSync(mkdtempSync(join(tmpdir(), 'home-')));
afterAll(() => {
  place.dispose();
  rmSync(home, { recursive: true, force: true });
});

const write = (path: string, text: string, mode = 0o644) => {
  mkdirSync(dirname(join(home, path)), { recursive: true });
  writeFileSync(join(home, path), text);
  chmodSync(join(home, path), mode);
};
const program = (path: string, reads: string) =>
  write(path, `#!/bin/sh\ncat "$(dirname "$(readlink -f "$0")")/${reads}"\n`, 0o755);
const link = (path: string, target: string) => {
  mkdirSync(dirname(join(home, path)), { recursive: true });
  symlinkSync(target, join(home, path));
};

/** Programs as people install them: each prints what was installed with it. */
program('.local/lib/node_modules/tool-of-npm/cli.sh', 'package.txt');
write('.local/lib/node_modules/tool-of-npm/package.txt', 'tool-of-npm');
link('.local/bin/tool-of-npm', '../lib/node_modules/tool-of-npm/cli.sh');

program('.packages/lib/node_modules/tool-of-prefix/cli.sh', '../other/package.txt');
write('.packages/lib/node_modules/other/package.txt', 'tool-of-prefix');
link('.packages/bin/tool-of-prefix', '../lib/node_modules/tool-of-prefix/cli.sh');

program('.local/share/pipx/venvs/tool/bin/tool-of-pipx', '../lib/site/package.txt');
write('.local/share/pipx/venvs/tool/lib/site/package.txt', 'tool-of-pipx');
link('.local/bin/tool-of-pipx', '../share/pipx/venvs/tool/bin/tool-of-pipx');

program('.manager/versions/3/bin/tool-of-manager', '../share/package.txt');
write('.manager/versions/3/share/package.txt', 'tool-of-manager');
write('.manager/credentials.json', `{"token":"${SECRET}"}`);
link('.local/bin/tool-of-manager', `${home}/.manager/versions/3/bin/tool-of-manager`);

program('sdk/bin/tool-of-sdk', '../lib/package.txt');
write('sdk/lib/package.txt', 'tool-of-sdk');

program('projects/app/deploy.sh', '../app/deploy.sh');
write('projects/app/package.json', '{}');
write('projects/app/.env', `KEY=${SECRET}`);
link('bin/deploy', '../projects/app/deploy.sh');

program('mixed/bin/mixed', 'mixed');
write('mixed/lib/x', 'x');
write('mixed/auth.json', `{"token":"${SECRET}"}`);

write('notes.txt', SECRET);
link('bin/notes', '../notes.txt');
write('.ssh/id_ed25519', SECRET);
link('.local/bin/key', '../../.ssh/id_ed25519');

const PATH = ['.local/bin', '.packages/bin', 'sdk/bin', 'mixed/bin', 'bin', '.ssh', '.']
  .map((name) => join(home, name))
  .join(':');
const env = { HOME: home, PATH: `${PATH}:${process.env.PATH}` };

describe('programs of the user, by PATH', () => {
  it.each(['tool-of-npm', 'tool-of-prefix', 'tool-of-pipx', 'tool-of-manager', 'tool-of-sdk'])(
    '%s runs with what was installed with it',
    async (name) => {
      const { stdout, stderr } = await cli(place, ['--', name], { env });
      expect(stdout, stderr).toBe(name);
    },
  );

  it('opens nothing else of the home: no project, no settings, no credentials', async () => {
    const { stdout, stderr } = await cli(
      place,
      [
        '--',
        'sh',
        '-c',
        `cd ${home}; cat projects/app/.env .manager/credentials.json mixed/auth.json .ssh/id_ed25519; grep -rs . . .local/share/pipx/venvs/tool`,
      ],
      { env },
    );
    expect(stdout + stderr).not.toContain(SECRET);
    // As a control: what is granted is found by the same. Without namespaces nobody lists the home, so it is named.
    expect(stdout).toContain('tool-of-pipx');
  });

  it('cannot be changed', async () => {
    const { exitCode } = await cli(
      place,
      ['--', 'sh', '-c', `echo x > ${home}/.packages/lib/node_modules/other/package.txt`],
      { env },
    );
    expect(exitCode).not.toBe(0);
  });
});
