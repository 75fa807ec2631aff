import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { HOST } from '../support/tiers.ts';
import { AS_STRANGER, withMounts } from './support/mounts.ts';
import { expectHonest, expectRefused, makeWorld, ROOT } from './support/world.ts';

// Not in /tmp, which some of the hosts cover.
const world = makeWorld('/var/tmp');
const { root } = world;
for (const name of ['over', 'over/upper', 'over/work', 'elsewhere'])
  mkdirSync(join(root, name), { mode: 0o777 });

/** Lays an overlay over a directory of this world: what is written goes to a tmpfs. */
const overlay = (directory: string) =>
  `mount -t tmpfs none '${root}/over'
   mkdir -m 777 '${root}/over/upper' '${root}/over/work'
   mount -t overlay overlay -o 'lowerdir=${directory},upperdir=${root}/over/upper,workdir=${root}/over/work' '${directory}'
   chmod 777 '${directory}'`;

/** The checkout under test may lie in /tmp itself. */
const CHECKOUT = fileURLToPath(new URL('../..', import.meta.url));
const CHECKOUT_BACK = `[ -e '${CHECKOUT}' ] || { mkdir -p '${CHECKOUT}'; mount -c --bind /proc/self/fd/9 '${CHECKOUT}'; }; exec 9<&-`;

const HOSTS: readonly (readonly [name: string, mounts: string])[] = [
  ['/tmp on a tmpfs', `exec 9<'${CHECKOUT}'; mount -t tmpfs none /tmp; chmod 1777 /tmp; ${CHECKOUT_BACK}`],
  ['TMPDIR on a tmpfs', `mount -t tmpfs none '${root}/tmp'; chmod 777 '${root}/tmp'`],
  ['TMPDIR on an overlay', overlay(`${root}/tmp`)],
  ['home on an overlay', overlay(`${root}/home`)],
  ['the workspace on an overlay', overlay(world.workspace)],
  [
    'the workspace on a bind mount',
    `mount --bind '${root}/elsewhere' '${world.workspace}'; chmod 777 '${world.workspace}'`,
  ],
  [
    'a workspace with another mount inside',
    `mkdir -p '${world.workspace}/inner'; mount -t tmpfs none '${world.workspace}/inner'`,
  ],
  ['no /dev/shm that can be written', 'mount -t tmpfs -o ro none /dev/shm'],
];

// The mounts are made in a namespace.
describe.skipIf(!HOST.namespaces)(
  'file systems that are not where they usually are (needs namespaces)',
  () => {
    it.each(HOSTS)('%s: held in full', async (_, mounts) => {
      const answer = await world.attack({ host: withMounts(mounts) });
      expectHonest(answer);
      expect(answer).toMatchObject({ backend: 'landlock', tier: 'signal-scope' });
      expect(answer.states?.['filesystem-view']).toBe('enforced');
    });

    it.runIf(ROOT).each(HOSTS)('%s, as an ordinary user (needs to be started as root)', async (_, mounts) => {
      const answer = await world.attack({ host: withMounts(mounts, ...AS_STRANGER) });
      expectHonest(answer);
      expect(answer.backend).toBe('landlock');
    });
  },
);

describe.skipIf(!HOST.namespaces)('a read-only root (needs namespaces)', () => {
  const READ_ONLY = `mount --bind '${root}' '${root}'
    mount --make-rprivate /
    mount --bind / / 2>/dev/null || true
    mount -o remount,bind,ro /`;

  it('with a workspace, TMPDIR and home that can be written: held', async () => {
    // The mounts beneath stay as they are: only the root itself becomes read-only.
    const answer = await world.attack({ host: withMounts(READ_ONLY) });
    expectHonest(answer);
    expect(answer.backend).toBe('landlock');
  });

  it('with nothing that can be written: refused, and says what to make writable', async () => {
    const answer = await world.attack({
      host: withMounts(`mount --bind '${root}' '${root}'; mount -o remount,bind,ro '${root}'`),
    });
    expectRefused(answer, ['confinement.failed', 'state.unusable']);
    expect(answer.refused?.message).toMatch(/TMPDIR|XDG_STATE_HOME/);
  });

  it('with a workspace that cannot be written: the command runs, and its own writes fail', async () => {
    const answer = await world.attack({
      host: withMounts(
        `mount --bind '${world.workspace}' '${world.workspace}'; mount -o remount,bind,ro '${world.workspace}'`,
      ),
    });
    expect(answer.refused ?? answer.error).toBeUndefined();
    expect(answer.stdout).toMatch(/^started\n/);
    expect(answer.stdout).not.toContain('WORKED');
  });
});
