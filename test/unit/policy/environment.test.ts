import { describe, expect, it } from 'vitest';
import { looksSecret } from '../../../src/base/secret-name.ts';
import { POLICY_KEYS } from '../../../src/model/index.ts';
import { buildEnvironment } from '../../../src/policy/environment.ts';
import { PROFILES } from '../../../src/policy/profiles/built-in.ts';
import { policyOf } from '../../support/policy-of.ts';

describe('profiles', () => {
  it.each(PROFILES.map(({ name }) => [name, policyOf({ profile: name }).environment.pass] as const))(
    '%s pass no name that looks like a secret',
    (_, pass) => {
      expect(pass.filter(looksSecret)).toEqual([]);
    },
  );
});

describe('buildEnvironment', () => {
  const host = {
    PATH: '/bin',
    LANG: 'C',
    LC_ALL: 'C',
    LC_TIME: 'x',
    LC_TOKEN: 'secret',
    API_KEY: 'k',
    UNSET: undefined,
  };
  const variables = (pass: string[], set = {}) => buildEnvironment(host, pass, set).variables;

  it('passes the named ones only', () => {
    expect(variables(['LANG', 'MISSING', 'UNSET'])).toEqual({
      PATH: '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin',
      LANG: 'C',
    });
  });

  it('has a PATH even if none is passed, and the passed one if it is', () => {
    expect(variables([]).PATH).toMatch(/(^|:)\/usr\/bin(:|$)/);
    expect(variables(['PATH']).PATH).toBe('/bin');
  });

  it('matches any rest by a trailing star, but never what looks like a secret', () => {
    expect(variables(['PATH', 'LC_*'])).toEqual({ PATH: '/bin', LC_ALL: 'C', LC_TIME: 'x' });
    const all = buildEnvironment(host, ['*'], {});
    expect(all.variables).toEqual({ PATH: '/bin', LANG: 'C', LC_ALL: 'C', LC_TIME: 'x' });
    expect(all.warnings).toEqual([]);
  });

  it('passes a secret by its exact name, with a warning', () => {
    const built = buildEnvironment(host, ['API_KEY', 'MY_TOKEN'], {});
    expect(built.variables.API_KEY).toBe('k');
    expect(built.warnings).toEqual([expect.stringContaining('API_KEY')]);
    expect(built.warnings.join()).not.toContain('k,');
  });

  it.each([
    ['CI', ['CI']],
    ['TERM', [...POLICY_KEYS.environment.pass.default]],
    ['MY_FLAVOUR', ['MY_*']],
  ])('leaves out %s if its value is a known kind of token, and says so', (name, pass) => {
    const key = 'ghp_c3VwZXJzZWNyZXQxMjM0NTY3ODkwMTIzNDU2';
    for (const value of [
      key,
      `-----BEGIN PRIVATE KEY-----\n${'MIIEvQ'.repeat(9)}\n-----END PRIVATE KEY-----`,
    ]) {
      const built = buildEnvironment({ ...host, [name]: value }, pass, {});
      expect(built.variables[name]).toBeUndefined();
      expect(built.warnings).toEqual([
        `${name} stays outside, as its value looks like a secret: commands run without it`,
      ]);
    }
    expect(buildEnvironment({ [name]: 'true' }, pass, {})).toMatchObject({
      variables: { [name]: 'true' },
      warnings: [],
    });
    expect(buildEnvironment({ [name]: key }, pass, { [name]: 'set' })).toMatchObject({
      variables: { [name]: 'set' },
      warnings: [],
    });
  });

  it('passes such a value by a name that somebody listed, with a warning, and directories of programs', () => {
    const key = 'ghp_c3VwZXJzZWNyZXQxMjM0NTY3ODkwMTIzNDU2';
    const built = buildEnvironment(
      { LOGIN: key, PATH: '/opt/sk-learn-environment/bin' },
      ['PATH', 'LOGIN'],
      {},
    );
    expect(built.variables).toEqual({ LOGIN: key, PATH: '/opt/sk-learn-environment/bin' });
    expect(built.warnings).toEqual([expect.stringContaining('can read LOGIN')]);
  });

  it('sets values on top of what is passed, without a warning', () => {
    expect(buildEnvironment(host, ['LANG'], { LANG: 'de', MY_TOKEN: 't' })).toMatchObject({
      variables: { LANG: 'de', MY_TOKEN: 't' },
      warnings: [],
    });
  });
});
