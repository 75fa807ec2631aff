import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { hostname } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { QueuedRequest } from '../../src/model/index.ts';
import { answerOnPage, waitingOnPage } from '../support/approval-page.ts';
import { until } from '../support/approvals.ts';
import { type NatsServers, startNats } from '../support/nats.ts';
import { CLI, cli, expectOneLine, makePlace, type Place, startCli } from './support.ts';

/** Two machines with a queue each, and a person at a third one, whose policy says nothing of the fleet. */
const machines = [makePlace(), makePlace()] as const;
const person = makePlace();
const workers: ReturnType<typeof spawn>[] = [];
const ids: string[] = [];
let servers: NatsServers;
const there = () => ['--url', servers.url];
const queues = ['builds', 'trains'] as const;

beforeAll(async () => {
  servers = await startNats();
  for (const [at, place] of machines.entries()) {
    mkdirSync(join(place.root, 'config/sandbox-run'), { recursive: true });
    const policy = `[approval]\nask = "queue"\n[state]\nurl = "${servers.url}"\n[audit]\nenabled = true\n[[commands.rules]]\nprogram = "touch"\nverdict = "ask"\n`;
    writeFileSync(join(place.root, 'config/sandbox-run/policy.toml'), policy, { mode: 0o600 });
    const worker = spawn(
      process.execPath,
      [CLI, 'worker', ...there(), '--queue', queues[at] ?? '', '--grace', '0'],
      {
        cwd: place.workspace,
        env: { ...place.env, XDG_CONFIG_HOME: join(place.root, 'config') },
        stdio: ['ignore', 'pipe', 'inherit'],
      },
    );
    workers.push(worker);
    const [line] = await once(worker.stdout, 'data');
    ids.push(/ready: (\w+)/.exec(String(line))?.[1] ?? '');
  }
});
afterAll(async () => {
  for (const worker of workers) {
    const ended = once(worker, 'exit');
    worker.kill('SIGTERM');
    await ended;
  }
  await servers.stop();
  for (const place of [...machines, person]) place.dispose();
});

const approvals = (...args: string[]) => cli(person, ['fleet', 'approvals', ...args, ...there()]);
const submit = (queue: string, command: string) =>
  startCli(person, ['submit', ...there(), '--queue', queue, '--wait', '-c', command]);
const waiting = async (count: number) =>
  until(async () => {
    const { stdout } = await approvals('list', '--json');
    const found = stdout.split('\n').filter(Boolean);
    return found.length === count ? found.map((line) => QueuedRequest.parse(JSON.parse(line))) : undefined;
  });
const answer = async (address: string, id: string) => (await answerOnPage(address, id)).status;
const pending = async (address: string, count: number) => {
  for await (const shown of waitingOnPage(address)) if (shown.length === count) return shown;
  throw new Error('the page was told nothing');
};
const ranIn = (place: Place) =>
  existsSync(join(place.workspace, 'ran')) ? readFileSync(join(place.workspace, 'ran'), 'utf8') : '';

describe('fleet approvals', () => {
  it('lists what waits with machine, queue, worker and job, and answers it', async () => {
    const asking = submit('builds', 'touch a; echo ran >> ran');
    const [question] = await waiting(1);
    expect(question).toMatchObject({ host: hostname(), job: { queue: 'builds', worker: ids[0] } });
    const shown = (await approvals('list')).stdout.replace(/\s+/g, ' ');
    expect(shown).toContain(` From: ${hostname()}, queue builds, job ${question?.job?.id}, worker ${ids[0]}`);
    expect((await approvals('show', question?.id ?? '')).stdout).toContain(`job ${question?.job?.id}`);
    expect((await approvals('deny', question?.id ?? '')).exitCode).toBe(0);
    const refused = await asking;
    expect([refused.exitCode, refused.stdout]).toEqual([126, '']);
    expect(ranIn(machines[0])).toBe('');
    const late = await approvals('approve', question?.id ?? '');
    expect(late.exitCode).toBe(125);
    expectOneLine(late.stderr);
    // The trail of the machine says for which job it was.
    const env = { XDG_CONFIG_HOME: join(machines[0].root, 'config') };
    const found = await cli(machines[0], ['audit', 'search', '--text', question?.job?.id ?? '', '--json'], {
      env,
    });
    expect(JSON.parse(found.stdout.split('\n')[0] ?? '')).toMatchObject({
      type: 'decision',
      outcome: 'command.denied',
      job: question?.job,
    });
  });

  it('has one page for all workers, where one answer lets a job go on, once', async () => {
    const page = startCli(person, ['fleet', 'approvals', 'serve', ...there()]);
    const address = await until(async () => {
      const [bytes] = await once(page.stdout, 'data');
      return /http:\S+/.exec(String(bytes))?.[0];
    });
    const asking = queues.map((queue) => submit(queue, 'touch a; echo ran >> ran'));
    const found = await waiting(2);
    const shown = await pending(address, 2);
    expect(shown.map(({ from }) => from[1]).sort()).toEqual(['queue builds', 'queue trains']);
    expect(shown.map(({ from }) => from[0])).toEqual([hostname(), hostname()]);
    const id = found.find(({ job }) => job?.queue === 'trains')?.id ?? '';
    // Several people at the same time, and one on another machine.
    const [first, second, third] = await Promise.all([
      answer(address, id),
      answer(address, id),
      approvals('approve', id),
    ]);
    const heard = [first === 200, second === 200, third?.exitCode === 0].filter(Boolean);
    expect(heard).toHaveLength(1);
    expect(await asking[1]).toMatchObject({ exitCode: 0, stderr: '' });
    expect([ranIn(machines[0]), ranIn(machines[1])]).toEqual(['', 'ran\n']);
    expect(await answer(address, id)).toBe(409);
    // It was good for that job only.
    expect((await waiting(1)).map(({ job }) => job?.queue)).toEqual(['builds']);
    expect(await answer(address, found.find(({ job }) => job?.queue === 'builds')?.id ?? '')).toBe(200);
    expect(await asking[0]).toMatchObject({ exitCode: 0 });
    expect([ranIn(machines[0]), ranIn(machines[1])]).toEqual(['ran\n', 'ran\n']);
    page.kill('SIGTERM');
    expect((await page).exitCode).toBe(0);
  });

  it('remembers for the fleet what is approved for always, whichever job asks', async () => {
    const command = 'touch always; echo ran >> always';
    const asking = submit('builds', command);
    const [question] = await waiting(1);
    expect((await approvals('approve', question?.id ?? '', '--scope', 'always')).exitCode).toBe(0);
    expect((await asking).exitCode).toBe(0);
    expect((await submit('builds', command)).exitCode).toBe(0);
    const grant = JSON.parse((await approvals('grants', '--json')).stdout);
    expect((await approvals('revoke', grant.id)).exitCode).toBe(0);
    expect((await approvals('grants')).stdout).toBe('Nothing is remembered.\n');
  });

  it('keeps to itself what is asked here, and the other way round', async () => {
    const asking = submit('builds', 'touch b');
    const [question] = await waiting(1);
    expect((await cli(person, ['approvals', 'list'])).stdout).toBe('Nothing waits for an answer.\n');
    expect((await cli(person, ['approvals', 'approve', question?.id ?? ''])).exitCode).toBe(125);
    // Without --url it is the server of the policy.
    const env = { XDG_CONFIG_HOME: join(machines[1].root, 'config') };
    const listed = await cli(person, ['fleet', 'approvals', 'list', '--json'], { env });
    expect(listed.stdout).toContain(question?.id);
    expect((await approvals('deny', question?.id ?? '')).exitCode).toBe(0);
    expect((await asking).exitCode).toBe(126);
  });

  it('alone shows what there is behind it', async () => {
    const { exitCode, stdout, stderr } = await cli(person, ['fleet', 'approvals']);
    expect({ exitCode, stderr }).toEqual({ exitCode: 0, stderr: '' });
    expect(stdout).toMatch(/^Usage: sandbox-run fleet approvals [\s\S]*\nCommands:\n/);
  });

  it.each([
    [['fleet', 'approvals', 'list', '--url', 'nats://127.0.0.1:1'], /cannot be used/],
    [['fleet', 'approvals', 'list', '--url', 'nats://a:b@127.0.0.1'], /user or password/],
  ])('%j is refused in one line', async (args, why) => {
    const refused = await cli(person, args);
    expect(refused.exitCode).toBe(125);
    expectOneLine(refused.stderr);
    expect(refused.stderr).toMatch(why);
  });
});
