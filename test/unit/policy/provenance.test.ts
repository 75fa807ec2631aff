import { describe, expect, it } from 'vitest';
import { effectivePolicy, type PolicyOptions } from '../../../src/policy/effective.ts';
import { parsePolicy } from '../../../src/policy/load.ts';
import { type LayerName, mergeLayers, type PolicyLayer } from '../../../src/policy/merge.ts';
import { narrowPolicy } from '../../../src/policy/narrow.ts';
import { explainPolicy } from '../../../src/policy/provenance.ts';
import type { WorkspaceFile } from '../../../src/policy/schema.ts';
import { weakenings } from '../../../src/policy/settings.ts';

const layer = async (name: LayerName, text: string): Promise<PolicyLayer> => ({
  name,
  path: `/${name}.toml`,
  text,
  file: await parsePolicy(text, name),
});

function explain(
  layers: readonly PolicyLayer[],
  options: PolicyOptions = {},
  workspace: { readonly file: WorkspaceFile; readonly text: string } = { file: {}, text: '' },
) {
  const operators = effectivePolicy({ ...options, file: mergeLayers(layers) }, '/w', '/h');
  const values = explainPolicy({
    base: effectivePolicy({ profile: operators.profile }, '/w', '/h'),
    layers,
    operators,
    narrowed: narrowPolicy(operators, workspace.file),
    workspaceFile: { path: '/w/.sandbox-run.toml', text: workspace.text },
  });
  return (key: string) =>
    values
      .filter((value) => value.key === key)
      .map(({ value, source }) =>
        [JSON.stringify(value), source.layer, source.path, source.line]
          .filter((part) => part !== undefined)
          .join(' '),
      );
}

describe('where a value comes from', () => {
  it('is the profile if nobody says anything', () => {
    const of = explain([]);
    expect(of('security.autonomy')).toEqual(['"contained" profile']);
    expect(of('limits.timeout_seconds')).toEqual(['60 profile']);
    expect(of('demand.network')).toEqual(['"required" profile']);
    expect(of('environment.pass')[0]).toBe('"PATH" profile');
  });

  it('is the last file that says it, with the line', async () => {
    const of = explain([
      await layer('system', '[security]\nautonomy = "readonly"\nmax_actions_per_hour = 9'),
      await layer('user', '\n[security]\nautonomy = "autonomous"\n[environment.set]\nA = "1"'),
    ]);
    expect(of('security.autonomy')).toEqual(['"autonomous" user /user.toml 3']);
    expect(of('security.max_actions_per_hour')).toEqual(['9 system /system.toml 3']);
    expect(of('environment.set.A')).toEqual(['"1" user /user.toml 5']);
  });

  it('is the file of a reviewer, which is a table of its own', async () => {
    const of = explain([await layer('system', '[reviewer]\ncommand = ["/usr/bin/look"]')]);
    expect(of('reviewer')).toEqual(['{"kind":"command","argv":["/usr/bin/look"]} system /system.toml 2']);
    expect(explain([])('reviewer')).toEqual(['profile']);
  });

  it('is told item by item for lists that add up', async () => {
    const of = explain(
      [
        await layer('system', '[filesystem]\nread = [\n"/a",\n"/b"]'),
        await layer('option', '[filesystem]\nread = ["/c"]\nprotect = ["p"]'),
      ],
      { passEnvironment: ['FOO'] },
      { file: { filesystem: { protect: ['q'] } }, text: '[filesystem]\nprotect = ["q"]' },
    );
    expect(of('filesystem.read')).toEqual([
      '"/a" system /system.toml 3',
      '"/b" system /system.toml 4',
      '"/c" option /option.toml 2',
    ]);
    expect(of('filesystem.protect').slice(-2)).toEqual([
      '"p" option /option.toml 3',
      '"q" workspace /w/.sandbox-run.toml 2',
    ]);
    expect(of('environment.pass').at(-1)).toBe('"FOO" caller');
  });

  it('is the caller, or the workspace that narrows', async () => {
    const file = await layer('user', '[limits]\ntimeout_seconds = 30');
    const of = explain(
      [file],
      { timeoutMs: 20_000, autonomy: 'autonomous' },
      { file: { security: { autonomy: 'readonly' } }, text: '[security]\nautonomy = "readonly"' },
    );
    expect(of('limits.timeout_seconds')).toEqual(['20 caller']);
    expect(of('security.autonomy')).toEqual(['"readonly" workspace /w/.sandbox-run.toml 2']);
  });
});

describe('what is weaker than the default', () => {
  const standard = effectivePolicy({}, '/w', '/h');
  const of = async (text: string, profile?: string) =>
    weakenings(effectivePolicy({ profile, file: await parsePolicy(text, 'p') }, '/w', '/h'), standard).map(
      ({ key }) => key,
    );

  it.each([
    ['', []],
    ['[unsafe]\nunjudged_commands = true', ['unsafe.unjudged_commands']],
    ['[security]\nautonomy = "autonomous"', ['security.autonomy']],
    ['[security]\nautonomy = "readonly"', []],
    ['[commands]\npermit_dangerous = ["docker"]', ['commands.permit_dangerous']],
    ['[network]\nmode = "open"\nunix_sockets = "allowed"', ['network.mode', 'network.unix_sockets']],
    ['[filesystem]\ntmp = "host"\nhome = "host"', ['filesystem.tmp', 'filesystem.home']],
    ['[demand]\nnetwork = "best-effort"', ['demand']],
    ['[demand]\nsignals = "required"', []],
  ])('%j: %j', async (text, keys) => {
    expect(await of(text)).toEqual(keys);
  });

  it('counts the profile as well', async () => {
    expect(await of('', 'networked')).toEqual(['network.mode']);
  });
});
