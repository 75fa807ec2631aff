import { writeSync } from 'node:fs';
import { Command } from 'commander';
import { SandboxError } from '../../errors/sandbox-error.ts';
import { loadAddon } from '../../native/load.ts';
import { shellSocket } from '../../run/session/shell-places.ts';
import { listenForClients } from '../../serve/core/listener.ts';
import { isOurs } from '../../serve/core/peer.ts';
import { createService } from '../../serve/sandbox/service.ts';
import { orElse } from '../../util/or-else.ts';
import { sandboxOptionsOf } from '../shared/options.ts';
import { parseArguments } from '../shared/parse.ts';
import { describeConfinement } from '../shared/show-plan.ts';
import { aborted, untilEnded } from '../shared/signals.ts';
import { addStartOptions, type StartArguments } from './start.ts';

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
