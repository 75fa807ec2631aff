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
  const outcomes = { host: { abi: 6 }, files: ['a.test'], rows: [], skipped: [] as string[], attacks: [] };
  const machine = (who: string, changes = {}, vm = {}, done = true) => ({
    who,
    vm: { ended: true, ill: [] as string[], ...vm },
    heard: { done, outcomes: { ...outcomes, ...changes } },
  });
  const root = machine('root');
  const user = machine('user');
  const files = ['a.test'];

  it('nothing, if everything ran and held', () => {
    expect(problemsOf?.(6, [root, user], files)).toEqual([]);
  });

  it.each([
    ['another ABI', 7, [root, user], files, /root: Landlock ABI 6 is used, this kernel has 7/],
    ['no second user', 6, [root], files, /user: there was no machine/],
    ['no sandbox', 6, [root, machine('user', { host: undefined })], files, /user: no sandbox could be made/],
    ['a suite that did not run', 6, [root, user], ['a.test', 'b.test'], /root: b\.test did not run/],
    ['an oops', 6, [root, machine('user', {}, { ill: ['Oops: 0'] })], files, /user: the kernel says: Oops/],
    ['no end', 6, [machine('root', {}, { ended: false }), user], files, /root: .* did not come to its end/],
    ['no last word', 6, [root, machine('user', {}, {}, false)], files, /user: .* did not come to its end/],
    [
      'an escape',
      6,
      [root, machine('user', { rows: [{ file: 'a', name: 'b', outcome: 'escaped' }] })],
      files,
      /user: ESCAPED a: b/,
    ],
    [
      'a test that nobody runs',
      6,
      [machine('root', { skipped: ['a: b'] }), machine('user', { skipped: ['a: b'] })],
      files,
      /skipped by everybody: a: b/,
    ],
  ])('%s', (_, abi, machines, names, problem) => {
    expect(problemsOf?.(abi, machines, names)).toEqual(
      expect.arrayContaining([expect.stringMatching(problem)]),
    );
  });

  it('not a test that only one of them runs', () => {
    expect(problemsOf?.(6, [machine('root', { skipped: ['a: b (not root)'] }), user], files)).toEqual([]);
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
