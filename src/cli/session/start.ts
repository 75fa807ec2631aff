import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import type { Readable } from 'node:stream';
import type { Command } from 'commander';
import { ERROR_CODES, type ErrorCode } from '../../errors/codes.ts';
import { SandboxError } from '../../errors/sandbox-error.ts';
import { newShellName, shellSocket } from '../../run/session/shell-places.ts';
import { addSandboxOptions, parseSeconds, type SandboxArguments } from '../shared/options.ts';
import { printOut } from '../shared/print.ts';

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
