import { describe, expect, it } from 'vitest';
import { createRedactor, redact } from '../../../src/util/redact.ts';

const X = '[redacted]';
// In pieces, so that no scanner takes this file for a leak.
const key = (prefix: string, length: number) => prefix + 'aB3dE5gH7jK9'.repeat(12).slice(0, length);

describe('redact takes out', () => {
  it.each([
    [`aws configure ${'AKIA'}IOSFODNN7EXAMPLE`, `aws configure AKIA${X}`],
    [`echo ${key('ghp_', 36)} | gh auth login`, `echo ghp_${X} | gh auth login`],
    [key('github_pat_', 60), `github_pat_${X}`],
    [key('glpat-', 20), `glpat-${X}`],
    [key('xoxb-', 40), `xoxb-${X}`],
    [key('sk-ant-', 40), `sk-ant-${X}`],
    [key('sk-proj-', 40), `sk-proj-${X}`],
    [key('sk-', 40), `sk-${X}`],
    [key('sk_live_', 24), `sk_live_${X}`],
    [key('AIza', 35), `AIza${X}`],
    [key('npm_', 36), `npm_${X}`],
    ['eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.c2lnbmF0dXJl', `eyJ${X}`],
    ['curl https://hooks.slack.com/services/T0/B0/abcdef', `curl https://hooks.slack.com/services/${X}`],
    [
      "curl -H 'Authorization: Bearer abc.def' https://h/p",
      `curl -H 'Authorization: Bearer ${X}' https://h/p`,
    ],
    ['curl -H "authorization: Basic dTpw" h', `curl -H "authorization: Basic ${X}" h`],
    ["curl -H 'X-Api-Key: abc' h", `curl -H 'X-Api-Key: ${X}' h`],
    ["curl -H 'Cookie: a=b; c=d' h", `curl -H 'Cookie: ${X}' h`],
    ['git clone https://me:hunter2@example.org/r.git', `git clone https://me:${X}@example.org/r.git`],
    ['psql postgres://me:p@ss/w@db/x', 'psql postgres://me:p@ss/w@db/x'.replace('p@', `${X}@`)],
    [`git clone https://${key('', 24)}@example.org/r.git`, `git clone https://${X}@example.org/r.git`],
    ['curl -u me:hunter2 h', `curl -u me:${X} h`],
    ['curl --user "me:hunter2" h', `curl --user "me:${X}" h`],
    ['mysql -u root -phunter2 db', `mysql -u root -p${X} db`],
    ['sshpass -p hunter2 ssh h', `sshpass -p ${X} ssh h`],
    ['openssl rsa -passin pass:hunter2 -in k', `openssl rsa -passin pass:${X} -in k`],
    ['deploy --password hunter2 --to prod', `deploy --password ${X} --to prod`],
    ["deploy --password 'hunter 2' --to prod", `deploy --password '${X}' --to prod`],
    ['deploy --token=hunter2 --to prod', `deploy --token=${X} --to prod`],
    ['deploy --api-key "hunter2"', `deploy --api-key "${X}"`],
    ['deploy --client-secret hunter2', `deploy --client-secret ${X}`],
    ['GITHUB_TOKEN=hunter2 gh pr list', `GITHUB_TOKEN=${X} gh pr list`],
    ["export DB_PASSWORD='hunter 2'; run", `export DB_PASSWORD='${X}'; run`],
    ['password=hunter2 run', `password=${X} run`],
    [`curl -d '{"user":"me","password": "hunter2"}' h`, `curl -d '{"user":"me","password": "${X}"}' h`],
    [
      "echo '-----BEGIN OPENSSH PRIVATE KEY-----\nabc\n-----END OPENSSH PRIVATE KEY-----' > k",
      `echo '-----BEGIN OPENSSH PRIVATE KEY-----${X}-----END OPENSSH PRIVATE KEY-----' > k`,
    ],
    ['-----BEGIN PRIVATE KEY-----\nwithout an end', `-----BEGIN PRIVATE KEY-----${X}`],
  ])('%j', (text, expected) => {
    expect(redact(text)).toBe(expected);
    expect(redact(expected)).toBe(expected);
  });
});

describe('redact leaves', () => {
  it.each([
    'ls -la && git push origin main',
    'git commit --author="A U Thor <a@example.org>" -m "token handling: fix"',
    'GIT_AUTHOR_NAME=me SSH_AUTH_SOCK=/run/agent npm test',
    'sort --key=2 --sort-key x file',
    'deploy --password-file /run/secret --token-stdin',
    'TOKEN=$(pass show x) run --token "$TOKEN" --password $PASSWORD',
    'docker run -u 1000:1000 image',
    'curl http://localhost:3000/a@b',
    'ssh -i ~/.ssh/id_ed25519 me@example.org',
    'git show 9f86d081884c7d659a2feaa0c55ad015a3bf4f1b',
    '-----BEGIN CERTIFICATE-----\nabc\n-----END CERTIFICATE-----',
  ])('%s', (text) => {
    expect(redact(text)).toBe(text);
  });
});

describe('a redactor', () => {
  it('takes the word after an option for its value', () => {
    expect(
      createRedactor().words(['run', '--password', 'hunter2', '--token', '--force', '-p', '80']),
    ).toEqual(['run', '--password', X, '--token', '--force', '-p', '80']);
  });

  it.each([
    [
      ['curl', '-u', 'me:hunter2', 'h'],
      ['curl', '-u', `me:${X}`, 'h'],
    ],
    [
      ['mysql', '-u', 'root', '-phunter2'],
      ['mysql', '-u', 'root', `-p${X}`],
    ],
    [
      ['curl', '-H', 'Authorization: Bearer hunter2'],
      ['curl', '-H', `Authorization: Bearer ${X}`],
    ],
    [
      ['git', 'commit', '-m', 'two words'],
      ['git', 'commit', '-m', 'two words'],
    ],
  ])('sees %j as one command', (words, expected) => {
    expect(createRedactor().words(words)).toEqual(expected);
  });

  it('takes out of other texts what was a secret in one', () => {
    const redactor = createRedactor();
    redactor.words(['run', '--password', 'hunter2']);
    expect(redactor.text('unexpected word: hunter2')).toBe(`unexpected word: ${X}`);
    expect(createRedactor().text('unexpected word: hunter2')).toBe('unexpected word: hunter2');
  });
});

describe('hostile text', () => {
  const UNITS = [
    'a',
    'a ',
    'eyJ',
    'eyJaaaaaa.',
    '://',
    '://a:',
    '-----BEGIN RSA PRIVATE KEY-----',
    '-----BEGIN ',
    'x-key-',
    'KEY=',
    'KEY="',
    'KEY=\\"',
    'a=\'b="',
    '--a ',
    '--password ',
    'mysql ',
    'mysql -',
    'authorization:',
    '-u ',
    'sk-',
    'bearer ',
    'pass:',
    'cookie: ',
    'a:   ',
    'token=\\',
    '-u a',
    '\\',
    '"',
    '=',
    'password=hunter2 ',
    '--token hunter22 ',
  ];

  it.each(UNITS)('of 1 MiB of %j takes seconds at most', (unit) => {
    const text = unit.repeat(Math.ceil((1 << 20) / unit.length));
    const started = performance.now();
    redact(text);
    // About 0.1 s; a pattern that is not linear takes minutes.
    expect(performance.now() - started).toBeLessThan(10_000);
  });
});
