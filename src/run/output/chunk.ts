/** The name of an output stream. */
export type OutputStream = 'stdout' | 'stderr';

/** A piece of output, in the order in which it was read. */
export interface OutputChunk {
  readonly stream: OutputStream;
  readonly bytes: Uint8Array;
  /** Bytes of the stream that came before these and were not kept, because reading began late. */
  readonly missing?: number;
}

/** A piece of output as text. */
export interface OutputText {
  readonly stream: OutputStream;
  readonly text: string;
}

/** Receives pieces of output. */
export interface ChunkReceiver {
  /** `stream`: 1 or 2. `acknowledge` says that the piece was consumed; too many that were not hold the command back. */
  onChunk(stream: number, bytes: Uint8Array, missing: number, acknowledge: () => void): void;
}

export const streamName = (number: number): OutputStream => (number === 1 ? 'stdout' : 'stderr');
