import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll } from 'vitest';
import type { Clock } from '../../../src/state/clock.ts';
import { openState } from '../../../src/state/open-state.ts';

export const HOUR = 3_600_000;

/** A clock that the test turns. */
export interface TestClock extends Clock {
  now: () => number;
  sinceBoot: () => number;
  boot: string;
  /** Time passes. */
  pass(milliseconds: number): void;
  /** Somebody sets the wall clock. */
  set(milliseconds: number): void;
  /** The machine starts anew. */
  reboot(): void;
}

export function testClock(): TestClock {
  let wall = 1_800_000_000_000;
  let up = 50_000;
  let boots = 1;
  return {
    now: () => wall,
    sinceBoot: () => up,
    get boot() {
      return `boot-${boots}`;
    },
    set boot(_) {
      throw new Error('use reboot()');
    },
    pass: (milliseconds) => {
      wall += milliseconds;
      up += milliseconds;
    },
    set: (milliseconds) => {
      wall = milliseconds;
    },
    reboot: () => {
      boots++;
      up = 10_000;
    },
  };
}

/** A directory for databases that the test file removes. */
export function stateDirectories(): () => string {
  const root = mkdtempSync(join(tmpdir(), 'sandbox-run-state-test-'));
  afterAll(() => rmSync(root, { recursive: true, force: true }));
  return () => mkdtempSync(join(root, 'state-'));
}

export const open = openState;
