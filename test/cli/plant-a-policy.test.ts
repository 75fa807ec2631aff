import { existsSync, linkSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { cli, expectOneLine, makePlace, type Place } from './support.ts';

const PLANTED = '[security]\nautonomy = "autonomous"\n';

/** Where a policy would be obeyed, and how the launcher is told. `P` is what the command writes. */
interface SetUp {
  readonly env?: Readonly<Record<string, string>>;
  readonly args?: readonly string[];
  /** In the workspace. */
  readonly planted: string;
}

// A first run writes a policy where the second one looks for it: the second must not obey.
describe('a policy that a command planted', () => {
  let place: Place;
  beforeEach(() => {
    place = makePlace();
    mkdirSync(join(place.root, 'home'));
  });
  afterEach(() => place.dispose());

  const inWorkspace = (...names: readonly string[]) => join(place.workspace, ...names);
  const outside = (...names: readonly string[]) => join(place.root, ...names);

  async function plantAndLook({ env = {}, args = [], planted }: SetUp) {
    const here = { XDG_CONFIG_HOME: outside('none'), XDG_STATE_HOME: outside('state'), ...env };
    const write = `mkdir -p "$(dirname '${planted}')"; rm -f '${planted}'; printf '%s' '${PLANTED}' > '${planted}'; chmod 600 '${planted}'; true`;
    const first = await cli(place, ['--autonomy', 'autonomous', ...args, '-c', write], { env: here });
    const second = await cli(place, ['policy', 'show', ...args], { env: here });
    return { first, second };
  }

  async function expectRefused(setUp: SetUp, because: RegExp) {
    const { first, second } = await plantAndLook(setUp);
    expect(first.exitCode).toBe(125);
    expectOneLine(first.stderr);
    expect(first.stderr).toMatch(because);
    expect(existsSync(inWorkspace(setUp.planted))).toBe(false);
    expect(second.stdout).not.toContain('autonomy = "autonomous"');
  }

  it('is obeyed where nothing looks after it (control)', async () => {
    // The command writes, and what it wrote is a policy that would be obeyed.
    const { first, second } = await plantAndLook({ planted: 'p/sandbox-run/policy.toml' });
    expect(first.exitCode).toBe(0);
    expect(second.stdout).not.toContain('autonomy = "autonomous"');
    const obeyed = await cli(place, ['policy', 'show'], { env: { XDG_CONFIG_HOME: inWorkspace('p') } });
    expect(obeyed.stdout).toContain('autonomy = "autonomous"');
  });

  it('in a settings directory of the workspace that was not there', () =>
    expectRefused(
      { env: { XDG_CONFIG_HOME: inWorkspace('conf') }, planted: 'conf/sandbox-run/policy.toml' },
      /reach .*\/conf\/sandbox-run.* because (?:it is not there yet and they can write .*\/work,|.*refuses the namespaces)/,
    ));

  it('in one of which only the parent was there', async () => {
    mkdirSync(inWorkspace('conf'));
    await expectRefused(
      { env: { XDG_CONFIG_HOME: inWorkspace('conf') }, planted: 'conf/sandbox-run/policy.toml' },
      /not there yet|refuses the namespaces/,
    );
  });

  it('behind a link outside that leads to nothing yet', async () => {
    symlinkSync(inWorkspace('real'), outside('link'));
    await expectRefused(
      { env: { XDG_CONFIG_HOME: outside('link') }, planted: 'real/sandbox-run/policy.toml' },
      /not there yet|refuses the namespaces/,
    );
  });

  it('behind a link in the workspace', async () => {
    symlinkSync(outside('elsewhere'), inWorkspace('link'));
    await expectRefused(
      { env: { XDG_CONFIG_HOME: inWorkspace('link') }, planted: 'link/sandbox-run/policy.toml' },
      /by way of the link/,
    );
  });

  it('where the policy file itself is a link to nothing yet', async () => {
    mkdirSync(outside('home/.config/sandbox-run'), { recursive: true });
    symlinkSync(inWorkspace('policy.toml'), outside('home/.config/sandbox-run/policy.toml'));
    await expectRefused(
      { env: { XDG_CONFIG_HOME: outside('home/.config') }, planted: 'policy.toml' },
      /change the policy .*\/policy\.toml because (?:it is not there yet|.*refuses the namespaces)/,
    );
  });

  it.each([
    ['in the workspace', (workspace: string) => join(workspace, 'h')],
    ['a link that leads there', (workspace: string) => join(workspace, '../home-link')],
  ])('in a home directory %s, there or not', async (_, homeOf) => {
    const HOME = homeOf(place.workspace);
    symlinkSync(inWorkspace('h'), outside('home-link'));
    // All else is outside, so that the home directory alone counts.
    const env = { HOME, XDG_CONFIG_HOME: outside('none') };
    await expectRefused({ env, planted: 'h/.bashrc' }, /holds the whole home directory/);
    mkdirSync(inWorkspace('h'));
    await expectRefused({ env, planted: 'h/.bashrc' }, /holds the whole home directory/);
  });

  describe('named with --policy', () => {
    const named = () => inWorkspace('settings/p.toml');
    const args = () => ['--policy', named()];
    const mine = '[limits]\nprocesses = 99\n';

    it('that was not there', () =>
      expectRefused({ args: args(), planted: 'settings/p.toml' }, /settings\/p\.toml/));

    it('in place of the one that is there', async () => {
      mkdirSync(inWorkspace('settings'));
      writeFileSync(named(), mine, { mode: 0o600 });
      const { second } = await plantAndLook({ args: args(), planted: 'settings/p.toml' });
      expect(readFileSync(named(), 'utf8')).toBe(mine);
      expect(second.stdout).not.toContain('autonomy = "autonomous"');
    });

    it('into the one that is there, by another name of it', async () => {
      mkdirSync(inWorkspace('settings'));
      writeFileSync(named(), mine, { mode: 0o600 });
      linkSync(named(), inWorkspace('alias'));
      const wrote = await cli(place, [...args(), '-c', `printf '%s' '${PLANTED}' > alias`], {
        env: { XDG_CONFIG_HOME: outside('none') },
      });
      expect(wrote.exitCode).toBe(125);
      expectOneLine(wrote.stderr);
      expect(readFileSync(named(), 'utf8')).toBe(mine);
    });
  });
});
