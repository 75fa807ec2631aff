import {
  COMMAND_EXITED,
  ENDED_BY_CANCEL,
  ENDED_BY_TIMEOUT,
  type NativeAddon,
  type NativeCommand,
  type NativeConfinement,
  type NativeExit,
  type NativeOutcome,
  type NativeTurnEnd,
  SHELL_BROKEN,
  TREE_ENDED,
  TURN_ENDED,
} from './contract.ts';

/** Receives what a command does. */
export interface CommandEvents {
  /** Streamed output; stream is 1 or 2. No bytes: `missing` bytes before the next ones are not kept any more. */
  onChunk(stream: number, bytes: Buffer, missing: number): void;
  /** A command in the background has ended, and what it left behind has not. */
  onExit?(exit: NativeExit): void;
  /** The end of a turn of a shell. */
  onTurn?(end: NativeTurnEnd): void;
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
      details,
    ) => {
      if (stream === COMMAND_EXITED) {
        events.onExit?.({ exitCode, signal, durationMs });
        return;
      }
      if (stream === TURN_ENDED) {
        events.onTurn?.({
          turn: signal,
          exitCode,
          timedOut: (ended & ENDED_BY_TIMEOUT) !== 0,
          interrupted: (ended & ENDED_BY_CANCEL) !== 0,
          broken: (ended & SHELL_BROKEN) !== 0,
          durationMs,
          stdout,
          stderr,
          stdoutBytes,
          stderrBytes,
          state: chunk,
          details,
        });
        return;
      }
      if (chunk !== undefined) {
        // The third argument of a chunk; see NativeEventHandler.
        events.onChunk(stream, chunk, chunk.length === 0 ? exitCode : 0);
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
