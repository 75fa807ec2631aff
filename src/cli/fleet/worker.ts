import { mkdirSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { resolve } from 'node:path';
import { Option } from 'commander';
import { SandboxError } from '../../base/errors/sandbox-error.ts';
import { DEFAULT_LEASE, FleetWorker, LONGEST_LEASE, SHORTEST_LEASE } from '../../fleet/index.ts';
import { connectNats, natsFailure } from '../../gate/nats/index.ts';
import {
  addSandboxOptions,
  parseSeconds,
  type SandboxArguments,
  sandboxOptionsOf,
  wholeNumber,
} from '../shared/options.ts';
import { createProgram, parseArguments } from '../shared/parse.ts';
import { printError, printOut } from '../shared/print.ts';
import { aborted, untilEnded } from '../shared/signals.ts';
import {
  addConnectionOptions,
  type ConnectionArguments,
  parseLabel,
  queueOf,
  settingsOf,
} from './options.ts';

const HELP_AFTER = `
Runs on each machine of a fleet, started by anything: systemd, Slurm, Kubernetes, a shell. Jobs run
under the policy of this command line and this machine; whoever submits one can take away from it
and give nothing. A job that brings no workspace runs in that of the worker.

SIGTERM: no more jobs are taken, those that run have --grace to end. What is left then is lost, or
run by another worker if its submitter wants that. A worker that cannot renew its lease ends its
jobs before the lease is over.

Examples:
  sandbox-run worker --queue builds --slots 4 --workspace ~/builds
  sandbox-run worker --queue builds --label gpu --label arch=arm64 --url tls://nats.example.org
  SANDBOX_RUN_NATS_CREDS=/etc/sandbox-run/worker.creds sandbox-run worker --queue builds

Exit status: 0 ended by a signal; 125 it could not be started.`;

interface WorkerArguments extends SandboxArguments, ConnectionArguments {
  readonly slots: number;
  readonly label?: readonly string[];
  readonly lease: number;
  readonly grace: number;
  readonly scratch?: string;
}

const MOST_SLOTS = 1024;
const DEFAULT_GRACE = 30_000;

/** `sandbox-run worker`: runs jobs of a queue. */
export async function worker(args: readonly string[]): Promise<number> {
  const program = createProgram(
    'sandbox-run worker',
    'Runs commands of a queue on this machine, under the policy of this machine.',
    HELP_AFTER,
  ).usage('--queue NAME [options]');
  addConnectionOptions(program)
    .option(
      '--slots <n>',
      'jobs at once',
      wholeNumber(1, MOST_SLOTS, `it must be a whole number from 1 to ${MOST_SLOTS}.`),
      1,
    )
    .option('--label <label>', 'what this machine has, for jobs that need it; repeatable', parseLabel)
    .addOption(
      new Option('--lease <seconds>', 'without a sign of life for this time the worker is lost')
        .argParser(parseSeconds)
        .default(DEFAULT_LEASE, `${DEFAULT_LEASE / 1000}`),
    )
    .addOption(
      new Option('--grace <seconds>', 'after SIGTERM: how long jobs that run may go on')
        .argParser(parseSeconds)
        .default(DEFAULT_GRACE, `${DEFAULT_GRACE / 1000}`),
    )
    .option('--scratch <dir>', 'where workspaces of jobs are made (default: the temporary directory)')
    .option(
      '--replicas <n>',
      'copies of a queue that is made (default: 3 on a cluster, else 1)',
      wholeNumber(1, 5, 'it must be 1, 3 or 5.'),
    );
  addSandboxOptions(program, { agentSession: false });
  const parsed = parseArguments(program, args);
  if (parsed === undefined) return 0;
  const options = parsed.opts<WorkerArguments>();
  const { slots, label, lease, grace, scratch = tmpdir(), replicas } = options;
  if (lease < SHORTEST_LEASE || lease > LONGEST_LEASE)
    throw new SandboxError(
      'usage.invalid',
      `--lease must be from ${SHORTEST_LEASE / 1000} to ${LONGEST_LEASE / 1000} seconds`,
    );
  const queue = queueOf(options);
  const directory = resolve(scratch);
  if (options.scratch !== undefined) mkdirSync(directory, { recursive: true, mode: 0o700 });
  return untilEnded(async ({ signal }) => {
    const settings = settingsOf(options);
    const connection = await connectNats(settings, `sandbox-run worker ${queue}`);
    try {
      const started = await FleetWorker.start({
        ...{ connection, queue, slots, labels: label ?? [], leaseMs: lease, scratch: directory },
        ...{ sandbox: sandboxOptionsOf(options), credentials: settings.credentials, onProblem: printError },
        ...(replicas === undefined ? {} : { replicas }),
      });
      printOut(`worker is ready: ${started.id}\n`);
      // A server that does not let this user in any more closes the connection for good.
      const closed = await Promise.race([aborted(signal), connection.closed()]);
      await started.stop(closed instanceof Error ? 0 : grace);
      if (closed instanceof Error) throw natsFailure(closed, settings.url);
    } finally {
      await connection.close();
    }
    return 0;
  });
}
