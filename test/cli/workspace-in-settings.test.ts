import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { cli, expectOneLine, makePlace } from './support.ts';

const place = makePlace();
afterAll(() => place.dispose());

const runIn = (directory: string) => {
  const workspace = join(place.root, 'home', directory);
  mkdirSync(workspace, { recursive: true });
  return cli(place, ['--workspace', workspace, '-c', 'echo ran'], { cwd: workspace });
};

// What lies in such a place is obeyed, so it cannot be what commands write.
describe('a workspace beneath the home directory', () => {
  it.each(['x/.git/modules/y', 'x/.windsurf/y', 'x/.github/hooks/y', '.emacs.d', 'x/.config/mise/y'])(
    'cannot be %s',
    async (directory) => {
      const { exitCode, stderr } = await runIn(directory);
      expect(exitCode).toBe(125);
      expectOneLine(stderr);
      expect(stderr).toMatch(/ lies in .*, from which something trusted runs or obeys files/);
    },
  );

  it.each(['src/mise', 'src/.github/y', 'src/agents', 'src/x.git/y', 'src/jj/repo'])(
    'can be %s, whose name is only like one of them',
    async (directory) => {
      expect(await runIn(directory)).toMatchObject({ exitCode: 0, stdout: 'ran\n' });
    },
  );
});
