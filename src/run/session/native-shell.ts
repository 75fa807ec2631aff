// Types of the addon for driving a shell session.

import type { NativeCapture, NativeEffects } from '../../confine/native/contract.ts';

declare module '../../confine/native/contract.ts' {
  interface NativeAddon {
    /**
     * Has a shell run a text, after those that it was given before. `assignments`: `NAME='value' `, each, in force for the
     * text alone. False: the shell has ended.
     */
    turn(
      id: number,
      turn: number,
      text: string,
      assignments: string,
      timeoutMs: number,
      streamOutput: boolean,
    ): boolean;
    /** Interrupts a turn, and ends what does not heed it. */
    interruptTurn(id: number, turn: number): boolean;
  }
  interface NativeLaunchExtras {
    /** A bash that lives on: its standard input becomes the channel of `NativeAddon.turn`. */
    readonly shell?: boolean;
  }
  interface NativeEvents {
    readonly 'turn-ended': NativeTurnEnd;
  }
}

/** How a turn of a shell ended. There is none for a turn whose shell ended: the end of the command is its end. */
export interface NativeTurnEnd extends NativeCapture, NativeEffects {
  readonly kind: 'turn-ended';
  readonly turn: number;
  readonly exitCode: number;
  readonly timedOut: boolean;
  readonly interrupted: boolean;
  /** The shell wrote what is no report; it is being ended. */
  readonly broken: boolean;
  readonly durationMs: number;
  /** The state that the shell reports: see native/shell/shell_driver.cc. NUL between the fields. */
  readonly state?: Buffer;
}
