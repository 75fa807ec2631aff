import { describe, expect, it } from 'vitest';
import { isPlainLine } from '../../../../src/judge/checks/plain-line.ts';
import { parseShell } from '../../../../src/judge/shell/parse.ts';
import { stepsOf } from '../../../../src/judge/shell/steps.ts';
import { contextOf, HOME } from '../../../support/policy-world.ts';

/** Judged as where a kernel holds files, so that looking outside of the workspace is free. */
const isPlain = (line: string) => isPlainLine(contextOf(parseShell(line)), stepsOf(line));

describe('a line that is harmless wherever it runs', () => {
  it.each(['cat a.txt', 'cat src/main.rs', 'head a.txt', 'pwd'])('%s is one', (line) => {
    expect(isPlain(line)).toBe(true);
  });

  it.each([
    'cat ../x',
    'cat /etc/shadow',
    'cat somelink',
    'head ../../x',
    `cat ${HOME}/x`,
    'cat < /etc/shadow',
  ])('%s is none: where it runs nothing may hold what it reads', (line) => {
    expect(isPlain(line)).toBe(false);
  });
});
