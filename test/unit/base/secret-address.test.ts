import { describe, expect, it } from 'vitest';
import { redact } from '../../../src/base/redact.ts';
import { holdsAddressToken, withoutAddressTokens } from '../../../src/base/secret-address.ts';

const HEX40 = '3f786850e387550fdab836ed7e6dc881de23001b';
const UUID = '6ba7b810-9dad-11d1-80b4-00c04fd430c8';

/** Addresses of registries with a token where it is not called one. */
const WITH_TOKEN = [
  'https://dl.packages.example/aB3dE5fG7hJ9kL1m/org/repo/python/simple/',
  'https://dl.packages.example/x8k2m4n6p1q3r5t7/org/repo/npm/',
  'https://npm.fury.example/Xk4mT9bQ2wL7pR1sV6zA/me/',
  'https://pypi.fury.example/Xk4mT9bQ2wL7pR1sV6zA/me/simple',
  'https://npm-proxy.fury.example/1Zq8xkW3mPvT5rYbN2cD/me/',
  `https://registry.example/${HEX40}/npm/`,
  `https://registry.example/npm/private/${HEX40}/`,
  `https://registry.example/${UUID}/simple`,
  `https://registry.example/feeds/${UUID}/npm/`,
  'https://registry.example/npm/?token=abcdef',
  'https://git.example/group/?private_token=glpat-x',
  'https://git.example/?job=1&private_token=12345',
  'https://git.example/api/v4/glpat-AbCdEf1234567890AbCd/packages',
  'https://git.example/a#access_token=98765',
  `https://proxy.example/mod?key=${HEX40}`,
  `https://proxy.example/go#${UUID}`,
  `https://proxy.example/go,https://other.example/${HEX40},direct`,
  'https://a.example/simple https://b.example/Xk4mT9bQ2wL7pR1sV6zA/simple',
  `name=https://b.example/${UUID}/simple`,
  `sparse+https://cargo.example/${HEX40}/index/`,
  '//npm.example/Xk4mT9bQ2wL7pR1sV6zA/',
  'npm.example/Xk4mT9bQ2wL7pR1sV6zA/',
  'https://registry.example/npm_abcdef1234567890/x/',
  `https://registry.example/%252F${UUID}/me/`,
  'https://registry.example/%58k4mT9bQ2wL7pR1sV6zA/me/',
  'ssh://git@git.example/glpat-AbCdEf1234567890AbCd/x.git',
  'https://registry.example/eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.sig/npm',
];

/** Addresses that settings have, and nothing to hide in them. */
const ORDINARY = [
  'https://registry.npmjs.org/',
  'https://registry.yarnpkg.com',
  'https://npm.pkg.github.com/my-organisation',
  'https://pypi.org/simple',
  'https://test.pypi.org/simple/',
  'https://download.pytorch.org/whl/cu121',
  'https://artifactory.example.com/artifactory/api/npm/npm-virtual-release/',
  'https://artifactory.example.com/artifactory/api/pypi/python-private-repo-2024/simple',
  'https://nexus.example.com/repository/npm-group-internal-v2/',
  'https://nexus3.example.com:8443/repository/InternalPackagesV2/',
  `https://pkgs.azure.example/org/${UUID}/_packaging/feed/npm/registry/`,
  'https://pkgs.azure.example/MyOrganisation/MyProject2/_packaging/internal-feed@Release/npm/registry/',
  'https://git.example/api/v4/projects/12345678/packages/npm/',
  'https://git.example/api/v4/groups/team%2Fplatform/-/packages/npm/',
  'https://europe-west1-npm.pkg.example/my-project-123456/my-repository/',
  'https://my-domain-123456789012.d.codeartifact.eu-west-1.example/npm/my-repository/',
  'https://dl.packages.example/public/org/repo/python/simple/',
  'https://proxy.golang.org,direct',
  'https://goproxy.io|https://proxy.golang.org|direct',
  'github.com/organisation/*,gitlab.example/team2024/*',
  'sparse+https://index.crates.io/',
  'https://mirrors.tuna.example/git/crates.io-index.git',
  'https://static.rust-lang.org/rustup/dist/x86_64-unknown-linux-gnu',
  'https://nodejs.org/dist/v20.11.1/node-v20.11.1-linux-x64.tar.gz',
  'https://mirror.example/debian12-bookworm-backports/20240101T000000Z/',
  'https://github.com/astral-sh/python-build-standalone/releases/download',
  'git@github.com:organisation/project.git',
  'ssh://git@git.example:2222/organisation/internationalisation.git',
  'https://github.com/',
  'file:///home/user/packages/simple',
  '/srv/mirror/packages2024/simple',
  'http://localhost:4873/',
  'https://host.example/@scope/name?write=true',
  'https://repo.example/conda-forge/linux-64/repodata.json',
  'https://registry.example/internal-packages-2023-q4/npm',
  'https://registry.example/acme-corporation-frontend-team1/',
  'https://github.com/a/b/archive/refs/tags/v1.2.3.tar.gz#sha256=9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08',
  'git+https://github.com/a/b.git?rev=3f786850e387550fdab836ed7e6dc881de23001b',
  'git+https://github.com/a/b.git@main#egg=package&subdirectory=src',
];

/** What commands and records have besides. */
const ORDINARY_IN_TEXT = [
  `https://github.com/a/b/commit/${HEX40}`,
  `https://raw.githubusercontent.com/a/b/${HEX40}/README.md`,
  `https://git.example/a/b/-/blob/${HEX40}/src/main.rs`,
  'https://files.pythonhosted.org/packages/70/8e/0e2d847013cb52cd35b38c009bb167a1a26b2ce6cd6965bf26b47bc0bf44/requests-2.31.0-py3-none-any.whl',
  'https://registry.npmjs.org/lodash/-/lodash-4.17.21.tgz',
  `https://ghcr.io/v2/a/b/blobs/sha256:${HEX40}${HEX40.slice(0, 24)}`,
  `https://example.com/users/${UUID}/profile`,
];

describe('a token in an address that is not called one', () => {
  it.each(WITH_TOKEN)('is seen in a setting: %s', (address) => {
    expect(holdsAddressToken(address)).toBe(true);
    expect(withoutAddressTokens(`registry=${address}`)).toContain('[redacted]');
  });

  it.each(ORDINARY)('is not seen in %s', (address) => {
    expect([holdsAddressToken(address), withoutAddressTokens(address)]).toEqual([false, address]);
    expect(redact(`npm install --registry ${address}`)).toBe(`npm install --registry ${address}`);
  });

  it.each(ORDINARY_IN_TEXT)('is not seen in a record of %s', (address) => {
    expect(redact(`curl -fsSL ${address} -o x`)).toBe(`curl -fsSL ${address} -o x`);
  });

  it.each(
    WITH_TOKEN.filter((one) => one.includes('://') && !one.includes('/private/') && !one.includes('/feeds/')),
  )('is not in a record: %s', (address) => {
    const secrets = address.match(/[\w-]{16,}|(?<=token=)[\w-]+/g) ?? [];
    const recorded = redact(`pip install -i ${address} x`);
    expect(recorded).toContain('[redacted]');
    for (const secret of secrets.filter((one) => /\d/.test(one))) expect(recorded).not.toContain(secret);
  });

  it('is no certificate', () => {
    const certificate = `-----BEGIN CERTIFICATE-----\nMIIDdzCCAl+gAwIBAgIE/k2W8xK9${HEX40}/Xk4mT9bQ2wL7pR1sV6zA\n-----END CERTIFICATE-----`;
    expect(holdsAddressToken(certificate)).toBe(false);
  });

  it('takes linear time', () => {
    const begun = performance.now();
    for (const text of ['a/', '://', 'https://a/', 'x8k2m4n6p1q3r5t7', '%58', '?a=', '///', 'a', 'a.b-c'])
      redact(`${text.repeat(20_000)} https://a/`);
    for (const text of ['a/', '://', 'https://a/', '?a=', '///', 'a', 'a.b-c'])
      holdsAddressToken(text.repeat(20_000));
    expect(performance.now() - begun).toBeLessThan(10_000);
  });
});
