import type { OutputStream } from '../../model/output.ts';

/** Receives pieces of output. */
export interface ChunkReceiver {
  /** `acknowledge` says that the piece was consumed; too many that were not hold the command back. */
  onChunk(stream: OutputStream, bytes: Uint8Array, acknowledge: () => void): void;
  /** Bytes before the next piece of the stream were not kept. Told only to who begins late. */
  onGap?(stream: OutputStream, missing: number): void;
}
