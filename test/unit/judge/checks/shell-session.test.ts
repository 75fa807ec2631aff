import { describe, expect, it } from 'vitest';
import { leavesDoubts } from '../../../../src/judge/checks/shell-session.ts';
import { parseShell } from '../../../../src/judge/shell/parse.ts';

describe('the channel of a shell session', () => {
  it.each([
    'read -u 10 x',
    'read -u10 x',
    'read -ru10 x',
    'read -u "$fd" x',
    // The value of another option looks like one.
    'read -pu5 -u 10 x',
    'read -p u5 -u 10 x',
    'read -d u -u 10 x',
    'read x <&10',
  ])('could be read by %s', (text) => {
    expect(leavesDoubts(parseShell(text))).toBe(true);
  });

  it.each(['read x', 'read -r x', 'read -u 3 x', 'read -pu10 x', 'read -p u10 -u 3 x', 'read x <&3'])(
    'is not read by %s',
    (text) => {
      expect(parseShell(text).understood).toBe(true);
      expect(leavesDoubts(parseShell(text))).toBe(false);
    },
  );
});
