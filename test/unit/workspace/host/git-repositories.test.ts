import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { obeyedByGit } from '../../../../src/workspace/host/git/repositories.ts';
import { createPathLookup } from '../../../../src/workspace/host/resolve-path.ts';

let workspace: string;
beforeEach(() => {
  workspace = mkdtempSync(join(tmpdir(), 'git-repositories-'));
});
afterEach(() => rmSync(workspace, { recursive: true }));

/** What is found with this configuration of the user. */
function obeyed(config: string): readonly string[] {
  const file = join(workspace, 'of-the-user');
  writeFileSync(file, config);
  const around = {
    workspace,
    roots: [workspace],
    home: workspace,
    configFiles: [file],
    lookup: createPathLookup(),
  };
  const repository = { path: join(workspace, '.git'), worktree: workspace };
  return obeyedByGit({ directories: [repository], links: [] }, around).map(({ path }) =>
    path.slice(workspace.length + 1),
  );
}

it('what the user’s configuration names in the workspace is found', () => {
  expect(obeyed('[core]\n\thooksPath = hooks-of-mine\n')).toContain('hooks-of-mine');
});

it('a configuration that git reads and we do not is refused, not taken for none', () => {
  const large = `[core]\n\thooksPath = hooks-of-mine\n#${'x'.repeat(1024 * 1024)}\n`;
  expect(() => obeyed(large)).toThrow(/too large/);
});
