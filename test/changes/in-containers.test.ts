import { existsSync, mkdirSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { execa } from 'execa';
import { afterAll, beforeEach, describe, expect, it } from 'vitest';
import { layersRefused } from '../../src/run/index.ts';
import { CLI, expectOneLine, makePlace } from '../cli/support.ts';
import { withMounts } from '../hosts/support/mounts.ts';
import { buildOuterFilter } from '../hosts/support/outer-filter.ts';
import { HOST } from '../support/tiers.ts';

const filter = buildOuterFilter();
const place = makePlace();
const state = join(place.root, 'state');
mkdirSync(join(place.root, 'over'));
mkdirSync(state);

/** As the root of a container: an overlay, beneath which the state directory is. */
const onOverlay = withMounts(`mount -t tmpfs none ${place.root}/over
mkdir ${place.root}/over/upper ${place.root}/over/work
mount -t overlay none -o lowerdir=${state},upperdir=${place.root}/over/upper,workdir=${place.root}/over/work ${state}`);

/** Containers in which nothing can be held back: what is before a command there, and why it is not. */
const CONTAINERS = [
  {
    // In Docker itself these calls are refused a second time.
    name: 'by its default profile',
    before: filter({ 'clone[0&0x7e020000]': 'EPERM', unshare: 'EPERM', clone3: 'ENOSYS' }),
    preview: /a preview needs a mount namespace of ours \(this host refuses namespaces \(.+\)\)/,
    undo: 'it needs namespaces (see sandbox-run doctor)',
  },
  ...(HOST.namespaces
    ? [
        {
          name: 'that grants namespaces, with its state on an overlay',
          before: onOverlay,
          preview:
            /a preview needs a layer: the state directory \S+ lies on overlayfs, as in containers; set XDG_STATE_HOME to a place on a volume or a tmpfs/,
          undo: `the state directory ${state}/sandbox-run lies on overlayfs, as in containers; set XDG_STATE_HOME to a place on a volume or a tmpfs`,
        },
      ]
    : []),
];

afterAll(() => place.dispose());

describe.each(CONTAINERS)('nothing can be held back in a container $name', ({ before, ...why }) => {
  const config = join(place.root, 'judged');
  beforeEach(() => {
    for (const name of readdirSync(place.workspace)) rmSync(join(place.workspace, name));
  });

  const policy = (text: string) => {
    mkdirSync(join(config, 'sandbox-run'), { recursive: true });
    writeFileSync(join(config, 'sandbox-run/policy.toml'), text);
  };
  const run = async (...args: readonly string[]) => {
    const [program = '', ...words] = before;
    const env = { ...place.env, XDG_CONFIG_HOME: config, XDG_STATE_HOME: state };
    const { exitCode, stdout, stderr } = await execa(program, [...words, process.execPath, CLI, ...args], {
      ...{ cwd: place.workspace, env, extendEnv: false },
      ...{ reject: false, stdin: 'ignore', stripFinalNewline: false },
    });
    return { exitCode, stdout, stderr };
  };

  it('--preview runs nothing, and says in one line why and what helps', async () => {
    policy('');
    const { exitCode, stdout, stderr } = await run('--preview', '-c', 'touch made');
    expect([exitCode, stdout]).toEqual([126, '']);
    expectOneLine(stderr);
    expect(readdirSync(place.workspace)).toEqual([]);
    expect(stderr).toMatch(why.preview);
    expect(stderr).toMatch(
      /^sandbox-run: changes cannot be held back: .*; a copy of the workspace serves the same end\n$/,
    );
  });

  it('a rule with effect = "preview" asks', async () => {
    policy('[[commands.rules]]\nprogram = "touch"\neffect = "preview"\n');
    const { exitCode, stderr } = await run('-c', 'touch made');
    expect(exitCode).toBe(126);
    expectOneLine(stderr);
    expect(readdirSync(place.workspace)).toEqual([]);
    expect(stderr).toContain('a rule of the policy previews touch, which is not possible here');
    const checked = await run('check', '--json', 'touch', 'made');
    expect(JSON.parse(checked.stdout)).toMatchObject({ verdict: 'ask' });
  });

  it('with workspace.undo commands work, with a line that says that nothing is kept', async () => {
    policy('[workspace]\nundo = "always"\n');
    const { exitCode, stdout, stderr } = await run('-c', 'echo x > made; cat made; rm made');
    expect([exitCode, stdout]).toEqual([0, 'x\n']);
    expect(stderr).toBe(
      `sandbox-run: warning: workspace.undo has no effect here, because ${why.undo}: what commands change cannot be taken back\n`,
    );
    expect(await run('history')).toMatchObject({
      exitCode: 0,
      stdout: expect.stringMatching(/^nothing can be taken back here: .*\n$/),
    });
    const undone = await run('undo');
    expect(undone.exitCode).toBe(125);
    expectOneLine(undone.stderr);
  });

  it('what nobody can take back is asked about, whatever the policy says of undo', async () => {
    policy('[workspace]\nundo = "always"\n');
    writeFileSync(join(place.workspace, 'notes'), 'mine');
    const { exitCode, stderr } = await run('rm', '-rf', 'notes');
    expect([exitCode, existsSync(join(place.workspace, 'notes'))]).toEqual([126, true]);
    expect(stderr).toContain('rm would delete notes');
    expect((await run('--approved', 'rm', '-rf', 'notes')).exitCode).toBe(0);
  });

  it('the report has the control off, with the reason', async () => {
    policy('[workspace]\nundo = "always"\n');
    const { controls } = JSON.parse((await run('doctor', '--json')).stdout);
    const control = controls.find(({ id }: { readonly id: string }) => id === 'workspace-changes');
    expect(control.state).toBe('off');
    expect(control.reason).toMatch(/^commands change the workspace at once; a preview needs/);
    expect(control.reason).toMatch(why.preview);
  });
});

describe('a kernel whose overlayfs no namespace of ours mounts', () => {
  it.each(['4.19.0-27-amd64', '5.10.0-28-amd64', '5.4.0'])('%s is known before anything runs', (kernel) => {
    expect(layersRefused(kernel)).toBe(`overlayfs in a namespace needs Linux 5.11, and this is ${kernel}`);
  });
  it.each(['5.11.0', '5.15.0-91-generic', '6.1.0-rc1', '10.2'])('%s is none', (kernel) => {
    expect(layersRefused(kernel) ?? '').not.toContain('needs Linux');
  });
});
