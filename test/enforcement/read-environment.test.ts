import { existsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { makeArena, SECRET } from '../support/arena.ts';
import { compile, unconfined } from '../support/sandboxee.ts';
import { stateOf, TIERS } from '../support/tiers.ts';

const preload = compile(
  'preload.so',
  `__attribute__((constructor)) static void planted() { write(2, "planted\\n", 8); }`,
  ['-shared', '-fPIC'],
);

describe('taking secrets from the environment, or code through it', () => {
  const arena = makeArena();
  const startup = join(arena.workspace, 'startup.sh');
  const marker = join(arena.workspace, 'marker');
  writeFileSync(startup, `: > "${marker}"\n`);
  writeFileSync(join(arena.workspace, 'sitecustomize.py'), `open(${JSON.stringify(marker)}, 'w')\n`);
  writeFileSync(
    join(arena.workspace, 'preload.cjs'),
    `require('node:fs').writeFileSync(${JSON.stringify(marker)}, '')\n`,
  );

  const SECRETS = {
    FOO_TOKEN: SECRET,
    AWS_SECRET_ACCESS_KEY: SECRET,
    AWS_SESSION_TOKEN: SECRET,
    GITHUB_TOKEN: SECRET,
    DATABASE_URL: `postgres://u:${SECRET}@h/`,
    SSH_AUTH_SOCK: `/tmp/${SECRET}`,
    npm_config__auth: SECRET,
    UNSUSPICIOUS: SECRET,
  };
  const CODE = {
    BASH_ENV: startup,
    ENV: startup,
    'BASH_FUNC_ls%%': `() { : > "${marker}"; }`,
    PROMPT_COMMAND: `: > "${marker}"`,
    LD_PRELOAD: preload,
    LD_LIBRARY_PATH: arena.workspace,
    LD_AUDIT: preload,
    NODE_OPTIONS: `--require ${join(arena.workspace, 'preload.cjs')}`,
    PYTHONPATH: arena.workspace,
    PYTHONSTARTUP: join(arena.workspace, 'sitecustomize.py'),
    PERL5OPT: '-Mfoo',
    RUBYOPT: '-rfoo',
    GIT_SSH_COMMAND: startup,
    GIT_CONFIG_COUNT: '0',
    IFS: '/',
    SHELLOPTS: 'xtrace',
    BASHOPTS: 'extdebug',
    PS4: '$(id)',
  };
  const before = { ...process.env };
  Object.assign(process.env, SECRETS, CODE);
  afterAll(() => {
    for (const name of Object.keys({ ...SECRETS, ...CODE })) delete process.env[name];
    Object.assign(process.env, before);
  });

  it('works without a sandbox', async () => {
    const trace = await unconfined(['/bin/bash', '-c', 'env'], {
      env: { ...before, ...SECRETS, BASH_ENV: startup, LD_PRELOAD: preload },
    });
    expect(trace.stdout).toContain(SECRET);
    expect(trace.stderr).toContain('planted');
    expect(existsSync(marker)).toBe(true);
    const { rmSync } = await import('node:fs');
    rmSync(marker);
  });

  describe.each(TIERS)('$name', (tier) => {
    it('fails', async () => {
      const sandbox = await arena.sandbox(tier);
      const result = await sandbox.run(
        'ls / >&2; env -0 | tr "\\0" "\\n"; cat /proc/self/environ /proc/$PPID/environ; tr "\\0" "\\n" < /proc/$$/environ; node -e 0; python3 -c 0; sh -c :',
      );
      expect(result.stdout).not.toContain(SECRET);
      expect(result.stderr).not.toContain('planted');
      expect(existsSync(marker)).toBe(false);
      const names = result.stdout.split('\n').flatMap((line) => /^([^=]+)=/.exec(line)?.[1] ?? []);
      expect(names.filter((name) => Object.hasOwn({ ...SECRETS, ...CODE }, name))).toEqual([]);
      expect(stateOf(sandbox, 'environment')).toBe('enforced');
    });

    it('a pattern passes no names that look like secrets', async () => {
      const sandbox = await arena.sandbox(tier, { passEnv: ['AWS_*', 'UNSUS*'] });
      const result = await sandbox.run(['/usr/bin/env']);
      expect(result.stdout).not.toMatch(/^AWS_SE/m);
      expect(result.stdout).toContain(`UNSUSPICIOUS=${SECRET}`);
    });

    it('a secret passed by name comes with a warning', async () => {
      const sandbox = await arena.sandbox(tier, { passEnv: ['FOO_TOKEN'] });
      const result = await sandbox.run(['/usr/bin/env']);
      expect(result.stdout).toContain(`FOO_TOKEN=${SECRET}`);
      expect(result.warnings.join()).toContain('FOO_TOKEN');
    });
  });
});
