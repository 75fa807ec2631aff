import { looksSecret } from '../util/secret-name.ts';

/** Used where the launcher has no PATH of its own. */
const DEFAULT_PATH = '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin';

/** The command's environment and what there is to say about it. */
export interface BuiltEnvironment {
  readonly variables: Readonly<Record<string, string>>;
  readonly warnings: readonly string[];
}

/**
 * Rebuilds the environment: of `host` only the names in `pass` (a trailing `*` matches any rest, except names that
 * look like secrets) and not `withheld`, then `set` on top. HOME and TMPDIR are added by the launch. Pure.
 */
export function buildEnvironment(
  host: Readonly<Record<string, string | undefined>>,
  pass: readonly string[],
  set: Readonly<Record<string, string>>,
  withheld?: string,
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
  if (withheld !== undefined) delete variables[withheld];
  return { variables: { ...variables, ...set }, warnings };
}
