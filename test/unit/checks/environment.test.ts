import { describe, expect, it } from 'vitest';
import type { Autonomy } from '../../../src/model/decision.ts';
import { judgeText } from '../../support/policy-world.ts';

const asks = (command: string, autonomy: Autonomy) =>
  judgeText(command, { autonomy }).reasons.some(
    ({ check, verdict }) => check === 'environment' && verdict === 'ask',
  );

describe('environment', () => {
  it.each([
    'PATH=. ls',
    'PATH+=:. ls',
    'PATH=.',
    'LD_PRELOAD=./x ls',
    'A=b LD_PRELOAD=./x ls',
    'export LD_PRELOAD=./x',
    'export A=b PATH=x',
    'env LD_PRELOAD=./x ls',
    'env -u A -i PATH=. ls',
    // Options as env reads them: several letters in one word, shortened names, values of their own.
    'env -iu A PATH=. ls',
    'env -vC /tmp LD_PRELOAD=./x ls',
    'env --chdi /tmp LD_PRELOAD=./x ls',
    'env -- LD_PRELOAD=./x ls',
    'env - LD_PRELOAD=./x ls',
    'BASH_ENV=x ls',
    'GIT_SSH=./x git fetch',
    'PAGER=./x git log',
    'PAGER=$x git log',
    'IFS=x ls',
    'echo $(LD_PRELOAD=./x ls)',
  ])('%s is asked about in every mode', (command) => {
    expect(asks(command, 'supervised')).toBe(true);
    expect(asks(command, 'autonomous')).toBe(true);
  });

  it.each([
    'PYTHONPATH=src pytest',
    'CC=./x make',
    'NODE_PATH=x node y',
    'RUSTFLAGS="-D warnings" cargo build',
  ])('%s is asked about under supervision only', (command) => {
    expect(asks(command, 'supervised')).toBe(true);
    expect(asks(command, 'autonomous')).toBe(false);
  });

  it.each([
    'LC_ALL=C sort a',
    'CI=1 npm test',
    'NO_COLOR=1 ls',
    'FOO=bar ls',
    'NODE_ENV=test npm test',
    'GIT_PAGER=cat git log',
    'while IFS= read -r x; do echo "$x"; done < a.txt',
    'env FOO=bar ls',
    'env FOO=bar grep LD_PRELOAD=x a.txt',
    'env -u LD_PRELOAD=x ls',
    'export FOO=bar',
    'echo PATH=x',
    'grep LD_PRELOAD=x a.txt',
  ])('%s is not', (command) => {
    expect(asks(command, 'supervised')).toBe(false);
  });
});
