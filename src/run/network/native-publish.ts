// What of the addon holds the ports that commands publish.

import type { NativeFailure } from '../../confine/native/contract.ts';

declare module '../../confine/native/contract.ts' {
  interface NativeAddon {
    /**
     * Listens at a port of this machine and carries connections to a port of the commands of a confinement, until
     * `unpublish`. Those who share a machine and want the same share it. `address`: 16 bytes, the canonical path of a Unix
     * socket, or `undefined`: 127.0.0.1 and ::1.
     */
    publish(
      confinement: NativeConfinement,
      address: Uint8Array | string | undefined,
      port: number,
      orFree: boolean,
      inner: number,
    ): NativePublished | NativeNotPublished;
    /** False: what carries connections had ended before. */
    unpublish(id: number): boolean;
  }
}

/** A port that is held. */
interface NativePublished {
  readonly id: number;
  readonly port: number;
  readonly addresses: readonly string[];
  readonly failure?: undefined;
}

/** Why it is not. `free`: where it is taken, the next port that is not; 0: none was found. */
interface NativeNotPublished {
  readonly failure: NativeFailure;
  readonly free?: number;
}
