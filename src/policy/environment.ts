/** Names that look like secrets are never passed by a pattern, only by their exact name. */
const SECRET_NAME =
  /KEY|SECRET|TOKEN|PASSW|PASSPHRASE|CREDENTIAL|AUTH|PRIVATE|COOKIE|SESSION|_PAT$|_PWD$|DSN$|CONNECTION_STRING/i;

/** True if a variable's name suggests that its value is a secret. */
export function looksSecret(name: string): boolean {
  return SECRET_NAME.test(name);
}

/** Used where the launcher has no PATH of its own. */
const DEFAULT_PATH = '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin';

/** The command's environment and what there is to say about it. */
export interface BuiltEnvironment {
  readonly variables: Readonly<Record<string, string>>;
  readonly warnings: readonly string[];
}

/**
 * Rebuilds the environment: of `host` only the names in `pass` (a trailing `*` matches any rest, except names that
 * look like secrets), then `set` on top. HOME and TMPDIR are added by the launch. Pure.
 */
export function buildEnvironment(
  host: Readonly<Record<string, string | undefined>>,
  pass: readonly string[],
  set: Readonly<Record<string, string>>,
): BuiltEnvironment {
  const variables: Record<string, string> = { PATH: DEFAULT_PATH };
  const warnings: string[] = [];
  for (const entry of pass) {
    if (entry.endsWith('*')) {
      const prefix = entry.slice(0, -1);
      for (const [name, value] of Object.entries(host)) {
        if (value !== undefined && name.startsWith(prefix) && !looksSecret(name)) variables[name] = value;
      }
      continue;
    }
    const value = host[entry];
    if (value === undefined) continue;
    if (looksSecret(entry)) {
      warnings.push(`the command can read ${entry}, which looks like a secret (it is passed by name)`);
    }
    variables[entry] = value;
  }
  return { variables: { ...variables, ...set }, warnings };
}
