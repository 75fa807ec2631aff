import { constants as systemConstants } from 'node:os';
import type { TryCommand } from '../../backends/backend.ts';
import { STDIO_CAPTURE, STDIO_NULL } from '../../native/contract.ts';
import { launchCommand } from '../../native/launch.ts';
import { loadAddon } from '../../native/load.ts';

/** What is to be tried takes a tenth of a second; what hangs is not used. */
const PATIENCE_MS = 15_000;

/** @see TryCommand */
export const tryCommand: TryCommand = async (spec, program) => {
  const addon = loadAddon();
  const confinement = addon.createConfinement(spec);
  try {
    return await new Promise((done) => {
      launchCommand(
        addon,
        confinement,
        {
          program,
          argv: [program],
          env: new Uint8Array(),
          cwd: '/',
          stdio: [STDIO_NULL, STDIO_CAPTURE, STDIO_CAPTURE],
          streamOutput: false,
          outputLimit: 64 * 1024,
          timeoutMs: PATIENCE_MS,
          killGraceMs: 0,
          extras: undefined,
        },
        (event) => {
          if (event.kind !== 'ended') return;
          const { failure, exitCode, signal, timedOut, stdout, stderr } = event;
          done({
            failure,
            killed: signal === systemConstants.signals.SIGKILL || timedOut,
            exitCode: signal === 0 && !timedOut ? exitCode : undefined,
            stdout: stdout?.toString() ?? '',
            stderr: stderr?.toString() ?? '',
          });
        },
      );
    });
  } finally {
    addon.closeConfinement(confinement);
  }
};
