import { execFileSync } from 'node:child_process';
import { readdirSync, readFileSync, renameSync, symlinkSync, unlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { eventually } from '../support/eventually.ts';
import { makeStage, SECRET } from './support.ts';

const { sandbox, workspace, outside, secret } = await makeStage();

/** Processes whose arguments hold the text. */
function running(text: string): readonly string[] {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .flatMap((pid) => {
      try {
        const command = readFileSync(`/proc/${pid}/cmdline`, 'utf8').replaceAll('\0', ' ');
        return command.includes(text) ? [command] : [];
      } catch {
        return [];
      }
    });
}

describe('processes without a shell', () => {
  it('end with a time-out, every stage of them', async () => {
    const marks = ['61.0123', '62.0123', '63.0123'];
    const result = await sandbox.run(`sleep ${marks[0]} | sleep ${marks[1]} | sleep ${marks[2]}`, {
      timeout: 300,
    });
    expect(result.status).toBe('timed-out');
    for (const mark of marks) expect(running(`sleep ${mark}`)).toEqual([]);
  });

  it('end when the caller gives up', async () => {
    const controller = new AbortController();
    const pending = sandbox.run('true && sleep 64.0123 | cat', { signal: controller.signal });
    await eventually(() => expect(running('sleep 64.0123')).not.toEqual([]));
    controller.abort();
    expect((await pending).status).toBe('canceled');
    expect(running('sleep 64.0123')).toEqual([]);
  });

  it('have their output captured, however much it is', async () => {
    const result = await sandbox.run('yes | head -c 5000000', { maxOutput: 1 << 20 });
    expect(result.exitCode).toBe(0);
    expect(result.truncated ?? true).toBeTruthy();
    expect((await sandbox.run('yes | head -c 5000000 | wc -c')).stdout).toBe('5000000\n');
  });

  it('read what is written to them, also behind a pipe', async () => {
    expect((await sandbox.run('cat | tr a-z A-Z', { input: 'hello' })).stdout).toBe('HELLO');
    expect((await sandbox.run(['cat'], { input: 'hello' })).stdout).toBe('hello');
    expect((await sandbox.run('cat')).stdout).toBe('');
  });

  it('say what was asked for where it was words', async () => {
    expect((await sandbox.run(['cat', 'a.txt'])).argv).toEqual(['cat', 'a.txt']);
  });

  it('have the status of a shell', async () => {
    expect((await sandbox.run('grep nothing a.txt')).exitCode).toBe(1);
    expect((await sandbox.run('rg --no-ignore --no-config --version || grep foo a.txt')).exitCode).toBe(0);
    expect((await sandbox.run('sort a.txt | grep nothing')).exitCode).toBe(1);
  });

  it('have no descriptors but their own', async () => {
    const result = await sandbox.run('ls a.txt > copy; test -e copy && find . -maxdepth 0 | cat');
    expect(result.exitCode).toBe(0);
  });

  it('run in the background', async () => {
    const job = await sandbox.run('sleep 0.2; echo done', { background: true });
    expect((await job.wait()).stdout).toContain('done');
  });

  it('are on a terminal if that is asked for', async () => {
    const result = await sandbox.run('test -t 0 && echo terminal | cat', { pty: { cols: 80, rows: 24 } });
    expect(result.stdout).toContain('terminal');
  });

  it('have private directories', async () => {
    const result = await sandbox.run('printenv HOME TMPDIR');
    const [home = '', tmp = ''] = result.stdout.split('\n');
    expect(home).not.toBe(process.env.HOME);
    expect(tmp).not.toBe('/tmp');
  });

  it('write into no link that somebody puts there between the decision and the start', async () => {
    const [name, spare] = [join(workspace, 'swapped'), join(workspace, 'spare')];
    const results = new Set<string>();
    for (let round = 0; round < 60; round += 1) {
      writeFileSync(spare, '');
      renameSync(spare, name);
      const pending = sandbox.run('echo overwritten > swapped; cat < swapped');
      // The decision was made at once; the start takes longer than this.
      symlinkSync(secret, spare);
      renameSync(spare, name);
      const result = await pending;
      results.add(result.status);
      expect(result.stdout).not.toContain(SECRET);
      expect(readFileSync(secret, 'utf8')).toBe(`${SECRET}\n`);
      unlinkSync(name);
    }
    expect([...results]).toEqual(['exited']);
    expect(readdirSync(outside)).toEqual(['secret.txt']);
  });

  it('start in no directory that somebody puts a link in place of', async () => {
    const [name, spare] = [join(workspace, 'place'), join(workspace, 'aside')];
    execFileSync('mkdir', [name]);
    const pending = sandbox.run('ls', { cwd: 'place' });
    renameSync(name, spare);
    symlinkSync(outside, name);
    const result = await pending;
    expect(result.stdout).not.toContain('secret.txt');
    unlinkSync(name);
  });
});
