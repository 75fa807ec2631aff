import { constants as systemConstants } from 'node:os';
import type { TryCommand } from './backends/backend.ts';
import { STDIO_CAPTURE, STDIO_NULL } from './native/contract.ts';
import { loadAddon } from './native/load.ts';
import { Running } from './running.ts';

/** What is to be tried takes a tenth of a second; what hangs is not used. */
const PATIENCE_MS = 15_000;

/** @see TryCommand */
export const tryCommand: TryCommand = async (spec, program) => {
  const addon = loadAddon();
  const confinement = addon.createConfinement(spec);
  try {
    const running = new Running(addon, confinement, {
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
    });
    const { failure, exitCode, signal, timedOut, stdout, stderr } = await running.exited;
    return {
      failure,
      killed: signal === systemConstants.signals.SIGKILL || timedOut,
      exitCode: signal === 0 && !timedOut ? exitCode : undefined,
      stdout: stdout?.toString() ?? '',
      stderr: stderr?.toString() ?? '',
    };
  } finally {
    addon.closeConfinement(confinement);
  }
};
