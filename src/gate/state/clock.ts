import { readFileSync } from 'node:fs';
import { uptime } from 'node:os';

/** Two clocks: the wall's, which can be set, and the time since the boot, which cannot but starts anew with each boot. */
export interface Clock {
  /** Milliseconds since 1970. */
  now(): number;
  /** Milliseconds since the boot, time asleep included. */
  sinceBoot(): number;
  /** Names the boot: the same for every process of the machine until the next one. */
  readonly boot: string;
}

/** The clocks of this machine. */
export function systemClock(): Clock {
  return { now: Date.now, sinceBoot: () => Math.round(uptime() * 1000), boot: bootId() };
}

function bootId(): string {
  try {
    return readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim();
  } catch {
    // Without /proc only the wall clock is left, as if each look were made in a boot of its own.
    return '';
  }
}
