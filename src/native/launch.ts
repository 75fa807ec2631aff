import type { NativeAddon, NativeCommand, NativeConfinement, NativeEventHandler } from './contract.ts';

/** Launches a command; returns its id for `signal`, `cancel` and `acknowledge`. Throws if no thread can be made. */
export function launchCommand(
  addon: NativeAddon,
  confinement: NativeConfinement,
  command: NativeCommand,
  onEvent: NativeEventHandler,
): number {
  return addon.launch(
    confinement,
    onEvent,
    command.program,
    command.argv,
    command.env,
    command.cwd,
    ...command.stdio,
    command.outputLimit,
    command.timeoutMs,
    command.killGraceMs,
    command.streamOutput,
    command.input,
    command.extras,
  );
}
