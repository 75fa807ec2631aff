import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, it } from 'vitest';
import type { FleetResult } from '../../src/model/fleet.ts';
import { makeFleetWorld, startWorkerProcess, type WorkerProcess } from './support.ts';

/*
 * The proof of docs/fleet.md: servers and workers die at random, and by what the jobs wrote none is lost and none ran twice
 * unasked. `npm run fleet:proof` has more jobs; here it is short.
 */
const JOBS = Number(process.env.FLEET_PROOF_JOBS ?? 400);
const WORKERS = 10;
const KILL_EVERY_MS = 3000;
/** A server that was killed is there again by then. */
const RESTART_MS = 1500;
const MINUTES = Math.ceil(JOBS / 500) + 3;

const world = makeFleetWorld(3);

it(
  `${JOBS} jobs on ${WORKERS} workers, while servers and workers die: none is lost, none is doubled`,
  async () => {
    const queue = world.queue();
    const file = join(world.place.workspace, 'ran');
    writeFileSync(file, '');
    const fleet = await world.fleet(queue);
    const workers: WorkerProcess[] = [];
    const start = async () => workers.push(await startWorkerProcess(world, queue));
    for (let count = 0; count < WORKERS; count += 1) await start();

    let over = false;
    const killed = { servers: 0, workers: 0 };
    const killing = (async () => {
      while (!over) {
        await sleep(KILL_EVERY_MS);
        if (over) return;
        if (Math.random() < 0.4) {
          const server = world.servers.nodes[Math.floor(Math.random() * 3)];
          await server?.kill();
          killed.servers += 1;
          await sleep(RESTART_MS);
          await server?.start();
        } else {
          const [worker] = workers.splice(Math.floor(Math.random() * workers.length), 1);
          worker?.kill('SIGKILL');
          killed.workers += 1;
          await start();
        }
      }
    })();

    const results = new Map<string, FleetResult>();
    const retried = (at: number) => at % 2 === 0;
    const from = performance.now();
    const jobs: Promise<void>[] = [];
    for (let at = 0; at < JOBS; at += 1) {
      const name = `job-${at}`;
      const options = { retry: retried(at) ? 20 : 0 };
      const job = await fleet.submit(`echo ${name} >> ran; sleep 0.0${at % 10}; echo ${name}`, options);
      jobs.push(
        job.result.then((result) => {
          expect(results.has(name)).toBe(false);
          results.set(name, result);
        }),
      );
    }
    await Promise.all(jobs);
    const seconds = (performance.now() - from) / 1000;
    over = true;
    await killing;

    const times = new Map<string, number>();
    for (const name of readFileSync(file, 'utf8').split('\n').filter(Boolean))
      times.set(name, (times.get(name) ?? 0) + 1);
    const wrong: string[] = [];
    const seen = { exited: 0, lost: 0, again: 0 };
    for (let at = 0; at < JOBS; at += 1) {
      const name = `job-${at}`;
      const result = results.get(name);
      const ran = times.get(name) ?? 0;
      const attempts = result?.fleet.attempts ?? 0;
      if (result?.status === 'exited') seen.exited += 1;
      if (result?.status === 'worker-lost') seen.lost += 1;
      if (attempts > 1) seen.again += 1;
      const isEnded = result?.status === 'exited' && result.ok && result.stdout === `${name}\n` && ran >= 1;
      const isLost = result?.status === 'worker-lost' && !retried(at);
      const isOnce = retried(at) ? ran <= attempts : ran <= 1 && attempts <= 1;
      if (!(isEnded || isLost) || !isOnce)
        wrong.push(
          `${name}: ${result?.status} ${result?.error?.message ?? ''}, ran ${ran}, attempts ${attempts}`,
        );
    }
    process.stderr.write(
      `fleet proof: ${JOBS} jobs in ${seconds.toFixed(1)} s, ${killed.servers} servers and ${killed.workers} workers killed; ${seen.exited} exited, ${seen.lost} lost with their worker, ${seen.again} ran again as asked\n`,
    );
    expect(wrong).toEqual([]);
    expect(killed.servers + killed.workers).toBeGreaterThan(0);
  },
  MINUTES * 60_000,
);
