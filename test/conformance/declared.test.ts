import { describe, expect, it } from 'vitest';
import { BACKEND_IDS } from '../../src/base/words.ts';
import { BACKENDS } from '../../src/run/index.ts';

import { REFUSALS, USABLE } from './support.ts';

/**
 * The suite runs over the backends that the host has. So that none is left out unnoticed, a test machine declares them:
 * SANDBOX_RUN_EXPECT_BACKENDS=landlock,namespaces,firejail?,application
 * One with a question mark may be there or not, as the users of the same machine differ.
 */
const isUsable = (name: string) => USABLE.some((usable) => usable === name);
const declared = process.env.SANDBOX_RUN_EXPECT_BACKENDS;

describe('the backends', () => {
  it('are those of the table, in its order', () => {
    expect(BACKENDS.map(({ id }) => id)).toEqual(BACKEND_IDS);
  });

  it(`of this host are ${USABLE.join(', ')}`, () => {
    expect(USABLE).not.toEqual([]);
  });

  it('say in one line why they cannot be used', () => {
    for (const reason of REFUSALS.values()) if (reason !== undefined) expect(reason).toMatch(/^[^\n]{20,}$/);
  });

  it.runIf(declared !== undefined)(`are the declared ones: ${declared}`, () => {
    const wanted = declared?.split(',').filter((name) => !name.endsWith('?') || isUsable(name.slice(0, -1)));
    expect(USABLE).toEqual(wanted?.map((name) => name.replace('?', '')));
  });
});
