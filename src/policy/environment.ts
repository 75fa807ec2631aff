import { looksSecret } from '../base/secret-name.ts';
import { holdsKnownKey } from '../base/secret-patterns.ts';
import { POLICY_KEYS } from '../model/index.ts';

/** Used where the launcher has no PATH of its own. */
const DEFAULT_PATH = '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin';

/** The command's environment and what there is to say about it. */
export interface BuiltEnvironment {
  readonly variables: Readonly<Record<string, string>>;
  readonly warnings: readonly string[];
}

/**
 * Rebuilds the environment: of `host` only the names in `pass` (a trailing `*` matches any rest, except names that
 * look like secrets) and not `withheld`, then `set` on top. A value that is a key or token by its shape stays outside, unless
 * somebody listed exactly this name. HOME and TMPDIR are added by the launch. Pure.
 */
export function buildEnvironment(
  host: Readonly<Record<string, string | undefined>>,
  pass: readonly string[],
  set: Readonly<Record<string, string>>,
  withheld?: string,
): BuiltEnvironment {
  const variables: Record<string, string> = { PATH: DEFAULT_PATH };
  const warnings: string[] = [];
  const carry = (name: string, value: string, isAskedFor: boolean) => {
    // Directories, which may be called anything.
    const isSecret = name !== 'PATH' && holdsKnownKey(value);
    if (isSecret && !isAskedFor) {
      if (!(name in set) && name !== withheld)
        warnings.push(`${name} stays outside, as its value looks like a secret: commands run without it`);
      return;
    }
    if (isSecret || looksSecret(name))
      warnings.push(`the command can read ${name}, which looks like a secret (it is passed by name)`);
    variables[name] = value;
  };
  for (const entry of pass) {
    if (entry.endsWith('*')) {
      const prefix = entry.slice(0, -1);
      for (const [name, value] of Object.entries(host)) {
        if (value !== undefined && name.startsWith(prefix) && !looksSecret(name) && !pass.includes(name))
          carry(name, value, false);
      }
      continue;
    }
    const value = host[entry];
    if (value !== undefined) carry(entry, value, !PASSED_BY_ALL.has(entry));
  }
  if (withheld !== undefined) delete variables[withheld];
  return { variables: { ...variables, ...set }, warnings };
}

/** Nobody listed these. */
const PASSED_BY_ALL: ReadonlySet<string> = new Set(POLICY_KEYS.environment.pass.default);
