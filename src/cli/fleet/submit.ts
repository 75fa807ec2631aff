import { createReadStream, readFileSync } from 'node:fs';
import { buffer } from 'node:stream/consumers';
import { Option } from 'commander';
import { errorMessage } from '../../base/error-message.ts';
import { ERROR_CODES } from '../../base/errors/codes.ts';
import { SandboxError } from '../../base/errors/sandbox-error.ts';
import { visibleLine } from '../../base/visible-text.ts';
import { FLEET_PRIORITIES } from '../../base/words.ts';
import { createFleet, type Fleet, type FleetJob, refuseFilled } from '../../fleet/index.ts';
import { type FleetResult, type FleetRunOptions, MAX_JOB_INPUT, MAX_RETRIES } from '../../model/fleet.ts';
import type { Command } from '../../model/index.ts';
import { briefly, endedBy, exitStatus } from '../../run/index.ts';
import { printEnd } from '../run/pass-through.ts';
import { parseSeconds, TAINTS_SEEN, wholeNumber } from '../shared/options.ts';
import { createProgram, parseArguments } from '../shared/parse.ts';
import { jsonLine, printBytes, printError, printOut, startProgress } from '../shared/print.ts';
import { ENDING, onSignals } from '../shared/signals.ts';
import {
  addConnectionOptions,
  type ConnectionArguments,
  parseLabel,
  queueOf,
  settingsOf,
} from './options.ts';

const HELP_AFTER = `
The job runs on a worker of the queue, under the policy of that worker: what is said here can take
away from it and give nothing. It runs at most once; with --retry it is run again if its worker is
lost. Without --wait its id is printed as soon as the server has it: it is not lost then.
--workspace-from sends what the job works on: a directory as it is, with its secrets except what
filesystem.hide of the policy hides; what is committed in a git repository (git:PATH[@REVISION]); or
what was sent before (object:DIGEST).
Contents that are there already are not sent again.

Examples:
  sandbox-run submit --queue builds --wait -- make test
  sandbox-run submit --queue builds --workspace-from git:.@HEAD --wait -c 'npm ci && npm test'
  sandbox-run submit --queue builds --label gpu --retry 2 -- python3 train.py
  sandbox-run submit --queue builds --workspace-from . --changes --wait -- npm run format
  sandbox-run submit --queue builds --workspace-from . --artefact 'dist/**' --into out --wait -- make
  sandbox-run submit --queue builds --jobs commands.txt --wait
  sandbox-run submit --queue builds --input query.sql --wait -- sqlite3 app.db

Exit status: with --wait that of the command, as without a fleet, of several 1 if one did not exit 0;
0 the job was handed over; 125 it was not, its worker was lost, or what it made did not come back.`;

interface SubmitArguments extends ConnectionArguments {
  readonly shell?: string;
  readonly jobs?: string;
  readonly wait?: boolean;
  readonly json?: boolean;
  readonly workspaceFrom?: string;
  readonly retry?: number;
  readonly priority?: (typeof FLEET_PRIORITIES)[number];
  readonly label?: readonly string[];
  readonly timeout?: number;
  readonly idleTimeout?: number;
  readonly readOnly?: boolean;
  readonly offline?: boolean;
  readonly env?: readonly string[];
  readonly input?: string;
  readonly cwd?: string;
  readonly taint?: FleetRunOptions['taints'];
  readonly changes?: boolean;
  readonly artefact?: readonly string[];
  readonly into?: string;
}

/** `sandbox-run submit`: hands a command over to a fleet. */
export async function submit(args: readonly string[]): Promise<number> {
  const collect = (value: string, before: readonly string[] = []) => [...before, value];
  const program = createProgram(
    'sandbox-run submit',
    'Hands a command over to the workers of a queue.',
    HELP_AFTER,
  )
    .usage(
      "--queue NAME [options] -- COMMAND [ARG...]\n       sandbox-run submit --queue NAME [options] -c 'SHELL STRING'",
    )
    .argument('[command...]', 'the program and its arguments, unchanged')
    .passThroughOptions();
  addConnectionOptions(program)
    .option('-c, --shell <string>', 'run a shell string under bash')
    .option('--jobs <file>', 'many jobs: each line is a shell string; - is standard input')
    .option('--wait', 'wait for the result, with its output as it comes (of --jobs: with --json)')
    .option('--json', 'with --wait: print one object for each result, with its output in it')
    .option(
      '--workspace-from <source>',
      'a fresh workspace with what is there: DIR, git:PATH[@REV], object:DIGEST',
    )
    .option(
      '--changes',
      'what the job changed there comes back as a change set of that directory, to be applied or not',
    )
    .option(
      '--artefact <pattern>',
      "files that come back, such as 'dist/**'; repeatable, with --into",
      collect,
    )
    .option('--into <dir>', 'a directory for them, which must not exist, or be empty')
    .option(
      '--retry <n>',
      'run it again if its worker is lost (default: 0)',
      wholeNumber(0, MAX_RETRIES, `it must be a whole number up to ${MAX_RETRIES}.`),
    )
    .addOption(
      new Option('--priority <level>', 'which jobs go first (default: normal)').choices(FLEET_PRIORITIES),
    )
    .option('--label <label>', 'what its worker must have; repeatable', parseLabel)
    .option(
      '--timeout <seconds>',
      'end it after this time, or earlier if the worker’s policy says so',
      parseSeconds,
    )
    .option('--idle-timeout <seconds>', 'end it when it writes no output for this time', parseSeconds)
    .option('--read-only', 'it cannot write its workspace')
    .option('--offline', 'it has no network, whatever the worker’s policy says')
    .option('--env <name=value>', 'a variable for it; repeatable', collect)
    .option('--input <file>', 'its standard input, of at most 256 KiB; - is that of this command')
    .option('--cwd <dir>', 'where it runs, relative to the workspace')
    .option(...TAINTS_SEEN);
  const parsed = parseArguments(program, args);
  if (parsed === undefined) return 0;
  const options = parsed.opts<SubmitArguments>();
  refuseContradictions(options);
  const commands = commandsOf(options, parsed.args);
  const queue = queueOf(options);
  if (options.into !== undefined) await refuseFilled(options.into);
  // Read before anything is connected.
  const run = await runOptionsOf(options);
  await using fleet = await createFleet({ ...settingsOf(options), queue });
  // Awaited here: the fleet is closed when this function returns.
  if (options.wait !== true) return await handOver(fleet, commands, run);
  const [only] = commands;
  return options.jobs === undefined && only !== undefined
    ? await waitForOne(fleet, only, options, run)
    : await waitForMany(fleet, commands, options, run);
}

function commandsOf({ shell, jobs }: SubmitArguments, words: readonly string[]): readonly Command[] {
  const said = [shell !== undefined, jobs !== undefined, words.length > 0].filter(Boolean).length;
  if (said !== 1)
    throw new SandboxError(
      'usage.invalid',
      'say what to run by one of -- COMMAND, -c STRING and --jobs FILE (see sandbox-run submit --help)',
    );
  if (shell !== undefined) return [shell];
  if (jobs === undefined) {
    const [program = '', ...rest] = words;
    return [[program, ...rest]];
  }
  return linesOf(jobs).filter((line) => line.trim() !== '');
}

/** The lines of a file; `-`: of what comes by standard input. */
function linesOf(file: string): readonly string[] {
  try {
    return readFileSync(file === '-' ? 0 : file, 'utf8').split('\n');
  } catch (error) {
    throw new SandboxError('usage.invalid', `--jobs ${file} cannot be read: ${errorMessage(error)}`);
  }
}

/** What is in a file; `-`: what comes by standard input. Of what is more than a job may have no more is read than shows it. */
async function inputOf(file: string): Promise<Buffer> {
  const standard = file === '-' ? { fd: 0, autoClose: false } : {};
  try {
    return await buffer(createReadStream(file, { ...standard, end: MAX_JOB_INPUT }));
  } catch (error) {
    throw new SandboxError('usage.invalid', `--input ${file} cannot be read: ${errorMessage(error)}`);
  }
}

function refuseContradictions({
  wait,
  changes,
  artefact,
  into,
  jobs,
  workspaceFrom,
  json,
  input,
}: SubmitArguments): void {
  const needs = (is: boolean, what: string, why: string) => {
    if (is) throw new SandboxError('usage.invalid', `submit: ${what} ${why}`);
  };
  needs(json === true && wait !== true, '--json', 'needs --wait');
  needs(jobs === '-' && input === '-', '--jobs - and --input -', 'are both standard input');
  needs(
    (changes === true || artefact !== undefined) && wait !== true,
    '--changes and --artefact',
    'need --wait',
  );
  needs((artefact === undefined) !== (into === undefined), '--artefact and --into', 'go together');
  needs(
    artefact !== undefined && workspaceFrom === undefined,
    '--artefact',
    'needs --workspace-from: files come back of a workspace that is sent',
  );
  needs(
    jobs !== undefined && (changes === true || artefact !== undefined),
    '--changes and --artefact',
    'are of one job, and not for --jobs',
  );
  needs(
    changes === true && (workspaceFrom === undefined || /^(git|object):/.test(workspaceFrom)),
    '--changes',
    'needs --workspace-from with a directory, for which the change set is',
  );
}

async function runOptionsOf(options: SubmitArguments): Promise<FleetRunOptions> {
  const { timeout, idleTimeout, retry, priority, label, env, cwd, taint, workspaceFrom } = options;
  const { readOnly, offline, changes, artefact, input } = options;
  const narrow = {
    ...(readOnly === true ? { readOnly } : {}),
    ...(offline === true ? { policy: { network: { mode: 'off' as const } } } : {}),
  };
  const said = { timeout, idleTimeout, retry, priority, cwd, workspaceFrom, changes };
  return {
    ...(Object.fromEntries(
      Object.entries(said).filter(([, value]) => value !== undefined),
    ) as FleetRunOptions),
    ...(label === undefined ? {} : { labels: [...label] }),
    ...(taint === undefined ? {} : { taints: [...taint] }),
    ...(artefact === undefined ? {} : { artefacts: [...artefact] }),
    ...(input === undefined ? {} : { input: await inputOf(input) }),
    ...(env === undefined ? {} : { env: Object.fromEntries(env.map(assignment)) }),
    ...(Object.keys(narrow).length === 0 ? {} : { narrow }),
  };
}

function assignment(entry: string): readonly [string, string] {
  const at = entry.indexOf('=');
  if (at > 0) return [entry.slice(0, at), entry.slice(at + 1)];
  throw new SandboxError(
    'usage.invalid',
    `--env ${entry}: it must be NAME=VALUE; nothing of this environment is passed on`,
  );
}

async function handOver(fleet: Fleet, commands: readonly Command[], run: FleetRunOptions): Promise<number> {
  for (const command of commands) {
    const job = await fleet.submit(command, run);
    printOut(`${job.id}\n`);
  }
  return 0;
}

/** What the command line exits with for a result. */
export function fleetExitStatus(result: FleetResult): number {
  return 'report' in result ? exitStatus(result) : ERROR_CODES[result.error.code].exitStatus;
}

/** A result as `--json` prints it. */
export function fleetAnswer(result: FleetResult) {
  const { fleet, outputCut, ...rest } = result;
  const told = 'report' in rest ? briefly(rest) : rest;
  return { ...told, fleet, ...(outputCut ? { outputCut } : {}) };
}

/** What a person should know of a job that has ended, as of a command that ran here. */
export function printFleetEnd(
  result: FleetResult,
  { json, job = false }: { readonly json: boolean; readonly job?: boolean },
): void {
  const { fleet } = result;
  const where = visibleLine(fleet.host ?? 'no worker', 100);
  const elsewhere = job ? `job ${fleet.job} on ${where}` : where;
  if ('report' in result) {
    printEnd(result, { json, elsewhere });
    // Of one that is followed the exit status says it.
    if (!json && result.status === 'canceled') printError(`${elsewhere}: canceled`);
    if (!json && job && result.status === 'exited' && result.exitCode !== 0)
      printError(`${elsewhere}: exited ${result.exitCode}`);
    if (!json && job && result.status === 'signaled') printError(`${elsewhere}: ended by ${result.signal}`);
  } else if (!json) printError(`${job ? `job ${fleet.job}: ` : ''}${result.status}: ${result.error.message}`);
}

async function waitForOne(
  fleet: Fleet,
  command: Command,
  options: SubmitArguments,
  run: FleetRunOptions,
): Promise<number> {
  const over = new AbortController();
  using _ = onSignals(ENDING, () => over.abort());
  let isRead = true;
  const live: FleetRunOptions =
    options.json === true
      ? {}
      : {
          onOutput: ({ stream, bytes, missing = 0 }) => {
            if (missing > 0) printError(`${missing} bytes of ${stream} are missing here`);
            if (printBytes(stream === 'stdout' ? 1 : 2, bytes)) return;
            // As of a command here: it ends when its reader does.
            isRead = false;
            over.abort();
          },
        };
  const result = await fleet.run(command, { ...run, ...live, signal: over.signal });
  if (options.json === true) printOut(jsonLine(fleetAnswer(result)));
  printFleetEnd(result, { json: options.json === true });
  await bringBack(fleet, result, options);
  return isRead ? fleetExitStatus(result) : endedBy('SIGPIPE');
}

/** What came of the workspace. */
async function bringBack(
  fleet: Fleet,
  result: FleetResult,
  { into, artefact = [], workspaceFrom, changes }: SubmitArguments,
): Promise<void> {
  const { artefacts, changes: changed } = result.fleet;
  if (into !== undefined && artefacts !== undefined) {
    const { leftOut, files } = await fleet.download(artefacts, into);
    if (files === 0 && leftOut.length === 0)
      printError(
        `no file came back: there is none that is called ${visibleLine(artefact.join(' or '), 200)}`,
      );
    for (const path of leftOut)
      printError(`${visibleLine(path, 200)} is left out, because another program would run or obey it`);
  }
  if (changes === true && changed !== undefined && workspaceFrom !== undefined)
    await holdChanges(fleet, changed, workspaceFrom);
  // Why is among the warnings, which have been told.
  const missing = [into !== undefined && artefacts === undefined, changes === true && changed === undefined];
  if (result.ok && missing.includes(true))
    throw new SandboxError('output.lost', 'the command ended, and what it made did not come back');
}

async function holdChanges(fleet: Fleet, changed: string, directory: string): Promise<void> {
  const { held, conflicts } = await fleet.hold(changed, directory);
  for (const path of conflicts)
    printError(
      `${visibleLine(path, 200)} changed here since it was sent, so what the job did to it is left out`,
    );
  printError(
    held === undefined
      ? 'the job changed nothing that could be held here'
      : `what the job changed waits; look: sandbox-run changes diff ${held}; take: sandbox-run changes apply ${held}`,
  );
}

async function waitForMany(
  fleet: Fleet,
  commands: readonly Command[],
  options: SubmitArguments,
  run: FleetRunOptions,
): Promise<number> {
  const over = new AbortController();
  using _ = onSignals(ENDING, () => over.abort());
  const progress = startProgress();
  let [ended, failed] = [0, 0];
  const show = () => progress.show(`${ended} of ${commands.length} jobs ended, ${failed} failed`);
  try {
    const jobs: Promise<void>[] = [];
    const follow = async ({ id, result: awaited }: FleetJob) => {
      try {
        const result = await awaited;
        if (!result.ok) failed += 1;
        if (options.json === true) printOut(jsonLine(fleetAnswer(result)));
        progress.clear();
        printFleetEnd(result, { json: options.json === true, job: true });
      } catch (error) {
        // Of one job: the others go on.
        if (!(error instanceof SandboxError)) throw error;
        failed += 1;
        progress.clear();
        printError(`job ${id}: ${error.message}`);
      }
      ended += 1;
      show();
    };
    for (const command of commands) {
      if (over.signal.aborted) break;
      const followed = follow(await fleet.submit(command, { ...run, signal: over.signal }));
      // Told below, once all are handed over.
      followed.catch(() => {});
      jobs.push(followed);
    }
    await Promise.all(jobs);
  } finally {
    progress.clear();
  }
  if (options.json !== true) printOut(`${ended} jobs ended, ${failed} failed\n`);
  return failed === 0 && ended === commands.length ? 0 : 1;
}
