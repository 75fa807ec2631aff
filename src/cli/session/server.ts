import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { writeSync } from 'node:fs';
import { createInterface } from 'node:readline';
import type { Readable } from 'node:stream';
import { Command } from 'commander';
import { ERROR_CODES, type ErrorCode } from '../../errors/codes.ts';
import { SandboxError } from '../../errors/sandbox-error.ts';
import { loadAddon } from '../../native/load.ts';
import { newShellName, shellSocket } from '../../run/session/shell-places.ts';
import { isOurs } from '../../serve/core/peer.ts';
import { orElse } from '../../util/or-else.ts';
import {
  addSandboxOptions,
  parseSeconds,
  type SandboxArguments,
  sandboxOptionsOf,
} from '../shared/options.ts';
import { parseArguments } from '../shared/parse.ts';
import { printOut } from '../shared/print.ts';
import { describeConfinement } from '../shared/show-plan.ts';
import { aborted, untilEnded } from '../shared/signals.ts';

const DEFAULT_UNUSED_MS = 30 * 60 * 1000;

/** Options of `session start`. */
export interface StartArguments extends SandboxArguments {
  name?: string;
  unusedTimeout: number;
}

/** Adds them. */
export function addStartOptions(command: Command): Command {
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
export async function startShellServer(args: readonly string[], given: StartArguments): Promise<number> {
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

/** What `session start` waits for. */
const READY_FD = 3;

/** Internal: the server of a session, in the background. Tells whoever started it that it is ready, or why not. */
export async function serveShell(args: readonly string[]): Promise<number> {
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
