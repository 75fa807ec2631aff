import { SandboxError } from '../../base/errors/sandbox-error.ts';
import { visibleLine } from '../../base/visible-text.ts';
import { openSandbox } from '../../run/index.ts';
import { requireExactArguments, requireExactVariables } from '../../workspace/index.ts';
import { caller } from '../shared/caller.ts';
import { printNote, printOut } from '../shared/print.ts';
import { SignalForwarding } from '../shared/signals.ts';
import { takeServerAddress } from '../warm/start.ts';
import { parseShellArguments, type Wanted } from './arguments.ts';
import { runIn, SHELL, sandboxFor, statusOf } from './confined.ts';
import { isInsideOwnView, plainShell } from './inside.ts';
import { readShellSettings, shellHelp } from './settings.ts';

/** As bash's for arguments that it does not know. */
const USAGE_STATUS = 2;

/** `sandbox-sh [arguments of bash]`: runs it and returns the exit status. */
export async function shell(given: readonly string[]): Promise<number> {
  // Uses a warm server that runs already, and starts none.
  takeServerAddress();
  try {
    requireExactArguments(given);
    requireExactVariables(caller().env);
    // A process in here has what the sandbox around it gives, and no more. So sandbox-sh is plain bash there.
    if (isInsideOwnView()) return await plainShell(SHELL, given);
    const wanted = parseShellArguments(given);
    switch (wanted.kind) {
      case 'help':
        printOut(shellHelp());
        return 0;
      case 'refused':
        printNote(`sandbox-sh: ${visibleLine(wanted.message, 300)}\n`);
        return USAGE_STATUS;
      case 'version':
        return await runConfined([SHELL, '--version']);
      case 'run':
        return await runConfined(wanted);
    }
  } catch (error) {
    if (!(error instanceof SandboxError)) throw error;
    return statusOf(error);
  }
}

async function runConfined(wanted: Wanted | readonly [string, ...string[]]): Promise<number> {
  const confined = { wanted, settings: readShellSettings(process.env) };
  using signals = new SignalForwarding();
  await using sandbox = await openSandbox(await sandboxFor(confined, signals), caller());
  return await runIn(sandbox, confined, signals);
}
