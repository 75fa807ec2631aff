const SECRET_NAME =
  /KEY|SECRET|TOKEN|PASSW|PASSPHRASE|CREDENTIAL|AUTH|PRIVATE|COOKIE|SESSION|_PAT$|_PWD$|DSN$|CONNECTION_STRING/i;

/** True if a variable's name suggests that its value is a secret. */
export function looksSecret(name: string): boolean {
  return SECRET_NAME.test(name);
}

const SECRET_OPTION =
  /^(?:[a-z0-9._-]*[._-])?(?:password|passwd|passphrase|passwort|pass|pwd|token|secret|pat|credentials?|(?:api|access|auth|secret|private|account|encryption|signing|master|shared|client|refresh|bearer|session)[._-]?(?:key|token|secret))$/i;

/**
 * True if the name of an option, a header or a key of JSON suggests a secret value. Narrower than `looksSecret`, which
 * would take `--author`, `--sort-key` and `--session` for secrets.
 */
export function looksSecretOption(name: string): boolean {
  return SECRET_OPTION.test(name);
}
