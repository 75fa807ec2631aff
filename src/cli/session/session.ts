import { spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { writeSync } from 'node:fs';
import { createInterface } from 'node:readline';
import type { Readable } from 'node:stream';
import { Command } from 'commander';
import { ERROR_CODES, type ErrorCode } from '../../base/errors/codes.ts';
import { SandboxError } from '../../base/errors/sandbox-error.ts';
import { orElse } from '../../base/or-else.ts';
import { visibleText } from '../../base/visible-text.ts';
import { TAINTS } from '../../base/words.ts';
import { loadAddon } from '../../confine/native/load.ts';
import type { SessionInfo, Taint } from '../../model/index.ts';
import { checkSessionId, endSession, openOwnState, operatorPolicy, shellSocket } from '../../run/index.ts';
import { isOurs } from '../../serve/index.ts';
import { caller } from '../shared/caller.ts';
import {
  addSandboxOptions,
  parseSeconds,
  type SandboxArguments,
  sandboxOptionsOf,
} from '../shared/options.ts';
import { parseArguments, withSubcommands } from '../shared/parse.ts';
import { jsonLine, printOut } from '../shared/print.ts';
import { describeConfinement } from '../shared/show-plan.ts';
import { aborted, untilEnded } from '../shared/signals.ts';

const HELP_AFTER = `
A shell session is one long-lived confined bash: directory, variables, functions and activated
environments last from command to command, and each command is judged as any other. Ctrl-C interrupts
the command, not the session. It ends with stop, or when it was not used for half an hour.

A session of an agent is made by its first use: sandbox-run --session ID. What it was exposed to
stays with it: corruption, content that may instruct the model; secret, data that must not leave.
Sessions of one user that are used at the same time share their taints.

Examples:
  id=$(sandbox-run session start --workspace ~/project)
  sandbox-run session run $id -- 'cd src && export CC=clang'
  sandbox-run session run $id --timeout 600 make -j4
  sandbox-run session stop $id
  sandbox-run session list
  sandbox-run session show fix-the-build
  sandbox-run session taint fix-the-build secret --reason 'the key was pasted'
  sandbox-run session end fix-the-build

Exit status: 0; of run, the command's, as sandbox-run gives it; 125 if there is no such session or
anything else failed.`;

interface Options {
  readonly json?: boolean;
  readonly reason?: string;
  readonly policy?: string;
}

/** `sandbox-run session`: shells that live on, and sessions of agents with what they were exposed to. */
export async function session(args: readonly string[]): Promise<number> {
  if (args[0] === 'run') return runCommand(args.slice(1));
  if (args[0] === 'serve') return serveShell(args.slice(1));
  const { command, does, run } = withSubcommands(
    'sandbox-run session',
    'Shells that live on, and sessions of agents with what they were exposed to.',
    HELP_AFTER,
  );
  addStartOptions(command('start', 'starts a shell session in the background and prints its name')).action(
    (options: StartArguments) => does(() => startShellServer(args.slice(1), options)),
  );
  // Only for the help: what stands behind the name of the session is a command line of its own.
  command('run <name> [command...]', 'runs a command in a shell session; one word is a shell string');
  command('stop <name>', 'ends a shell session and everything that it started').action((name: string) =>
    does(async () => (await import('./shell.ts')).stopShell(name)),
  );
  command('list', 'shell sessions and sessions of agents of this user, the last one used last')
    .option('--json', 'one JSON object a line')
    .action((options: Options) => does(() => list(options)));
  command('show <id>', 'one session with its taints')
    .option('--json', 'one JSON object')
    .action((id: string, options: Options) => does(() => show(id, options)));
  command('taint <id> <taint>', `notes that the session was exposed: ${TAINTS.join(' or ')}`)
    .option('--reason <text>', 'where it came from', 'said on the command line')
    .action((id: string, taint: string, { reason = '' }: Options) => does(() => addTaint(id, taint, reason)));
  command('end <id>', 'ends it: what was approved for the session is asked again; hooks are told')
    .option('--policy <file>', 'policy file, for its hooks')
    .action((id: string, { policy }: Options) =>
      does(async () => {
        await endSession(id, caller().env, policy);
        return `${id}: ended\n`;
      }),
    );
  return run(args);
}

async function runCommand(args: readonly string[]): Promise<number> {
  const { parseShellRun, runInShell } = await import('./shell.ts');
  const wanted = parseShellRun(args);
  return wanted === undefined ? 0 : runInShell(wanted.name, wanted.command, wanted.options);
}

async function list({ json }: Options): Promise<string> {
  const { state, principal } = await openOwnState();
  const sessions = await state.sessions.list(principal);
  await state.close();
  const { describeShells } = await import('./shell.ts');
  const shells = await describeShells(json === true);
  if (json === true) return sessions.map(jsonLine).join('') + shells;
  if (sessions.length === 0 && shells === '')
    return `${principal} has no shell sessions and no sessions of agents\n`;
  return sessions.map((found) => `${describe(found)}\n`).join('') + shells;
}

async function show(id: string, { json }: Options): Promise<string> {
  const { state, principal } = await openOwnState();
  const found = await state.sessions.find(id);
  const inForce = await state.sessions.taints(id, principal, (await operatorPolicy()).gate.taints);
  await state.close();
  if (found === undefined || found.principal !== principal)
    throw new SandboxError(
      'session.invalid',
      `there is no open session ${id} of this user (sandbox-run session list shows them)`,
    );
  if (json === true) return jsonLine({ ...found, taintsInForce: inForce });
  const taints = found.taints.map(
    ({ taint, reason, at }) =>
      `  ${taint.padEnd(11)} since ${new Date(at).toISOString()}: ${visibleText(reason)}\n`,
  );
  const others = inForce.filter((taint) => !found.taints.some((own) => own.taint === taint));
  const shared = others.length === 0 ? '' : `  ${others.join(', ')}: of other sessions at the same time\n`;
  return `${describe(found)}\n${taints.join('')}${shared}`;
}

function describe({ id, startedAt, lastUsedAt, endedAt, taints }: SessionInfo): string {
  const time = (at: number) => new Date(at).toISOString();
  const ended = endedAt === undefined ? '' : `, ended ${time(endedAt)}`;
  const tainted = taints.length === 0 ? 'untainted' : taints.map(({ taint }) => taint).join(' and ');
  return `${visibleText(id)}: ${tainted}; started ${time(startedAt)}, last used ${time(lastUsedAt)}${ended}`;
}

async function addTaint(id: string, name: string, reason: string): Promise<string> {
  const taint: Taint | undefined = TAINTS.find((known) => known === name);
  if (taint === undefined)
    throw new SandboxError('usage.invalid', `"${name}" is no taint; there are ${TAINTS.join(', ')}`);
  const { state, principal } = await openOwnState();
  await state.sessions.taint(checkSessionId(id), principal, taint, reason);
  await state.close();
  return `${id}: ${taint}\n`;
}

const DEFAULT_UNUSED_MS = 30 * 60 * 1000;

/** Options of `session start`. */
interface StartArguments extends SandboxArguments {
  name?: string;
  unusedTimeout: number;
}

/** Adds them. */
function addStartOptions(command: Command): Command {
  return addSandboxOptions(
    command
      .option('--name <name>', 'how it is called (default: a new name)')
      .option(
        '--unused-timeout <seconds>',
        'end it when no command was run for so long; 0: never (default: 1800)',
        parseSeconds,
        DEFAULT_UNUSED_MS,
      ),
  );
}

/** Starts the server of a session in the background and waits until it is ready. `args`: as they were given. */
async function startShellServer(args: readonly string[], given: StartArguments): Promise<number> {
  const name = given.name ?? newShellName();
  // Says what is wrong with it before anything is started.
  shellSocket(name);
  const entry = process.argv[1];
  if (entry === undefined)
    throw new SandboxError('session.closed', 'the program of the session cannot be found');
  const server = spawn(
    process.execPath,
    [
      ...process.execArgv,
      entry,
      'session',
      'serve',
      ...args,
      ...(given.name === undefined ? ['--name', name] : []),
    ],
    { detached: true, stdio: ['ignore', 'ignore', 'ignore', 'pipe'] },
  );
  const ready = server.stdio[3] as Readable;
  const said = createInterface({ input: ready });
  // One that cannot be started says nothing.
  server.once('error', () => said.close());
  const [line] = await Promise.race([once(said, 'line'), once(said, 'close')]);
  ready.destroy();
  server.unref();
  const message = line === undefined ? undefined : JSON.parse(line);
  if (message?.type === 'ready') {
    printOut(`${name}\n`);
    return 0;
  }
  const code: ErrorCode = Object.hasOwn(ERROR_CODES, message?.code) ? message.code : 'session.closed';
  throw new SandboxError(code, message?.message ?? 'the server of the session ended before it was ready');
}

/** A name that was not chosen by a person. */
function newShellName(): string {
  return randomBytes(4).toString('hex');
}

/** What `session start` waits for. */
const READY_FD = 3;

/** Internal: the server of a session, in the background. Tells the process that started it that it is ready, or why not. */
async function serveShell(args: readonly string[]): Promise<number> {
  try {
    const program = addStartOptions(new Command('serve')).exitOverride();
    const options = parseArguments(program, args)?.opts<StartArguments>();
    const name = options?.name;
    if (options === undefined || name === undefined) return 125;
    await untilEnded(({ signal }) => serve(options, name, signal));
    return 0;
  } catch (error) {
    if (!(error instanceof SandboxError)) throw error;
    tell({ type: 'error', code: error.code, message: error.message });
    return error.exitStatus;
  }
}

async function serve(options: StartArguments, name: string, signal: AbortSignal): Promise<void> {
  // Loaded by the server only: `session run` is waited for.
  const { createService } = await import('../../serve/sandbox/service.ts');
  const { listenForClients } = await import('../../serve/core/listener.ts');
  const service = await createService({
    sandbox: sandboxOptionsOf(options),
    around: caller(),
    shell: { name, unusedTimeout: options.unusedTimeout },
    describe: describeConfinement,
    // There is no log: clients are told.
    onProblem: () => {},
  });
  try {
    const listener = await listenForClients(service.offer, {
      ...{ path: shellSocket(name), name: `the session ${name}`, sharedDirectory: false },
      ...{ admits: isOurs, addon: loadAddon() },
    });
    try {
      tell({ type: 'ready', id: name });
      await Promise.race([aborted(signal), service.shell?.ended]);
      // Before its clients: a command that heeds nothing is not waited for.
      await service.shell?.shell.close();
    } finally {
      await listener.close('the session ends');
    }
  } finally {
    await service.close();
  }
}

function tell(message: object): void {
  // Whoever started it may be gone.
  orElse(() => writeSync(READY_FD, `${JSON.stringify(message)}\n`), undefined);
}
