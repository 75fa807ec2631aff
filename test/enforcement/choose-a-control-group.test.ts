import { mkdirSync, readFileSync, rmdirSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { makeArena } from '../support/arena.ts';
import { compile, confined, unconfined, worked } from '../support/sandboxee.ts';
import { OLDER_TIERS, TIERS } from '../support/tiers.ts';

/** A group that this user may make; `undefined`: where there are none, or they are root's. */
const group = makeGroup();
afterAll(() => {
  if (group !== undefined) rmdirSync(group);
});

function makeGroup(): string | undefined {
  const mounts = readFileSync('/proc/self/mountinfo', 'utf8').split('\n');
  // A group of v1 may have to be told more before a process can be there.
  for (const line of [/ - cgroup2 /, / - cgroup /].flatMap((type) =>
    mounts.filter((one) => type.test(one)),
  )) {
    const path = join(line.split(' ')[4] ?? '', `sandbox-run-attack-${process.pid}`);
    try {
      mkdirSync(path);
      return path;
    } catch {}
  }
  return undefined;
}

const chooser = compile(
  'choose-a-control-group',
  `
  int put(const char *group, const char *file, const char *text) {
    char path[4096];
    sprintf(path, "%s/%s", group, file);
    int fd = open(path, O_WRONLY);
    return fd < 0 ? -1 : write(fd, text, strlen(text)) < 0 ? -1 : 0;
  }
  int main(int argc, char **argv) {
    char inner[4096];
    sprintf(inner, "%s/inner", argv[1]);
    TRY("make", mkdir(inner, 0700));
    rmdir(inner);
    TRY("move", put(argv[1], "cgroup.procs", "0"));
    // Back to where it was, by the way through the root directory of another process.
    sprintf(inner, "/proc/%d/root%s/..", getppid(), argv[1]);
    TRY("move-back", put(inner, "cgroup.procs", "0"));
    return 0;
  }`,
);
const ALL = ['make', 'move', 'move-back'];

// A warm server takes callers by their control groups, so a command must not choose its own.
describe.runIf(group !== undefined)('a control group of the command’s choice', () => {
  const arena = makeArena('/tmp');

  it('can be chosen without a sandbox', async () => {
    expect(worked(await unconfined([chooser, group ?? '']))).toEqual(ALL);
  });

  it.each([...TIERS, ...OLDER_TIERS])('cannot be chosen: $name', async (tier) => {
    const trace = await confined(await arena.sandbox(tier), [chooser, group ?? '']);
    expect(Object.keys(trace.results)).toEqual(ALL);
    expect(worked(trace)).toEqual([]);
  });
});
