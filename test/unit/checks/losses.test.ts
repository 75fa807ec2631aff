import { describe, expect, it } from 'vitest';
import { lossesCheck } from '../../../src/checks/losses.ts';
import { contextOf } from '../../support/check-context.ts';

/** Version control has nothing of what is there. */
const versions = { changedAt: () => undefined, lostWith: (path: string) => path };

async function asks(source: string): Promise<boolean> {
  const context = { ...contextOf(source), autonomy: 'contained' as const, versions };
  const reasons = await lossesCheck.judge(context);
  return reasons.some(({ verdict }) => verdict === 'ask');
}

describe('what version control would not bring back is asked about', () => {
  it.each([
    'rm notes',
    'git rm notes',
    'mv notes /tmp/x',
    'mv -t /tmp notes',
    'mv --target-dir=/tmp notes',
    // Names of files, and not options.
    'rm -- --cached notes',
    'git rm -- --dry-run notes',
  ])('%s', async (source) => {
    expect(await asks(source)).toBe(true);
  });

  it.each([
    'git rm --cached notes',
    'git rm -n notes',
    'git rm -rn notes',
    'git mv notes sub',
    'mv notes sub',
  ])('and this loses nothing: %s', async (source) => {
    expect(await asks(source)).toBe(false);
  });
});
