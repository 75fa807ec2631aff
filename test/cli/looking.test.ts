import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { SECRET } from '../support/arena.ts';
import { cli, makePlace } from './support.ts';

// Looking is free: a line that only reads outside of the workspace runs, and the kernel shows what is granted.
const place = makePlace();
afterAll(() => place.dispose());
const beside = join(place.root, 'beside');
const env = { XDG_CONFIG_HOME: join(place.root, 'no-config') };

beforeAll(() => {
  mkdirSync(beside);
  writeFileSync(join(beside, 'secret.txt'), SECRET);
  writeFileSync(join(place.workspace, 'a.txt'), 'one\ntwo\n');
});

/** What a model looks at in a day. */
const LOOKING = [
  ...['ls /', 'ls ..', 'ls /dev', 'ls /var/log', 'find / -maxdepth 1', 'ls ~', 'cat /etc/shadow', 'cat ../x'],
  ...[
    'ls -la',
    'pwd',
    'ls -la ..',
    'ls /home',
    'ls /root',
    'ls /opt',
    'ls /srv',
    'ls /mnt',
    'ls /tmp',
    'ls /run',
  ],
  ...[
    'cat ~/.gitconfig',
    'cat ~/.bashrc',
    'ls -la ~',
    'head -3 /var/log/syslog',
    'stat /',
    'stat ..',
    'du -sh ..',
  ],
  ...['cd .. && ls', 'cd / && pwd', 'find .. -maxdepth 1 -name x', 'grep -r x ../x', 'wc -l ../x', 'tree ..'],
  ...['test -f ../x', '[ -d /srv/x ]', 'file /srv/x', 'readlink -f ..', 'realpath ../x', 'diff a.txt ../x'],
  ...['cat < ../x', 'git -C .. status', 'make -C ..', 'cp ../x here', 'cat /proc/1/environ', 'ls /sys/class'],
];

describe('looking is free', () => {
  it('no line that only looks is refused or asked about', async () => {
    expect(LOOKING).toHaveLength(43);
    const input = LOOKING.map((command, id) => JSON.stringify({ id: String(id), command })).join('\n');
    const { stdout } = await cli(place, ['check', '--batch'], { env, input: `${input}\n` });
    const answers = stdout.split('\n').filter((line) => line !== '');
    const refused = answers.map((line) => JSON.parse(line)).filter(({ verdict }) => verdict !== 'allow');
    expect(answers).toHaveLength(LOOKING.length);
    expect(refused).toEqual([]);
  });

  it.each(['touch ../x', 'cp a.txt ..', 'echo x > /srv/x', 'rm ../x', 'cat a.txt > ../x', 'ls > ../x'])(
    'writing is not: %s',
    async (command) => {
      const { exitCode, stderr } = await cli(place, ['-c', command], { env });
      expect(exitCode).toBe(126);
      expect(stderr).toContain('lies outside of the workspace');
    },
  );

  it('the kernel answers, and shows nothing of what lies beside the workspace', async () => {
    const file = join(beside, 'secret.txt');
    // The control: it is there.
    expect(await cli(place, ['--rw', beside, '-c', `cat ${file}`], { env })).toMatchObject({
      ...{ exitCode: 0, stdout: SECRET },
    });
    for (const command of [
      `cat ${file}`,
      `cat < ${file}`,
      `cp ${file} taken && cat taken`,
      `cat ../beside/*`,
    ]) {
      const { exitCode, stdout } = await cli(place, ['-c', command], { env });
      expect({ command, exitCode, stdout }).toEqual({ command, exitCode: 1, stdout: '' });
    }
  });

  it('a list of commands is about the words, as before', async () => {
    const policy = join(place.root, 'list.toml');
    writeFileSync(policy, '[commands]\nallow = ["cat"]\n');
    const { exitCode } = await cli(place, ['--policy', policy, '-c', 'cat ../x'], { env });
    expect(exitCode).toBe(126);
  });
});
