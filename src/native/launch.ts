import {
  ENDED_BY_CANCEL,
  ENDED_BY_TIMEOUT,
  type NativeAddon,
  type NativeCommand,
  type NativeConfinement,
  type NativeOutcome,
  TREE_ENDED,
} from './contract.ts';

/** Receives what a command does. */
export interface CommandEvents {
  /** Streamed output; stream is 1 or 2. */
  onChunk(stream: number, bytes: Buffer): void;
  /** The last call. */
  onEnd(outcome: NativeOutcome): void;
}

/** Launches a command; returns its id for `signal`, `cancel` and `acknowledge`. Throws if no thread can be made. */
export function launchCommand(
  addon: NativeAddon,
  confinement: NativeConfinement,
  command: NativeCommand,
  events: CommandEvents,
): number {
  return addon.launch(
    confinement,
    (
      stream,
      chunk,
      exitCode,
      signal,
      ended,
      durationMs,
      stdoutBytes,
      stderrBytes,
      userCpuMs,
      systemCpuMs,
      maxRssKib,
      launcherMaxRssKib,
      stdout,
      stderr,
      failure,
      changedPaths,
      details,
    ) => {
      if (chunk !== undefined) {
        events.onChunk(stream, chunk);
        return;
      }
      events.onEnd({
        exitCode,
        signal,
        timedOut: (ended & ENDED_BY_TIMEOUT) !== 0,
        canceled: (ended & ENDED_BY_CANCEL) !== 0,
        treeEnded: (ended & TREE_ENDED) !== 0,
        durationMs,
        stdoutBytes,
        stderrBytes,
        userCpuMs,
        systemCpuMs,
        maxRssKib,
        launcherMaxRssKib,
        stdout,
        stderr,
        failure,
        changedPaths,
        details,
      });
    },
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
