import {
  chmodSync,
  chownSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  realpathSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { execa } from 'execa';
import { expect, it } from 'vitest';
import { CLI } from '../cli/support.ts';
import { eventually } from '../support/eventually.ts';
import { HOST } from '../support/tiers.ts';
import { describeByHand } from './support/cases.ts';

/** Writes once before the look of another command, and again after it: the second time nothing moves the file's times. */
const MAPPED = `
import mmap, os, sys, time
evil = os.getcwd() + "/evil"
text = "[core]\\n\\trepositoryformatversion = 0\\n#\\tfsmonitor = " + evil + "\\n"
open("sub/.git/config", "w").write(text)
held = open("sub/.git/config", "r+b")
mapped = mmap.mmap(held.fileno(), 0)
mapped[text.index("#")] = ord("#")
open("ready", "w")
while not os.path.exists("go"): time.sleep(0.02)
mapped[text.index("#")] = ord(" ")
`;

describeByHand(
  'a job changes what it has mapped after another command was looked at',
  async (hands, sandbox) => {
    const { work, prelude, outside, isMarked } = hands;
    const job = await sandbox.run(
      `${prelude}plant evil; git init -q sub; rm -f ready go; /usr/bin/python3 -c '${MAPPED}'`,
      { background: true },
    );
    await eventually(() => expect(existsSync(join(work, 'ready')), job.output().stderr).toBe(true));
    const left = [...(await sandbox.run('true')).leftBehind];
    left.push(...(await sandbox.run('touch go')).leftBehind, ...(await job.wait()).leftBehind);
    expect(job.result?.status).toBe('exited');
    const later = await outside('cd sub; git status; cat .git/config; ls -la ..');
    expect(isMarked(), `${later.output}\n${JSON.stringify(left, null, 1)}`).toBe(false);
  },
);

/** Waits until directories are open, and plants in what nothing could shut before. */
const PLANTS = `
import os, sys, time
open("ready", "w")
while not os.path.exists("go"): time.sleep(0.02)
for path in sys.argv[1:]:
    os.makedirs(os.path.dirname(path), exist_ok=True)
    open(path, "w").write("evil\\n")
    os.chmod(path, 0o755)
`;

/*
 * A directory that another user has shut is not looked at before a command runs, because no command can open it. Its owner can,
 * meanwhile.
 */
it.runIf(HOST.root)(
  'another user opens a directory while a command of this user waits for that',
  async () => {
    const place = mkdtempSync(join(realpathSync(tmpdir()), 'opened-meanwhile-'));
    const [user, other] = [54_321, 54_322];
    const [work, home, temporary] = [join(place, 'work'), join(place, 'home'), join(place, 'tmp')];
    const shut = ['.config', '.github', 'deep'].map((name) => join(work, name));
    try {
      for (const path of [place, work, home, temporary, ...shut]) {
        mkdirSync(path, { recursive: true });
        chownSync(path, user, user);
      }
      chmodSync(place, 0o755);
      mkdirSync(join(work, '.config/fish'));
      mkdirSync(join(work, 'deep/.git/objects'), { recursive: true });
      writeFileSync(join(work, 'deep/.git/HEAD'), 'ref: refs/heads/main\n');
      for (const path of ['.config/fish', 'deep/.git', 'deep/.git/objects'])
        chownSync(join(work, path), user, user);
      for (const path of shut) {
        chownSync(path, other, other);
        chmodSync(path, 0o700);
      }
      const planted = [
        '.config/fish/config.fish',
        '.config/autostart/x.desktop',
        '.github/hooks/x.json',
        'deep/.git/hooks/post-commit',
      ];
      const running = execa(process.execPath, [CLI, '--', 'python3', '-c', PLANTS, ...planted], {
        ...{ cwd: work, uid: user, gid: user, reject: false, extendEnv: false },
        env: { PATH: process.env.PATH, HOME: home, XDG_STATE_HOME: join(home, 'state'), TMPDIR: temporary },
      });
      await eventually(() => expect(existsSync(join(work, 'ready'))).toBe(true));
      for (const path of shut) chmodSync(path, 0o777);
      writeFileSync(join(work, 'go'), '');
      const { exitCode, stderr } = await running;
      // The command did write: what comes now is what became of it.
      expect(exitCode, stderr).toBe(0);
      expect(planted.filter((path) => existsSync(join(work, path)))).toEqual([]);
      for (const path of [
        '.config/fish',
        '.config/autostart',
        '.github/hooks',
        'deep/.git/hooks/post-commit',
      ])
        expect(stderr).toMatch(
          new RegExp(`set aside, because another program would run it later: .*${path}`),
        );
    } finally {
      rmSync(place, { recursive: true, force: true });
    }
  },
);
