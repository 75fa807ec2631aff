import type { OutputStream } from '../../model/output.ts';

/** Receives pieces of output. */
export interface ChunkReceiver {
  /** `stream`: 1 or 2. `acknowledge` says that the piece was consumed; too many that were not hold the command back. */
  onChunk(stream: number, bytes: Uint8Array, missing: number, acknowledge: () => void): void;
}

export const streamName = (number: number): OutputStream => (number === 1 ? 'stdout' : 'stderr');
