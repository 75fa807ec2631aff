import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { connect } from '@nats-io/transport-node';
import { afterAll } from 'vitest';
import { fleetStoreOn } from '../../../../src/gate/nats/key-value.ts';
import type { Clock } from '../../../../src/gate/state/clock.ts';
import { openState } from '../../../../src/gate/state/open-state.ts';
import { openFleetState } from '../../../../src/gate/state/remote/open-fleet-state.ts';
import type { State } from '../../../../src/model/index.ts';
import { type NatsServers, startNats } from '../../../support/nats.ts';
import { lacks } from '../../../support/programs.ts';

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
  /** What another machine's clock shows, which nobody sets. */
  elsewhere(): number;
}

export function testClock(): TestClock {
  let wall = 1_800_000_000_000;
  let up = 50_000;
  let boots = 1;
  let passed = 0;
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
      passed += milliseconds;
    },
    set: (milliseconds) => {
      wall = milliseconds;
    },
    reboot: () => {
      boots++;
      up = 10_000;
    },
    elsewhere: () => 1_700_000_000_000 + passed,
  };
}

/** A directory for databases that the test file removes. */
export function stateDirectories(): () => string {
  const root = mkdtempSync(join(tmpdir(), 'sandbox-run-state-test-'));
  afterAll(() => rmSync(root, { recursive: true, force: true }));
  return () => mkdtempSync(join(root, 'state-'));
}

export const open = openState;

/** Where one test has its state. Every opening finds what was there. */
export interface TestPlace {
  open(clock?: Clock & { elsewhere?(): number }): Promise<State>;
}

/** What keeps a state, each for the same tests. */
export interface Implementation {
  readonly name: string;
  /** A place that is empty. */
  readonly place: () => TestPlace;
}

const ACCOUNTS = 60;

/** SQLite, and JetStream on a real server, where every place is an account. They are removed at the end of the file. */
export function implementations(): readonly Implementation[] {
  const directory = stateDirectories();
  let servers: Promise<NatsServers> | undefined;
  let accounts = 0;
  const opened: State[] = [];
  const user = (account: number) => ({ user: `u${account}`, pass: 'p' });
  const config = `accounts { ${Array.from(
    { length: ACCOUNTS },
    (_, account) => `A${account} { jetstream: enabled, users: [{ user: u${account}, password: p }] }`,
  ).join('\n')} }`;
  afterAll(async () => {
    for (const state of opened) await state.close();
    await (await servers)?.stop();
  });
  const both: readonly Implementation[] = [
    {
      name: 'SQLite',
      place: () => {
        const path = directory();
        return { open: (clock) => openState(path, clock) };
      },
    },
    {
      name: 'JetStream',
      place: () => {
        const account = accounts++;
        if (account >= ACCOUNTS) throw new Error('there are no more accounts');
        return {
          open: async (clock) => {
            servers ??= startNats({ config, probe: user(0) });
            const { url } = await servers;
            const store = await fleetStoreOn(await connect({ servers: url, ...user(account) }), { url });
            const state = openFleetState({
              ...store,
              ...(clock && {
                clock: { now: async () => clock.elsewhere?.() ?? clock.now(), host: clock.now },
              }),
            });
            opened.push(state);
            return state;
          },
        };
      },
    },
  ];
  return lacks('nats-server') ? both.slice(0, 1) : both;
}
