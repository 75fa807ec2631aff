/** Two clocks: the wall's, which can be set, and the time since the boot, which cannot but starts anew with each boot. */
export interface Clock {
  /** Milliseconds since 1970. */
  now(): number;
  /** Milliseconds since the boot, time asleep included. */
  sinceBoot(): number;
  /** The same for every process between two boots. */
  readonly boot: string;
}
