import { isAbsolute, normalize } from 'node:path';
import { describe, expect, it } from 'vitest';
import { isBeneath } from '../../../src/base/absolute-path.ts';
import { PROFILES } from '../../../src/policy/profiles/built-in.ts';
import { OFFLINE_ENVIRONMENT, PACKAGE_CACHES } from '../../../src/policy/profiles/caches.ts';
import { OBEYED_FILES, PROTECTED_PATHS } from '../../../src/policy/profiles/obeyed-files.ts';
import { MASKED_PATHS, SYSTEM_PATHS, TOOL_CHAINS } from '../../../src/policy/profiles/system-paths.ts';
import { policyOf } from '../../support/policy-of.ts';

const SECRET = /key|secret|token|password|credential|auth|session/i;
const HOME_RELATIVE = [...TOOL_CHAINS, ...PACKAGE_CACHES];

describe('system paths', () => {
  it('are absolute, normal and different, each with a reason', () => {
    const paths = SYSTEM_PATHS.map((rule) => rule.path);
    expect(new Set(paths).size).toBe(paths.length);
    for (const { path, reason } of SYSTEM_PATHS) {
      expect([path, isAbsolute(path), normalize(path)]).toEqual([path, true, path]);
      expect(reason.length, path).toBeGreaterThan(3);
    }
  });

  it('grant no writing but to device nodes, and no whole /etc, /dev, /var, /home or /root', () => {
    for (const { path, access } of SYSTEM_PATHS) {
      expect(access, path).not.toBe('write');
      if (access === 'device') expect(path).toMatch(/^\/dev\//);
      expect(['/', '/etc', '/dev', '/var', '/home', '/root', '/run', '/sys', '/opt']).not.toContain(path);
    }
  });

  it.each([
    ...['/etc/shadow', '/etc/gshadow', '/etc/sudoers', '/etc/ssh/ssh_host_ed25519_key', '/etc/security'],
    ...['/root/.ssh/id_ed25519', '/home/user/.aws/credentials', '/var/run/docker.sock', '/run/user/1000/bus'],
    ...['/dev/mem', '/dev/sda', '/dev/pts/0', '/dev/ptmx', '/sys/fs/cgroup', '/boot', '/etc/krb5.keytab'],
    ...['/etc/ssl/private/server.key', '/etc/pki/tls/private/server.key', '/etc/pki/entitlement/1-key.pem'],
    ...['/etc/maven/settings.xml', '/etc/npmrc', '/etc/pip.conf'],
  ])('do not hold %s', (secret) => {
    expect(SYSTEM_PATHS.filter((rule) => isBeneath(secret, rule.path)).map((rule) => rule.path)).toEqual([]);
  });

  it('masked paths are not granted', () => {
    for (const masked of MASKED_PATHS)
      expect(SYSTEM_PATHS.some((rule) => isBeneath(masked, rule.path))).toBe(false);
  });
});

describe('tool chains and caches beneath the home directory', () => {
  it('are relative, beneath it and different', () => {
    expect(new Set(HOME_RELATIVE.map((entry) => entry.path)).size).toBe(HOME_RELATIVE.length);
    for (const { path, reason } of HOME_RELATIVE) {
      expect([isAbsolute(path), normalize(path)]).toEqual([false, path]);
      expect(path).not.toMatch(/^\.?\.?$|^\.\./);
      expect(reason.length, path).toBeGreaterThan(2);
    }
  });

  it.each([
    ...['.ssh/id_rsa', '.aws/credentials', '.npmrc', '.netrc', '.git-credentials', '.config/gh/hosts.yml'],
    ...[
      '.cargo/credentials.toml',
      '.docker/config.json',
      '.bash_history',
      '.npm/_logs/x',
      '.gnupg/x',
      '.pypirc',
    ],
    ...[
      '.m2/settings.xml',
      '.gradle/gradle.properties',
      '.kube/config',
      '.local/share/keyrings/x',
      '.config/x',
    ],
  ])('do not hold ~/%s', (secret) => {
    const holders = HOME_RELATIVE.filter((entry) => isBeneath(`/h/${secret}`, `/h/${entry.path}`));
    expect(holders.map((entry) => entry.path)).toEqual([]);
  });
});

describe('environment', () => {
  it('passes no name that looks like a secret, and no pattern', () => {
    for (const { name } of PROFILES) {
      const policy = policyOf({ profile: name });
      for (const name of policy.environment.pass) {
        expect(name).not.toMatch(SECRET);
        expect(name).not.toContain('*');
      }
    }
  });

  it('sets nothing that runs code or looks like a secret', () => {
    const names = [
      ...Object.keys(OFFLINE_ENVIRONMENT),
      ...HOME_RELATIVE.flatMap((entry) => Object.keys(entry.env ?? {})),
    ];
    for (const name of names) {
      expect(name).not.toMatch(SECRET);
      expect(name).not.toMatch(/^(LD_|NODE_OPTIONS|PYTHON|BASH_ENV|ENV$|PERL5|RUBYOPT|GIT_)/);
    }
  });
});

describe('profiles', () => {
  it('have different names and a summary; the first is the default', () => {
    const names = PROFILES.map((profile) => profile.name);
    expect(new Set(names).size).toBe(names.length);
    expect(policyOf().profile).toBe(names[0]);
    for (const { name, summary } of PROFILES) {
      expect(policyOf({ profile: name }).profile).toBe(name);
      expect(summary.length).toBeGreaterThan(10);
    }
  });

  it('all keep the home private, and /tmp where they can, and demand what carries the promise', () => {
    for (const { name } of PROFILES) {
      const policy = policyOf({ profile: name });
      expect(policy.filesystem).toMatchObject({ home: 'private', tmp: 'auto' });
      expect(policy.demand).toMatchObject({
        filesystem: 'required',
        network: 'required',
        privileges: 'required',
      });
    }
  });

  it('only “networked” has a network, only “read-only” cannot write the workspace', () => {
    const open = PROFILES.filter(({ name }) => policyOf({ profile: name }).network.mode !== 'off');
    const readers = PROFILES.filter(
      ({ name }) => policyOf({ profile: name }).filesystem.workspaceAccess !== 'write',
    );
    expect(open.map((profile) => profile.name)).toEqual(['networked']);
    expect(readers.map((profile) => profile.name)).toEqual(['read-only']);
  });
});

describe('protected paths', () => {
  it('are relative, normal and different', () => {
    expect(new Set(PROTECTED_PATHS).size).toBe(PROTECTED_PATHS.length);
    for (const path of PROTECTED_PATHS) {
      expect([isAbsolute(path), normalize(path)]).toEqual([false, path]);
      expect(path).not.toMatch(/^\.\./);
    }
  });

  it.each(['.git/hooks', '.git/config', '.vscode', '.claude', '.envrc', '.husky', '.zlogin', '.windsurf'])(
    'hold %s',
    (path) => {
      expect(PROTECTED_PATHS).toContain(path);
    },
  );

  it('are none that honest work writes', () => {
    for (const path of [
      'package.json',
      'Makefile',
      '.npmrc',
      '.pre-commit-config.yaml',
      '.gitmodules',
      '.env',
    ])
      expect(PROTECTED_PATHS).not.toContain(path);
  });
});

describe('obeyed files', () => {
  it('are told once each, with a tool and a reason', () => {
    const paths = OBEYED_FILES.map(({ path }) => path);
    expect(paths.filter((path, at) => paths.indexOf(path) !== at)).toEqual([]);
    for (const { tool, reason } of OBEYED_FILES) expect([tool, reason]).not.toContain('');
  });

  it('are exact names, or endings that are told', () => {
    for (const { path, where, treatment } of OBEYED_FILES) {
      expect(path).toMatch(/^\*?[^*?[\]{}]+$/);
      // Nothing can be mounted on a pattern.
      if (path.startsWith('*')) expect([where, treatment]).toEqual(['anywhere', 'told']);
    }
  });

  it('that are shut do not lie in each other', () => {
    for (const path of PROTECTED_PATHS)
      expect(PROTECTED_PATHS.filter((other) => other.startsWith(`${path}/`))).toEqual([]);
  });
});
