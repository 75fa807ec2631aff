import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { setTimeout as sleep } from 'node:timers/promises';
import { execa } from 'execa';
import { describe, expect, it, onTestFinished } from 'vitest';
import type { FleetResult } from '../../src/model/fleet.ts';
import { CLI } from '../cli/support.ts';
import { answerOnPage, waitingOnPage } from '../support/approval-page.ts';
import { eventually } from '../support/eventually.ts';
import { makeFleetWorld, SHORT_LEASE, startWorkerProcess } from './support.ts';

/*
 * The proof of docs/fleet.md: servers and workers die at random, and by what the jobs wrote none is lost, none ran twice
 * unasked, and none ran beyond the budget or the answer of a person; by what the stream has, each has its records.
 * `npm run fleet:proof` has more jobs; here it is short.
 */
const LONG_PROOF = process.env.FLEET_PROOF_JOBS;
const JOBS = Number(LONG_PROOF ?? 120);
const [WORKERS, BUDGET, BEYOND_BUDGET] = LONG_PROOF === undefined ? [4, 100, 20] : [10, 500, 60];
/** Elections that take too long refuse commands that need state or trail; the part of all that may meet one. */
const UNREACHED = 0.05;
/** Every so many jobs one asks. */
const ASKING = LONG_PROOF === undefined ? 10 : 25;
/** A worker and a server are killed each time that so many jobs have ended, and a server is there again after a few more. */
const KILL_EVERY = LONG_PROOF === undefined ? 25 : 60;
const RESTART_AFTER = 5;
const minutes = (jobs: number) => (Math.ceil(jobs / 500) + 3) * 60_000;

const world = makeFleetWorld(3);
const queues = { jobs: 'jobs', budget: 'budget' };

describe('a fleet of which servers and workers die', () => {
  it(
    `loses and doubles none of ${JOBS} jobs, has one answer to each question and all records`,
    async () => {
      const policy = '[[commands.rules]]\nprogram = "touch"\nverdict = "ask"\n[approval]\nask = "queue"\n';
      const fleet = await startFleet(queues.jobs, policy);
      const answers = await answerTwice(fleet.machines);
      const asks = (at: number) => at % ASKING === 0;
      const ended = await fleet.run(
        JOBS,
        (name, at) =>
          `echo ${name} >> ran; sleep 0.0${at % 10}; ${asks(at) ? 'touch asked; ' : ''}echo ${name}`,
      );

      const wrong: string[] = [];
      const seen = { approved: 0, denied: 0 };
      for (const [at, job] of ended.entries()) {
        const asked = answers.filter(({ job: id }) => id === job.id);
        const winners = asked.map(({ winner }) => winner);
        const last = winners.at(-1);
        if (last !== undefined) seen[last] += 1;
        // Whoever was killed had asked for nothing. The question of a retry is another one.
        const isAnswered = asks(at) && asked.length > 0 && asked.length <= job.attempts && last !== undefined;
        const isAsAnswered =
          (last === 'approved' && isGood(job)) ||
          (last === 'denied' &&
            job.result.status === 'denied' &&
            job.ran <= winners.filter((one) => one === 'approved').length);
        const isRight = asks(at) ? isAnswered && isAsAnswered : isGood(job);
        if (!(isRight || isLost(job) || isUnreached(job)) || !isOnce(job))
          wrong.push(`${describeJob(job)}, answers ${winners}`);
      }
      fleet.say(`${seen.approved} questions approved and ${seen.denied} denied, by two people each`);
      expect(wrong).toEqual([]);
      expect(answers.map(({ heard }) => heard).filter((heard) => heard > 1)).toEqual([]);
      expect([seen.approved > 0, seen.denied > 0]).toEqual([true, true]);
      await expectAllRecords(queues.jobs, ended);
    },
    minutes(JOBS),
  );

  it(
    `runs no more than ${BUDGET} jobs an hour where that is the budget, and has all records`,
    async () => {
      const fleet = await startFleet(queues.budget, `[security]\nmax_actions_per_hour = ${BUDGET}\n`);
      const ended = await fleet.run(BUDGET + BEYOND_BUDGET, (name) => `echo ${name} >> ran; echo ${name}`);

      const isRefused = ({ result }: EndedJob) =>
        result.status === 'denied' && result.error?.message.includes(`${BUDGET} actions`) === true;
      const wrong = ended.filter(
        (job) =>
          !(
            isGood(job) ||
            isLost(job) ||
            isUnreached(job) ||
            (isRefused(job) && job.ran < Math.max(1, job.attempts))
          ) || !isOnce(job),
      );
      expect(wrong.map(describeJob)).toEqual([]);
      const ran = ended.reduce((sum, job) => sum + job.ran, 0);
      const refused = ended.filter(isRefused).length;
      fleet.say(`of a budget of ${BUDGET} actions ${ran} ran, and ${refused} jobs were refused`);
      expect(ran).toBeLessThanOrEqual(BUDGET);
      // An action that its worker did not live to start stays counted.
      expect(ran).toBeGreaterThanOrEqual(BUDGET - fleet.killed.workers);
      expect(refused).toBeGreaterThan(0);
      await expectAllRecords(queues.budget, ended);
    },
    minutes(BUDGET),
  );
});

/** What became of a job. */
interface EndedJob {
  readonly name: string;
  readonly id: string;
  readonly retry: number;
  readonly result: FleetResult;
  readonly attempts: number;
  /** How often, by what it wrote. */
  readonly ran: number;
}

const isGood = ({ name, result, ran }: EndedJob) =>
  result.status === 'exited' && result.ok && result.stdout === `${name}\n` && ran >= 1;
const isLost = ({ result, retry }: EndedJob) => result.status === 'worker-lost' && retry === 0;
/** Refused because the servers did not answer in time. */
const isUnreached = ({ result, ran, attempts }: EndedJob) =>
  result.status === 'denied' && result.error?.code === 'fleet.unreachable' && ran < Math.max(1, attempts);
const isOnce = ({ ran, attempts, retry }: EndedJob) => ran <= attempts && (retry > 0 || attempts <= 1);
const describeJob = ({ name, result, ran, attempts }: EndedJob) =>
  `${name}: ${result.status} ${result.error?.message ?? ''}, ran ${ran}, attempts ${attempts}`;

/** Ten machines with a worker each, as far as the launcher can tell: policy and audit trail are those of the machine. */
async function startFleet(queue: string, policy: string) {
  const fleet = await world.fleet(queue);
  const machines = machinesWith(policy);
  const args = ['--lease', String(SHORT_LEASE / 1000)];
  const start = (env: NodeJS.ProcessEnv) => startWorkerProcess(world, queue, { args, env });
  const workers = await Promise.all(machines.map(start));
  const killed = { servers: 0, workers: 0 };
  const killWorker = async () => {
    const at = Math.floor(Math.random() * WORKERS);
    workers[at]?.kill('SIGKILL');
    killed.workers += 1;
    workers[at] = await start(machines[at] ?? {});
  };
  let summary = '';
  return {
    machines,
    killed,
    say: (more: string) => process.stderr.write(`fleet proof: ${summary}; ${more}\n`),
    /** Hands so many over, every second with retries; settles when all have ended and all workers are dead. */
    async run(count: number, command: (name: string, at: number) => string): Promise<readonly EndedJob[]> {
      const file = join(world.place.workspace, 'ran');
      writeFileSync(file, '');
      let [hasEnded, over] = [0, false];
      /** Until so many more have ended, or all that can end without a lost worker's lease. */
      const more = (jobs: number) => {
        const enough = Math.min(hasEnded + jobs, count - WORKERS);
        return eventually(() => expect(over || hasEnded >= enough).toBe(true), minutes(count));
      };
      const killing = (async () => {
        for (let at = 0; ; at += 1) {
          await more(at === 0 ? RESTART_AFTER : KILL_EVERY);
          // The last ones wait for leases to end, and would not see the end of that.
          if (over || hasEnded >= count - WORKERS) return;
          const server = world.servers.nodes[Math.floor(Math.random() * 3)];
          await Promise.all([killWorker(), server?.kill()]);
          killed.servers += 1;
          await more(RESTART_AFTER);
          await server?.start();
          // One server at a time is what three of them bear.
          await server?.caughtUp();
        }
      })();
      const from = performance.now();
      const jobs: Promise<Omit<EndedJob, 'ran'>>[] = [];
      for (let at = 0; at < count; at += 1) {
        const name = `${queue}-${at}`;
        const retry = at % 2 === 0 ? 20 : 0;
        const { id, result } = await fleet.submit(command(name, at), { retry });
        const ended = result.then((one) => {
          hasEnded += 1;
          return { name, id, retry, result: one, attempts: one.fleet.attempts };
        });
        jobs.push(ended);
      }
      const ended = await Promise.all(jobs);
      const seconds = (performance.now() - from) / 1000;
      over = true;
      await killing;
      expect(Math.min(killed.servers, killed.workers)).toBeGreaterThan(0);
      for (const worker of workers) {
        worker.kill('SIGKILL');
        await worker.ended;
      }
      const times = new Map<string, number>();
      for (const name of readFileSync(file, 'utf8').split('\n').filter(Boolean))
        times.set(name, (times.get(name) ?? 0) + 1);
      const counted = ended.map((job) => ({ ...job, ran: times.get(job.name) ?? 0 }));
      const number = (which: (job: Omit<EndedJob, 'ran'>) => boolean) => ended.filter(which).length;
      const unreached = counted.filter(isUnreached).length;
      expect(unreached).toBeLessThan(count * UNREACHED);
      summary = [
        `${count} jobs in ${seconds.toFixed(1)} s, ${killed.servers} servers and ${killed.workers} workers killed`,
        `${number(({ result }) => result.status === 'exited')} exited, ${number(({ result }) => result.status === 'worker-lost')} lost with their worker, ${number(({ attempts }) => attempts > 1)} ran again as asked, ${unreached} refused because no server answered in time`,
      ].join('; ');
      return counted;
    },
  };
}

/** What each machine has for itself; the environment of its programs says where. */
function machinesWith(policy: string): readonly NodeJS.ProcessEnv[] {
  const key = join(world.place.root, 'audit.key');
  writeFileSync(key, 'k'.repeat(64), { mode: 0o600 });
  return Array.from({ length: WORKERS }, (_, at) => {
    const root = join(world.place.root, `machine-${at}`);
    mkdirSync(join(root, 'config/sandbox-run'), { recursive: true });
    writeFileSync(
      join(root, 'config/sandbox-run/policy.toml'),
      `[state]\nurl = "${world.servers.url}"\n[audit]\nenabled = true\nstream = "require"\nhmac_key_file = "${key}"\n${policy}`,
      { mode: 0o600 },
    );
    return { ...process.env, XDG_CONFIG_HOME: join(root, 'config'), XDG_STATE_HOME: join(root, 'state') };
  });
}

/** What became of a question. */
interface Answered {
  readonly job: string;
  /** How many of the two answers were taken. */
  readonly heard: number;
  readonly winner: 'approved' | 'denied' | undefined;
}

/** Two people at a page each, who say the opposite at the same time to all that is asked. */
async function answerTwice(machines: readonly NodeJS.ProcessEnv[]): Promise<readonly Answered[]> {
  const found: Answered[] = [];
  const [one = '', other = ''] = await Promise.all(machines.slice(0, 2).map(startPage));
  const known = new Set<string>();
  const answer = async (id: string, job: string) => {
    // Neither is always the first.
    const isFirst = known.size % 2 === 0;
    const say = (approved: boolean) =>
      answerOnPage(
        approved === isFirst ? one : other,
        id,
        approved ? { approved, scope: 'once' } : { approved },
      );
    const first = say(isFirst);
    const second = say(!isFirst);
    const [yes, no] = await Promise.all(isFirst ? [first, second] : [second, first]);
    const heard = [yes, no].filter(({ status }) => status === 200).length;
    const winner = yes.status === 200 ? 'approved' : no.status === 200 ? 'denied' : undefined;
    found.push({ job, heard, winner });
  };
  let over = false;
  onTestFinished(() => {
    over = true;
  });
  // As a browser does, again where the page could not reach the servers.
  const watch = async () => {
    while (!over) {
      for await (const waiting of waitingOnPage(one))
        for (const { id, from } of waiting) {
          if (known.has(id)) continue;
          known.add(id);
          void answer(id, /job ([0-9a-f.]+)/.exec(from.join('\n'))?.[1] ?? '');
        }
      await sleep(100);
    }
  };
  void watch().catch(() => {});
  return found;
}

async function startPage(env: NodeJS.ProcessEnv): Promise<string> {
  const args = [CLI, 'fleet', 'approvals', 'serve', '--url', world.servers.url];
  const page = spawn('setpriv', ['--pdeathsig', 'KILL', process.execPath, ...args], {
    env,
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  onTestFinished(() => void page.kill('SIGKILL'));
  const [bytes] = await once(page.stdout, 'data');
  return /http:\S+/.exec(String(bytes))?.[0] ?? '';
}

/** A record as `audit search --json` prints it. */
interface FoundRecord {
  readonly type: string;
  readonly request: string;
  readonly outcome?: string;
  readonly status?: string;
  readonly job?: { readonly queue: string; readonly id: string; readonly worker: string };
}

/** As `audit verify --json` prints it. */
interface VerifiedTrail {
  readonly records: number;
  readonly last: { readonly seq: number; readonly hash: string };
  readonly signed: { readonly records: number };
}

const endOf = ({ last }: Pick<VerifiedTrail, 'last'>) => `${last.seq}:${last.hash}`;

/** Each machine's chain is whole to its end, and each job has its records, also those of workers that were killed. */
async function expectAllRecords(queue: string, jobs: readonly EndedJob[]): Promise<void> {
  const machines = machinesWith('');
  const ends = await Promise.all(
    machines.map(async (env) => {
      // What a worker did not live to publish goes with the next record of its machine.
      await sandboxRun(env, '--', 'true');
      return endOf(JSON.parse(await sandboxRun(env, 'audit', 'verify', '--complete', '--json')));
    }),
  );
  const [env = {}] = machines;
  const verified = JSON.parse(await sandboxRun(env, 'audit', 'verify', '--fleet', '--complete', '--json'));
  expect(verified).toMatchObject({ ok: true, problemCount: 0, remarks: [] });
  const trails: VerifiedTrail[] = verified.trails;
  expect(trails.map(endOf).sort()).toEqual(ends.sort());
  for (const { records, signed } of trails) expect(signed.records).toBe(records);

  const byJob = new Map<string, FoundRecord[]>();
  const search = spawn(process.execPath, [CLI, 'audit', 'search', '--fleet', '--text', queue, '--json'], {
    ...{ env, stdio: ['ignore', 'pipe', 'inherit'] as const },
  });
  for await (const line of createInterface({ input: search.stdout })) {
    const record: FoundRecord = JSON.parse(line);
    if (record.job?.queue === queue) byJob.set(record.job.id, [...(byJob.get(record.job.id) ?? []), record]);
  }
  const wrong = jobs.filter((job) => !hasItsRecords(job, byJob.get(job.id) ?? []));
  expect(
    wrong.map(
      (job) =>
        `${describeJob(job)}: ${JSON.stringify(byJob.get(job.id)?.map(({ type, outcome, status, job: of }) => [type, outcome ?? status, of?.worker]))}`,
    ),
  ).toEqual([]);
}

function hasItsRecords({ result, ran, attempts }: EndedJob, records: readonly FoundRecord[]): boolean {
  const { worker } = result.fleet;
  const decisions = records.filter(({ type }) => type === 'decision');
  const launches = decisions.filter(({ outcome }) => outcome === 'launch');
  const results = records.filter(({ type }) => type === 'result');
  // A worker that was killed right after that decision started nothing.
  const isLaunched = launches.length >= ran && launches.length <= attempts;
  const isByOneEach = new Set(launches.map(({ job }) => job?.worker)).size === launches.length;
  const isOfLaunches = results.every(({ request }) => launches.some((one) => one.request === request));
  const ofLast = (type: string, said: string | undefined) =>
    records.filter(
      (one) => one.type === type && one.job?.worker === worker && (one.outcome ?? one.status) === said,
    ).length === 1;
  const isEnded =
    result.status === 'worker-lost' ||
    (result.status === 'exited' ? ofLast('result', 'exited') : ofLast('decision', result.error?.code));
  return isLaunched && isByOneEach && isOfLaunches && isEnded;
}

async function sandboxRun(env: NodeJS.ProcessEnv, ...args: readonly string[]): Promise<string> {
  const { stdout } = await execa(process.execPath, [CLI, ...args], {
    ...{ cwd: world.place.workspace, env, extendEnv: false },
  });
  return stdout;
}
