import { visibleText } from '../../base/visible-text.ts';
import { createFleet, type Fleet } from '../../fleet/index.ts';
import type { FleetStatus } from '../../model/fleet.ts';
import { withSubcommands } from '../shared/parse.ts';
import { jsonLine, printBytes, printError, printOut } from '../shared/print.ts';
import { addQueueOptions, type ConnectionArguments, queueOf, settingsOf } from './options.ts';
import { fleetAnswer, fleetExitStatus, printFleetEnd } from './submit.ts';

const HELP_AFTER = `
Examples:
  sandbox-run fleet status --queue builds
  sandbox-run fleet job 5c1f0e9b7a3d48c2.1 --queue builds --wait
  sandbox-run fleet cancel 5c1f0e9b7a3d48c2.1 --queue builds

A job that no worker has is one that waits, if any wait, whatever its id: job says that it has not
ended, and after cancel it does not run any more. Until a worker drops it, it counts as one that waits.
What status says of workers is as they told it with their last sign of life, a fifth of a lease ago at most;
one that gave none for a whole lease is lost.

Exit status: 0; job: that of its command, 1 if it has not ended; 125 if there is no such queue or
job, or the server cannot be reached.`;

interface Options extends ConnectionArguments {
  readonly json?: boolean;
  readonly wait?: boolean;
}

/** `sandbox-run fleet`: how a fleet does, and what became of its jobs. */
export async function fleet(args: readonly string[]): Promise<number> {
  const [first, ...rest] = args;
  if (first === 'approvals') return (await import('./fleet-approvals.ts')).fleetApprovals(rest);
  const { command, does, run } = withSubcommands(
    'sandbox-run fleet',
    'Shows the workers and jobs of a queue.',
    HELP_AFTER,
  );
  addQueueOptions(command('status', 'its workers and their slots, the jobs that wait, failures'))
    .option('--json', 'one JSON object')
    .action((options: Options) => does(() => connected(options, (open) => status(open, options))));
  addQueueOptions(command('job <id>', 'what became of a job, with its output'))
    .option('--wait', 'wait until it has ended')
    .option('--json', 'one JSON object, with the output in it')
    .action((id: string, options: Options) =>
      does(() => connected(options, (open) => job(open, id, options))),
    );
  command('approvals', 'what workers ask about: list, show, approve, deny, watch, grants, revoke, serve');
  addQueueOptions(command('cancel <id>', 'ends a job, wherever it is, or takes it off the queue')).action(
    (id: string, options: Options) =>
      does(() =>
        connected(options, async (open) => {
          await open.cancel(id);
          return 0;
        }),
      ),
  );
  return run(args);
}

async function connected<T>(options: Options, work: (open: Fleet) => Promise<T>): Promise<T> {
  await using open = await createFleet({ ...settingsOf(options), queue: queueOf(options), make: false });
  return await work(open);
}

async function job(open: Fleet, id: string, { wait, json }: Options): Promise<number> {
  const result = await open.result(id, { wait: wait === true });
  if (result === undefined) {
    printError(`the job ${id} has not ended; --wait waits for it`);
    return 1;
  }
  if (json === true) printOut(jsonLine(fleetAnswer(result)));
  else {
    printBytes(1, Buffer.from(result.stdout));
    printBytes(2, Buffer.from(result.stderr));
  }
  printFleetEnd(result, { json: json === true });
  return fleetExitStatus(result);
}

async function status(open: Fleet, { json }: Options): Promise<string> {
  const found = await open.status();
  return json === true ? jsonLine(found) : shown(found);
}

const seconds = (milliseconds: number) => `${Math.round(milliseconds / 1000)} s`;

const wait = (jobs: number) => (jobs === 1 ? '1 job waits' : `${jobs} jobs wait`);
/** Sets of labels that are listed at most. */
const MOST_UNMET = 10;

function shown(status: FleetStatus): string {
  const { queue, jobs, unmet, oldestMs, workers, slots, running, done, failed, lost } = status;
  const waiting = Math.max(0, jobs.high + jobs.normal + jobs.low - running);
  const oldest = oldestMs === undefined ? '' : `, the oldest job is ${seconds(oldestMs)} old`;
  const lines = [
    `${queue}: ${wait(waiting)}, ${running} run in ${slots} slots${oldest}`,
    ...unmet
      .slice(0, MOST_UNMET)
      .map(
        ({ labels, jobs: count }) =>
          `${wait(count)} for a worker${labels.length === 0 ? '' : ` with ${labels.join(' ')}`}, and there is none`,
      ),
    `${done} ended on the workers below, ${failed} of them did not exit 0; ${lost} workers were lost`,
    ...workers.map(
      ({ worker, host, pid, state, slots: of, running: busy, labels, seenMs, done: ended }) =>
        `  ${worker} ${host}/${pid} ${state} ${busy}/${of} ${ended} ended, seen ${seconds(seenMs)} ago${labels.length === 0 ? '' : ` ${labels.join(' ')}`}`,
    ),
  ];
  // Workers are told of by themselves.
  return lines.map((line) => `${visibleText(line)}\n`).join('');
}
