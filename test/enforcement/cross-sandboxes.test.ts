import { mkdirSync, readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { makeArena } from '../support/arena.ts';
import { SLOW_HOST } from '../support/slow-host.ts';
import { sandboxIn, TIERS } from '../support/tiers.ts';

const COUNT = SLOW_HOST ? 5 : 20;

describe('reaching from one sandbox into another', () => {
  const arena = makeArena();

  it.each(TIERS)(`fails among ${COUNT} at once: $name`, async (tier) => {
    const names = Array.from({ length: COUNT }, (_, index) => `tier-${TIERS.indexOf(tier)}-${index}`);
    const sandboxes = await Promise.all(
      names.map((name) => {
        const workspace = join(arena.root, name);
        mkdirSync(workspace);
        writeFileSync(join(workspace, 'mine'), name);
        return sandboxIn(tier, { workspace, env: { NAME: name } });
      }),
    );
    const attack = `
      cat mine; echo " $NAME"
      echo "$NAME" > written-$$; echo "$NAME" > "$TMPDIR/note"; echo "$NAME" > "$HOME/note"
      for other in ../*/; do
        # By the shell itself: forty of them with twenty programs each take minutes on a busy machine.
        [ "$other" = "../$NAME/" ] || { read -r theirs < "$other/mine" && echo "$theirs"; echo x > "$other/stray"; } 2>/dev/null
      done
      sleep 0.05
      cat "$TMPDIR/note" "$HOME/note" written-$$
    `;
    const results = await Promise.all(
      sandboxes.flatMap((sandbox) => [sandbox.run(attack), sandbox.run(attack)]),
    );
    results.forEach((result, index) => {
      const name = names[Math.floor(index / 2)];
      expect([result.stdout, result.status]).toEqual([
        `${name} ${name}\n${name}\n${name}\n${name}\n`,
        'exited',
      ]);
      expect(result.cwd).toBe(join(arena.root, name ?? ''));
    });
    // A file of its own for each of the two commands: one that is written anew is empty for a moment.
    for (const name of names) {
      const found = readdirSync(join(arena.root, name)).map((file) => file.replace(/\d+$/, 'N'));
      expect(found.sort()).toEqual(['mine', 'written-N', 'written-N']);
    }
    await Promise.all(sandboxes.map((sandbox) => sandbox.close()));
  });

  it.each(TIERS)('a closed sandbox runs nothing: $name', async (tier) => {
    const sandbox = await sandboxIn(tier, { workspace: arena.workspace });
    await sandbox.close();
    await expect(sandbox.run('echo ran')).rejects.toMatchObject({ code: 'sandbox.closed' });
  });
});
