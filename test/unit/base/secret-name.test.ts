import { describe, expect, it } from 'vitest';
import { looksSecret, looksSecretOption, looksSecretVariable } from '../../../src/base/secret-name.ts';

describe('looksSecret', () => {
  it.each(
    (
      'API_KEY OPENAI_API_KEY AWS_SECRET_ACCESS_KEY GITHUB_TOKEN npm_config__authToken PASSWORD DB_PASSWD ' +
      'GPG_PASSPHRASE GOOGLE_APPLICATION_CREDENTIALS SSH_AUTH_SOCK PRIVATE_URL SESSION_ID COOKIE_JAR GH_PAT ' +
      'MYSQL_PWD SENTRY_DSN DATABASE_CONNECTION_STRING my_secret'
    ).split(' '),
  )('%s does', (name) => {
    expect(looksSecret(name)).toBe(true);
  });

  it.each('PATH HOME PWD OLDPWD TERM LANG LC_ALL CI EDITOR NODE_ENV PATTERN COMPAT TMPDIR'.split(' '))(
    '%s does not',
    (name) => {
      expect(looksSecret(name)).toBe(false);
    },
  );
});

describe('looksSecretOption', () => {
  it.each(
    'password passwd token api-key apiKey api_key access-token auth-token X-Api-Key client_secret db.password refreshToken'.split(
      ' ',
    ),
  )('%s does', (name) => {
    expect(looksSecretOption(name)).toBe(true);
  });

  it.each(
    'author sort-key keyword session password-file token-stdin key keys path pat-tern compass'.split(' '),
  )('%s does not', (name) => {
    expect(looksSecretOption(name)).toBe(false);
  });
});

describe('looksSecretVariable', () => {
  it.each(
    'KEY API_KEY TOKEN NPM_TOKEN PGPASSWORD DBPASSWORD MYSQL_PWD DB_PASS SENTRY_DSN APIKEY AUTH_HEADER KEY_1 SESSION_ID'.split(
      ' ',
    ),
  )('%s does', (name) => {
    expect(looksSecretVariable(name)).toBe(true);
  });

  it.each(
    'AUTHOR MONKEY KEYWORD TOKENIZERS_PARALLELISM PWD OLDPWD SSH_AUTH_SOCK KEY_FILE COMPASS XDG_SESSION_TYPE'.split(
      ' ',
    ),
  )('%s does not', (name) => {
    expect(looksSecretVariable(name)).toBe(false);
  });
});
