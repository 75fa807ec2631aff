import { describe, expect, it } from 'vitest';

// Scripts have no types.
const script = (name: string): Promise<Record<string, (...args: unknown[]) => unknown>> =>
  import(/* @vite-ignore */ `${import.meta.dirname}/../../../scripts/vm/${name}.mjs`);
const { outcomeOf } = await script('outcomes');
const { problemsOf } = await script('verdict');
const { expectedAbi } = await script('debian-kernels');

const test = { name: 'with namespaces › fails', state: 'pass', sandboxed: true, reported: [], errors: [] };
const assertion = { name: 'AssertionError', message: 'expected [ "kill" ] to deeply equal []' };

describe('what became of a test in a virtual machine', () => {
  it.each([
    ['held', {}],
    ['reported', { reported: ['signals: unsupported'] }],
    ['escaped', { state: 'fail', errors: [assertion] }],
    ['failed', { state: 'fail', errors: [{ name: 'Error', message: 'Test timed out in 120000ms.' }] }],
    ['failed', { state: 'fail', errors: [{ ...assertion, message: "expected 'timed-out' to be 'exited'" }] }],
    ['failed', { state: 'run' }],
    ['other', { name: 'works without a sandbox', sandboxed: false }],
    ['failed', { name: 'works without a sandbox', sandboxed: false, state: 'fail', errors: [assertion] }],
  ])('%s: %o', (outcome, changes) => {
    expect(outcomeOf?.('signal-outside', { ...test, ...changes })).toMatchObject({ outcome });
  });

  it('nothing, if it was skipped', () => {
    expect(outcomeOf?.('signal-outside', { ...test, state: 'skip' })).toBeUndefined();
  });
});

describe('what is wrong with a kernel', () => {
  const user = { host: { abi: 6 }, files: ['a.test'], rows: [], skipped: [], attacks: [] };
  const good = { abi: 6, users: { root: user, user } };
  const run = { files: ['a.test'], vm: { ended: true, ill: [] as string[] }, heard: { done: true } };

  it('nothing, if everything ran and held', () => {
    expect(problemsOf?.(good, run)).toEqual([]);
  });

  it.each([
    ['another ABI', { ...good, abi: 7 }, run, /Landlock ABI 6 is used, this kernel has 7/],
    ['no second user', { ...good, users: { root: user } }, run, /user: no sandbox could be made/],
    ['a suite that did not run', good, { ...run, files: ['a.test', 'b.test'] }, /b\.test did not run/],
    ['an oops', good, { ...run, vm: { ended: true, ill: ['Oops: 0000'] } }, /the kernel says: Oops/],
    ['no end', good, { ...run, vm: { ended: false, ill: [] } }, /did not come to its end/],
    ['no last word', good, { ...run, heard: { done: false } }, /did not come to its end/],
    [
      'an escape',
      {
        ...good,
        users: { root: user, user: { ...user, rows: [{ file: 'a', name: 'b', outcome: 'escaped' }] } },
      },
      run,
      /user: ESCAPED a: b/,
    ],
    [
      'a test that nobody runs',
      { ...good, users: { root: { ...user, skipped: ['a: b'] }, user: { ...user, skipped: ['a: b'] } } },
      run,
      /skipped by everybody: a: b/,
    ],
  ])('%s', (_, result, parts, problem) => {
    expect(problemsOf?.(result, parts)).toEqual(expect.arrayContaining([expect.stringMatching(problem)]));
  });

  it('not a test that only one of them runs', () => {
    const users = { root: { ...user, skipped: ['a: b (not root)'] }, user };
    expect(problemsOf?.({ ...good, users }, run)).toEqual([]);
  });
});

it.each([
  ['5.10.262', 0],
  ['5.13.1', 1],
  ['6.1.192', 2],
  ['6.12.117', 6],
  ['6.17.13', 7],
  ['7.2.13', 10],
  ['7.10.1', 11],
])('Linux %s has Landlock ABI %i', (version, abi) => {
  expect(expectedAbi?.(version)).toBe(abi);
});
