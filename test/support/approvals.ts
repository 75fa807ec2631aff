import { mkdtempSync, realpathSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll } from 'vitest';
import { type Clock, openState } from '../../src/gate/index.ts';
import type { ApprovalRequest, State } from '../../src/model/index.ts';
import { ensureStateDirectory, stateDirectoryPath } from '../../src/workspace/index.ts';

/** A request like those that `run/` makes. */
export function sampleRequest(changes: Partial<ApprovalRequest> = {}): ApprovalRequest {
  return {
    fingerprint: 'f'.repeat(64),
    principal: 'uid:1000',
    session: undefined,
    command: 'git push origin main',
    cwd: '/work/project',
    decision: {
      verdict: 'ask',
      risk: 'medium',
      reach: 'network',
      reasons: [
        { check: 'rules', verdict: 'ask', code: 'network', message: 'git push sends data.', words: ['push'] },
        { check: 'paths', verdict: 'allow', code: 'inside', message: 'All inside.', words: [] },
      ],
    },
    parts: [
      {
        source: 'git push origin main',
        executable: '/usr/bin/git',
        remarks: ['It changes another repository.'],
      },
    ],
    environment: ['GIT_TRACE=1', '-LANG'],
    profile: 'workspace-write',
    confinement: ['Writes nothing outside the workspace.', 'No network.'],
    ...changes,
  };
}

/** A state directory of one test file, as `$XDG_STATE_HOME` tells it to other processes. */
export interface StatePlace {
  readonly stateHome: string;
  readonly directory: string;
  open(clock?: Clock): Promise<State>;
}

/** Makes one, which is removed at the end of the file. */
export function makeStatePlace(): StatePlace {
  const stateHome = realpathSync(mkdtempSync(join(tmpdir(), 'approvals-')));
  const directory = ensureStateDirectory(stateDirectoryPath('/nowhere', stateHome));
  const opened: State[] = [];
  afterAll(() => {
    for (const state of opened) state.close();
    rmSync(stateHome, { recursive: true, force: true });
  });
  return {
    stateHome,
    directory,
    async open(clock) {
      const state = await openState(directory, clock);
      opened.push(state);
      return state;
    },
  };
}

/** A clock that only the test moves. */
export function handClock(start = 1_000_000) {
  let now = start;
  return {
    clock: { now: () => now, sinceBoot: () => now, boot: 'one' } satisfies Clock,
    advance(ms: number) {
      now += ms;
    },
  };
}

/** Waits until a look at something gives a value, for at most a minute, or as long as is said if that is more. */
export async function until<T>(
  look: () => T | undefined | Promise<T | undefined>,
  milliseconds = 0,
): Promise<T> {
  const end = performance.now() + Math.max(60_000, milliseconds);
  for (;;) {
    const found = await look();
    if (found !== undefined) return found;
    if (performance.now() > end) throw new Error('it did not come');
    await new Promise((done) => setTimeout(done, 10));
  }
}
