/** The name of an output stream. */
export type OutputStream = 'stdout' | 'stderr';

/** A piece of output, in the order in which it was read. */
export interface OutputChunk {
  readonly stream: OutputStream;
  readonly bytes: Uint8Array;
  /** Bytes of the stream that came before these and were not kept, because somebody began to read late. */
  readonly missing?: number;
}

/** A piece of output as text. */
export interface OutputText {
  readonly stream: OutputStream;
  readonly text: string;
}

/** Receives pieces of output. */
export interface ChunkReceiver {
  /** `acknowledge` says that the piece was consumed; too many that were not hold the command back. */
  onChunk(stream: OutputStream, bytes: Uint8Array, acknowledge: () => void): void;
  /** Bytes before the next piece of the stream were not kept. Told only to who begins late. */
  onGap?(stream: OutputStream, missing: number): void;
}
