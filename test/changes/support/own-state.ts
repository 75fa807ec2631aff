import { afterAll, beforeEach } from 'vitest';
import type { Arena } from '../../support/arena.ts';
import { makeDirectory } from '../../support/state-home.ts';

/**
 * Gives each test of the current file a state directory that no other one uses: the layers of others are not seen there, and
 * nobody else applies changes there meanwhile.
 */
export function useOwnState({ root }: Arena): void {
  const shared = process.env.XDG_STATE_HOME;
  beforeEach(() => {
    process.env.XDG_STATE_HOME = makeDirectory(`${root}-state-`);
  });
  afterAll(() => {
    process.env.XDG_STATE_HOME = shared;
  });
}
