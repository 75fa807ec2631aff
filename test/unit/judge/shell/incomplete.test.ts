import { describe, expect, it } from 'vitest';
import { isIncomplete } from '../../../../src/judge/shell/adapter/read-shell.ts';

describe('whether more has to be typed', () => {
  it.each([
    "echo 'a\n",
    'echo "a\n',
    'if true; then\n',
    'if true\n',
    'for i in a b\n',
    'f() {\n',
    'echo a |\n',
    'echo a &&\n',
    'echo \\\n',
    'echo $(ls\n',
    '(ls\n',
    'case x in\n',
    '[[ a\n',
    'cat <<E\n',
    "cat <<-'END'\n\tEND x\n",
    'cat <<A <<B\nA\n',
    'if true; then cat <<E; fi\nx\n',
  ])('%j: yes', (text) => expect(isIncomplete(text)).toBe(true));

  it.each([
    '',
    'echo a\n',
    'echo a\\\\\n',
    'echo )\n',
    'fi\n',
    'for i in a; do echo $i; done\n',
    'cat <<E\nx\nE\n',
    'cat <<-E\n\tx\n\tE\n',
    'cat <<<word\n',
    'echo "<<1 $?>>"\n',
    'echo $((1 << 2)) # <<E\n',
    `${'('.repeat(5000)}`,
  ])('%j: no', (text) => expect(isIncomplete(text)).toBe(false));
});
