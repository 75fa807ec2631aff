import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { makeArena, snapshot } from '../support/arena.ts';
import { compile, confined, unconfined, worked } from '../support/sandboxee.ts';
import { OLDEST_TIERS, stateOf, TIERS } from '../support/tiers.ts';

const changer = compile(
  'change-metadata',
  `
  #include <sys/time.h>
  #include <sys/xattr.h>
  int main(int argc, char **argv) {
    const char *file = argv[1];
    int fd = open(file, O_PATH);
    char magic[64];
    sprintf(magic, "/proc/self/fd/%d", fd);
    TRY("chmod", chmod(file, 0640));
    TRY("fchmodat", fchmodat(AT_FDCWD, file, 0644, 0));
    TRY("chmod-magic-link", fd < 0 ? -1 : chmod(magic, 0660));
    TRY("chown", chown(file, getuid(), getgid()));
    TRY("lchown", lchown(file, getuid(), getgid()));
    TRY("utimes", utimes(file, (struct timeval[2]){{1}, {1}}));
    TRY("utimensat-now", utimensat(AT_FDCWD, file, 0, 0));
    TRY("setxattr", setxattr(file, "user.enforcement", "x", 1, 0));
    TRY("removexattr", removexattr(file, "user.enforcement"));
    return 0;
  }`,
);

describe('changing mode, owner, times and attributes outside', () => {
  const arena = makeArena();
  const file = (name: string) => {
    const path = join(arena.outside, name);
    writeFileSync(path, 'x', { mode: 0o600 });
    return path;
  };

  it('works without a sandbox', async () => {
    const trace = await unconfined([changer, file('free')]);
    expect(worked(trace)).toEqual(
      expect.arrayContaining(['chmod', 'fchmodat', 'chown', 'utimes', 'utimensat-now']),
    );
  });

  describe.each([...TIERS, ...OLDEST_TIERS])('$name', (tier) => {
    it('fails with a view, also on what can be read; without one the report says that it does not', async () => {
      const sandbox = await arena.sandbox(tier, { readable: [arena.outside] });
      const hidden = await arena.sandbox(tier);
      const path = file(`confined-${tier.landlockAbi}-${tier.view}`);
      const before = snapshot(path);
      const traces = [await confined(sandbox, [changer, path]), await confined(hidden, [changer, path])];
      if (stateOf(sandbox, 'metadata') === 'enforced') {
        expect(traces.map(worked)).toEqual([[], []]);
        expect(snapshot(path)).toEqual(before);
      }
      expect(stateOf(sandbox, 'metadata')).toBe(tier.view ? 'enforced' : 'unsupported');
    });

    it('works inside the workspace', async () => {
      const sandbox = await arena.sandbox(tier);
      const path = join(arena.workspace, `own-${tier.landlockAbi}-${tier.view}`);
      writeFileSync(path, 'x');
      const trace = await confined(sandbox, [changer, path]);
      expect(worked(trace)).toEqual(
        expect.arrayContaining(['chmod', 'fchmodat', 'chown', 'utimes', 'utimensat-now']),
      );
    });
  });
});
