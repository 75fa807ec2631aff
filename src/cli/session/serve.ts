import { writeSync } from 'node:fs';
import { Command } from 'commander';
import { SandboxError } from '../../errors/sandbox-error.ts';
import { listenForShell, type ShellServer } from '../../gate/shells/shell-server.ts';
import { loadAddon } from '../../native/load.ts';
import { messageForModel } from '../../run/output/model-message.ts';
import { openSandbox } from '../../run/sandbox.ts';
import { shellSocket } from '../../run/session/shell-places.ts';
import { deferred } from '../../util/deferred.ts';
import { parseArguments } from '../shared/parse.ts';
import { sandboxOptionsOf } from '../shared/sandbox-options.ts';
import { describeConfinement } from '../shared/show-plan.ts';
import { addStartOptions, type StartArguments } from './start.ts';

const ENDING = ['SIGTERM', 'SIGINT', 'SIGHUP'] as const;
/** What `session start` waits for. */
const READY_FD = 3;

/** Internal: the server of a session, in the background. Tells whoever started it that it is ready, or why not. */
export async function serveShell(args: readonly string[]): Promise<number> {
  const ended = new Promise<void>((done) => {
    for (const signal of ENDING) process.on(signal, () => done());
  });
  try {
    const program = addStartOptions(new Command('serve')).exitOverride();
    const options = parseArguments(program, args)?.opts<StartArguments>();
    const name = options?.name;
    if (options === undefined || name === undefined) return 125;
    const addon = loadAddon();
    const sandboxOptions = sandboxOptionsOf(options);
    let onQueued: (id: string) => void = () => {};
    const asked = deferred<ShellServer>();
    await using sandbox = await openSandbox({
      ...sandboxOptions,
      gate: {
        terminal: { ask: async (request, how) => (await asked.promise).approver.ask(request, how) },
        onQueued: (id) => onQueued(id),
      },
    });
    const server = await listenForShell({
      path: shellSocket(name),
      peerCredentials: addon.peerCredentials,
      about: { id: name, workspace: sandbox.workspace },
      confinement: describeConfinement(sandbox.plan),
      messageFor: (result, command) => messageForModel(result, sandbox.plan, { command }),
      unusedTimeout: options.unusedTimeout,
    });
    try {
      asked.resolve(server);
      onQueued = (id) => server.onQueued(id);
      const shell = await sandbox.session();
      server.serve(shell);
      tell({ type: 'ready', id: name });
      await Promise.race([ended, server.ended]);
      await shell.close();
    } finally {
      await server.close();
    }
    return 0;
  } catch (error) {
    if (!(error instanceof SandboxError)) throw error;
    tell({ type: 'error', code: error.code, message: error.message });
    return error.exitStatus;
  }
}

function tell(message: object): void {
  try {
    writeSync(READY_FD, `${JSON.stringify(message)}\n`);
  } catch {
    // Whoever started it is gone.
  }
}
