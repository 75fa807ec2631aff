import { mkdirSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { BACKEND_IDS } from '../../src/base/words.ts';
import { createSandbox, type SandboxOptions } from '../../src/index.ts';
import type { HostFeatures } from '../../src/model/index.ts';
import { prepareSandbox } from '../../src/run/index.ts';
import { OF_THIS_PROCESS } from '../../src/workspace/index.ts';
import { CLI, cli, makePlace } from '../cli/support.ts';
import { USABLE } from './support.ts';

const workspace = mkdtempSync(join(realpathSync(tmpdir()), 'choice-'));
afterAll(() => rmSync(workspace, { recursive: true, force: true }));

const AWAY = { available: false, reason: 'taken away by a test' } as const;
const noLandlock = (host: HostFeatures): HostFeatures => ({
  ...host,
  landlock: AWAY,
  landlockAbi: 0,
  signalScope: false,
});
const noKernel = (host: HostFeatures): HostFeatures => ({ ...noLandlock(host), namespaces: AWAY });

/** The report of the backend that is chosen on such a host. */
async function chosen(options: SandboxOptions, asIf: (host: HostFeatures) => HostFeatures) {
  const prepared = await prepareSandbox({ workspace, policyFiles: false, ...options }, OF_THIS_PROCESS, asIf);
  prepared.confinement.close();
  return prepared.plan.report;
}
const refused = (code: string, ...parts: readonly string[]) => ({
  code,
  message: expect.stringMatching(new RegExp(`^[^\\n]*${parts.join('[^\\n]*')}[^\\n]*$`)),
});

describe('the ladder', () => {
  it('takes the first that can hold what the policy requires', async () => {
    const report = await chosen({}, (host) => host);
    const ids: readonly string[] = BACKEND_IDS;
    expect(report.backend).toBe(USABLE[0]);
    expect(report.passedOver.map(({ backend }) => backend)).toEqual(
      BACKEND_IDS.slice(0, ids.indexOf(report.backend)),
    );
  });

  it.runIf(USABLE.includes('namespaces'))('goes on where that one is missing, and says why', async () => {
    const report = await chosen({}, noLandlock);
    expect(report).toMatchObject({
      backend: 'namespaces',
      passedOver: [{ backend: 'landlock', reason: 'taken away by a test' }],
    });
  });

  it('does not go below the minimum of the policy', async () => {
    const policy = { sandbox: { minimum: 'landlock' } } as const;
    await expect(chosen({ policy }, noLandlock)).rejects.toMatchObject(
      refused('enforcement.unavailable', 'filesystem', 'taken away by a test', 'sandbox.minimum is landlock'),
    );
    await expect(chosen({ policy, backend: 'application' }, (host) => host)).rejects.toMatchObject(
      refused('backend.unavailable', 'application is weaker than landlock', 'sandbox.minimum'),
    );
  });

  it('does not go down to what cannot hold anything, unless somebody accepts that', async () => {
    const policy = { sandbox: { minimum: 'application' } } as const;
    // Firejail may be there, which holds more.
    const named = { backend: 'application' } as const;
    expect(await chosen({ ...named, policy }, noKernel)).toMatchObject({ backend: 'application' });
    expect(await chosen(named, noKernel)).toMatchObject({ backend: 'application' });
    const demand = { ...policy, demand: { filesystem: 'required' } } as const;
    await expect(chosen({ ...named, policy: demand }, noKernel)).rejects.toMatchObject(
      refused('enforcement.unavailable', 'filesystem'),
    );
  });

  it('never replaces a backend that was named', async () => {
    await expect(chosen({ backend: 'landlock' }, noLandlock)).rejects.toMatchObject(
      refused('backend.unavailable', 'the backend landlock cannot be used here: taken away by a test'),
    );
    await expect(chosen({ backend: 'namespaces' }, noKernel)).rejects.toMatchObject(
      refused('backend.unavailable', 'the backend namespaces cannot be used here'),
    );
  });

  it('lets a file of the workspace raise the minimum, and not lower it', async () => {
    const place = mkdtempSync(join(realpathSync(tmpdir()), 'choice-workspace-'));
    try {
      writeFileSync(join(place, '.sandbox-run.toml'), '[sandbox]\nminimum = "landlock"\n');
      const options = { workspace: place, policyFiles: true };
      await expect(chosen(options, noLandlock)).rejects.toMatchObject({ code: 'enforcement.unavailable' });
      writeFileSync(join(place, '.sandbox-run.toml'), '[sandbox]\nminimum = "application"\n');
      const policy = { sandbox: { minimum: 'landlock' } } as const;
      await expect(chosen({ ...options, policy }, noLandlock)).rejects.toMatchObject({
        code: 'enforcement.unavailable',
      });
      // Nor does it accept what the profile requires.
      await expect(chosen(options, (host) => ({ ...noKernel(host), seccomp: AWAY }))).rejects.toMatchObject({
        code: 'enforcement.unavailable',
      });
    } finally {
      rmSync(place, { recursive: true, force: true });
    }
  });

  it('takes no name that it does not know', async () => {
    await expect(createSandbox({ workspace, backend: 'docker' as 'landlock' })).rejects.toMatchObject(
      refused('usage.invalid', 'backend', 'landlock'),
    );
  });
});

const namespacesAreHere = USABLE.includes('namespaces');

describe('who runs a command learns what keeps it in', () => {
  const place = makePlace();
  afterAll(() => place.dispose());
  // An attacker who can write here could make it say anything.
  expect(CLI).toMatch(/\/dist\/cli\.cjs$/);

  it.runIf(namespacesAreHere)('once, on standard error, where that is not the strongest', async () => {
    const { stderr, stdout, exitCode } = await cli(place, ['--backend', 'namespaces', '--', 'pwd']);
    expect([exitCode, stdout]).toEqual([0, `${place.workspace}\n`]);
    expect(stderr).toMatch(/^sandbox-run: backend namespaces; not enforced: [^\n]*signals[^\n]*\n$/);
    expect((await cli(place, ['--backend', 'namespaces', '-q', '--', 'pwd'])).stderr).toBe('');
  });

  it.runIf(USABLE.includes('landlock'))('not where it is the strongest (from ABI 1)', async () => {
    expect((await cli(place, ['--backend', 'landlock', '--', 'pwd'])).stderr).toBe('');
  });

  it.runIf(namespacesAreHere)('in the result, and in the plan', async () => {
    const json = await cli(place, ['--backend', 'namespaces', '--json=full', '--', 'pwd']);
    expect(JSON.parse(json.stdout)).toMatchObject({ report: { backend: 'namespaces', passedOver: [] } });
    const plan = await cli(place, ['--backend', 'namespaces', '--dry-run', '--', 'pwd']);
    expect(plan.stdout).toContain('backend namespaces');
  });

  it.runIf(namespacesAreHere)('in the audit trail', async () => {
    const state = join(place.root, 'state');
    mkdirSync(state, { mode: 0o700 });
    const file = join(place.root, 'audit.toml');
    writeFileSync(file, '[audit]\nenabled = true\n', { mode: 0o600 });
    const env = { XDG_STATE_HOME: state };
    await cli(place, ['--backend', 'namespaces', '--policy', file, '-q', '--', 'pwd'], { env });
    const records = await cli(place, ['audit', 'search', '--json'], { env });
    expect(records.stdout).toContain('"backend":"namespaces"');
  });

  it('in one line when it cannot be used', async () => {
    const { exitCode, stderr } = await cli(place, ['--backend', 'nonsense', '--', 'pwd']);
    expect(exitCode).toBe(125);
    expect(stderr).toMatch(/landlock, namespaces, firejail, application/);
  });
});
