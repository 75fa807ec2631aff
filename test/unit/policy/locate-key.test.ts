import { describe, expect, it } from 'vitest';
import { locateKey } from '../../../src/policy/locate-key.ts';

const TEXT = `profile = "x"
# comment = 1

[filesystem]
read = [
  "a",
  "b",
]
"quoted key" = 1
limits.deep = 2

[environment]
set = { A = "1",
        B = "2" }
text = """
write = 1
"""

[[commands.rules]]
program = "git"
match = ["x"]

[[commands.rules]]
program = "npm"
`;

describe('locateKey', () => {
  it.each([
    [['profile'], 1],
    [['filesystem'], 4],
    [['filesystem', 'read'], 5],
    [['filesystem', 'read', 0], 6],
    [['filesystem', 'read', 1], 7],
    [['filesystem', 'quoted key'], 9],
    [['filesystem', 'limits', 'deep'], 10],
    [['environment', 'set'], 13],
    [['environment', 'set', 'B'], 14],
    [['commands', 'rules', 0, 'program'], 20],
    [['commands', 'rules', 0, 'match', 0], 21],
    [['commands', 'rules', 1, 'program'], 24],
    [['commands', 'rules', 1, 'verdict'], 23],
    [['filesystem', 'missing'], 4],
    [['environment', 'write'], 12],
    [['nowhere'], undefined],
    [['comment'], undefined],
  ] as const)('%j', (place, line) => {
    expect(locateKey(TEXT, place)).toBe(line);
  });

  it('does without a line for what it cannot read', () => {
    expect(locateKey('a = = 1', ['a'])).toBeUndefined();
  });
});
