import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'vitest';
import { eventually } from '../support/eventually.ts';
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
