const SECRET_NAME =
  /KEY|SECRET|TOKEN|PASSW|PASSPHRASE|CREDENTIAL|AUTH|PRIVATE|COOKIE|SESSION|_PAT$|_PWD$|DSN$|CONNECTION_STRING/i;

/** True if a variable's name suggests that its value is a secret. */
export function looksSecret(name: string): boolean {
  return SECRET_NAME.test(name);
}

const PART =
  /^(?:KEY|SECRETS?|TOKENS?|PASS|PWD|CREDENTIALS?|CREDS?|AUTH|PRIVATE|COOKIES?|SESSION|PAT|DSN|JWT|BEARER|SIG|SIGNATURE)$/;
const PART_END =
  /(?:SECRET|TOKEN|PASSWORD|PASSWD|PASSWORT|PASSPHRASE|CREDENTIALS?|(?:API|ACCESS|AUTH|PRIVATE|SECRET|SIGNING|ENCRYPTION)KEY)$/;
/** Names of places, of people and of properties of secrets. */
const ABOUT =
  /(?:_FILE|_PATH|_DIR|_SOCK|_NAME|_EMAIL|_DATE|_URL|_TYPE|_TTL|_SIZE|_LENGTH|_COUNT|_TIMEOUT|_MANAGER|_DESKTOP)$|^(?:XAUTHORITY|PWD|OLDPWD)$/;

/**
 * True if the value of a variable is not to be recorded. Narrower than `looksSecret`, which decides what commands inherit
 * and may take `AUTHOR` and `MONKEY` for secrets: it is parts of a name that count here.
 */
export function looksSecretVariable(name: string): boolean {
  const upper = name.toUpperCase();
  return (
    !ABOUT.test(upper) &&
    (upper.includes('CONNECTION_STRING') ||
      upper.split(/[_.-]+/).some((part) => PART.test(part) || PART_END.test(part)))
  );
}

const SECRET_OPTION =
  /^(?:(?:[a-z0-9._-]*[._-])?(?:pass|pwd|pat|bearer|jwt|credentials?|(?:store|key|trust)pass|(?:api|access|auth|secret|private|account|encryption|signing|master|shared|client|refresh|bearer|session)[._-]?(?:key|token|secret))|[a-z0-9._-]*(?:password|passwd|passphrase|passwort|token|secret))$/i;
/** `--ask-vault-pass`: says what is done about a secret, and takes none. */
const SWITCH =
  /^(?:ask|no|use|with|without|show|print|require|prompt|reset|generate|enable|disable|skip|allow|force)[._-]/i;

/**
 * True if the name of an option, a header or a key of JSON suggests a secret value. Narrower than `looksSecret`, which
 * would take `--author`, `--sort-key` and `--session` for secrets.
 */
export function looksSecretOption(name: string): boolean {
  return SECRET_OPTION.test(name) && !SWITCH.test(name);
}

const SECRET_HEADER =
  /(?:^|[-_])(?:auth|authorization|token|key|secret|password|signature|session|jwt|cookie)$/i;

/** True if the value of a header of HTTP is not to be recorded. */
export function looksSecretHeader(name: string): boolean {
  return SECRET_HEADER.test(name) || looksSecretOption(name);
}

const SECRET_PARAMETER =
  /^(?:sig|signature|x-(?:amz|goog)-(?:signature|credential)|auth|apikey|key|code|session(?:id)?)$/i;

/** True if the value of a parameter in an address is not to be recorded. */
export function looksSecretParameter(name: string): boolean {
  return SECRET_PARAMETER.test(name) || looksSecretOption(name);
}

/** `$TOKEN`, `${TOKEN}`, `$(pass show x)`: where the secret comes from, not the secret. */
export function isReference(value: string): boolean {
  return /^"?\$(?:[A-Z_][A-Z0-9_]*"?$|\{[A-Z_][A-Z0-9_]*\}"?$|\()/.test(value);
}

/** Too short to be secret, or a switch: `KEY=1`, `AUTH=false`. */
export function isTrivial(value: string): boolean {
  return value.length < 4 || /^(?:true|false)$/i.test(value);
}

/** More than a word of a language: `password: string` has no secret in it. */
export function isRandom(value: string): boolean {
  return value.length >= 6 && /\d/.test(value) && !/[()]/.test(value);
}
