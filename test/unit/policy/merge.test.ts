import { describe, expect, it } from 'vitest';
import { type LayerName, mergeLayers, type PolicyLayer } from '../../../src/policy/merge.ts';
import type { PolicyFile } from '../../../src/policy/schema.ts';

const layer = (name: LayerName, file: PolicyFile): PolicyLayer => ({
  name,
  path: `/${name}.toml`,
  text: undefined,
  file,
});
const merged = (...files: readonly PolicyFile[]) => mergeLayers(files.map((file) => layer('option', file)));

describe('mergeLayers', () => {
  it('is nothing without layers, and one file as it is', () => {
    expect(mergeLayers([])).toEqual({});
    const file: PolicyFile = { profile: 'x', limits: { umask: '022' }, environment: { set: { A: '1' } } };
    expect(merged(file)).toEqual(file);
  });

  it.each([
    ['a value', { profile: 'a' }, { profile: 'b' }, { profile: 'b' }],
    [
      'a value in a table, and leaves its neighbours',
      { security: { autonomy: 'readonly', max_actions_per_hour: 1 } },
      { security: { max_actions_per_hour: 0 } },
      { security: { autonomy: 'readonly', max_actions_per_hour: 0 } },
    ],
    [
      'the whole allow-list',
      { commands: { allow: ['a', 'b'] } },
      { commands: { allow: ['c'] } },
      { commands: { allow: ['c'] } },
    ],
    [
      'a variable and a demand by its name',
      { environment: { set: { A: '1', B: '1' } }, demand: { network: 'required' } },
      { environment: { set: { A: '2' } }, demand: { signals: 'required' } },
      { environment: { set: { A: '2', B: '1' } }, demand: { network: 'required', signals: 'required' } },
    ],
    [
      'true by false',
      { unsafe: { unjudged_commands: true } },
      { unsafe: { unjudged_commands: false } },
      { unsafe: { unjudged_commands: false } },
    ],
  ] as const satisfies readonly (readonly [string, PolicyFile, PolicyFile, PolicyFile])[])(
    'a later layer replaces %s',
    (_, one, other, expected) => {
      expect(merged(one, other)).toEqual(expected);
    },
  );

  it('adds lists up in the order of the layers', () => {
    const rule = (program: string) => ({ program, verdict: 'ask' as const });
    expect(
      merged(
        {
          filesystem: { read: ['a'], protect: ['p'] },
          commands: { rules: [rule('x')], permit_dangerous: ['d'] },
        },
        {},
        {
          filesystem: { read: ['b'], write: ['w'] },
          commands: { rules: [rule('y')] },
          environment: { pass: ['E'] },
        },
      ),
    ).toEqual({
      filesystem: { read: ['a', 'b'], write: ['w'], protect: ['p'] },
      commands: { rules: [rule('x'), rule('y')], permit_dangerous: ['d'] },
      environment: { pass: ['E'] },
    });
  });

  it('changes no layer', () => {
    const one: PolicyFile = { filesystem: { read: ['a'] } };
    merged(one, { filesystem: { read: ['b'] } });
    expect(one).toEqual({ filesystem: { read: ['a'] } });
  });
});
