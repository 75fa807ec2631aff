import { isUtf8 } from 'node:buffer';
import { readFileSync, realpathSync, statSync } from 'node:fs';
import { isAbsolute } from 'node:path';
import { SandboxError } from '../../base/errors/sandbox-error.ts';
import { orElse } from '../../base/or-else.ts';
import type { Environment, Surroundings } from './surroundings.ts';

/**
 * What Node gives as text although its bytes are no UTF-8 has this character in their place. As a name it means something
 * else then, which may well be there: it is refused, and never used.
 */
const LOST = '\uFFFD';

const REMEDY = 'which sandbox-run cannot name without meaning another; rename it';

/** The current directory. @throws {SandboxError} `cwd.unusable`: it is gone, or its name is not UTF-8. */
export function currentDirectoryOf({ cwd }: Pick<Surroundings, 'cwd'>): string {
  const path = orElse(cwd, undefined);
  if (path === undefined)
    throw new SandboxError('cwd.unusable', 'the current directory no longer exists; change to another one');
  if (!path.includes(LOST) || isSame(path, '.')) return path;
  throw new SandboxError(
    'cwd.unusable',
    `the path of the current directory (${path}) is not valid UTF-8, ${REMEDY}, or change to another directory`,
  );
}

/**
 * The current directory by the name that its user came by, links included: what a shell says in PWD, if it leads there
 * (`pwd -L` of POSIX).
 * @throws {SandboxError} as {@link currentDirectoryOf}.
 */
export function namedCurrentDirectory(around: Pick<Surroundings, 'env' | 'cwd'>): string {
  const current = currentDirectoryOf(around);
  const { PWD } = around.env;
  if (PWD === undefined || PWD === current || !isAbsolute(PWD) || /\/\.{0,2}(?:\/|$)/.test(PWD))
    return current;
  return orElse(() => realpathSync.native(PWD), undefined) === current ? PWD : current;
}

/**
 * The real path of something; `undefined`: it has none.
 * @throws {SandboxError} `workspace.missing`: it is not UTF-8.
 */
export function exactRealPath(path: string, what: string): string | undefined {
  const real = orElse(() => realpathSync.native(path, 'buffer'), undefined);
  if (real === undefined) return undefined;
  if (isUtf8(real)) return real.toString();
  throw new SandboxError(
    'workspace.missing',
    `${what} ${path} leads to ${real.toString()}, whose path is not valid UTF-8, ${REMEDY} or choose another place`,
  );
}

/**
 * Variables that say where things are, for this program itself. Those of commands are looked at when they are passed.
 * @throws {SandboxError} `usage.invalid`.
 */
export function requireExactVariables(env: Environment, names: readonly string[] = OWN_VARIABLES): void {
  const lost = names.find((name) => env[name]?.includes(LOST) || name.includes(LOST));
  if (lost === undefined) return;
  const started = startedWith('environ');
  for (const name of names) {
    const value = env[name];
    if (value === undefined || !`${name}${value}`.includes(LOST)) continue;
    // A value that this program set itself is what it says.
    const given = started?.find((entry) => entry.toString() === `${name}=${value}`);
    if (started !== undefined && (given === undefined || isUtf8(given))) continue;
    throw new SandboxError(
      'usage.invalid',
      `the environment variable ${name} is not valid UTF-8, which sandbox-run cannot pass on as it is; unset it or give it another value`,
    );
  }
}

const OWN_VARIABLES: readonly string[] = [
  ...['HOME', 'PATH', 'TMPDIR', 'TMP', 'TEMP', 'CLAUDE_PROJECT_DIR'],
  ...['XDG_CONFIG_HOME', 'XDG_STATE_HOME', 'XDG_CACHE_HOME', 'XDG_RUNTIME_DIR'],
];

/**
 * What a program was started with is what it works with: another argument would be another command.
 * @throws {SandboxError} `usage.invalid`.
 */
export function requireExactArguments(args: readonly string[]): void {
  const lost = args.find((text) => text.includes(LOST));
  if (lost === undefined) return;
  const started = startedWith('cmdline');
  if (started?.every((argument) => isUtf8(argument)) === true) return;
  throw new SandboxError(
    'usage.invalid',
    `an argument is not UTF-8 (${lost}), and cannot be judged or passed on as it is; name a file by a pattern that it fits, such as *, or rename it`,
  );
}

/** `undefined`: it is unknown. */
function startedWith(name: 'cmdline' | 'environ'): readonly Buffer[] | undefined {
  // Bytes are characters here; behind the last NUL there is nothing.
  const all = orElse(() => readFileSync(`/proc/self/${name}`, 'latin1').replace(/\0$/, ''), undefined);
  return all?.split('\0').map((text) => Buffer.from(text, 'latin1'));
}

function isSame(path: string, other: string): boolean {
  const [one, two] = [path, other].map((each) => statSync(each, { bigint: true, throwIfNoEntry: false }));
  return one !== undefined && two !== undefined && one.dev === two.dev && one.ino === two.ino;
}
