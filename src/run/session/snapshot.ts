import { statSync } from 'node:fs';
import { isBeneath } from '../../base/absolute-path.ts';
import { SandboxError } from '../../base/errors/sandbox-error.ts';
import { orElse } from '../../base/or-else.ts';
import type { LaunchPlan } from '../../confine/plan/launch-plan.ts';
import { variableRule } from '../../judge/index.ts';
import type { ShellSnapshot } from '../../model/index.ts';
import { createPathLookup } from '../../workspace/index.ts';

/** The parts of a snapshot that a new shell gets. */
interface Restored {
  readonly env: Readonly<Record<string, string>>;
  /** Variables that are left out. */
  readonly refused: readonly { readonly name: string; readonly why: string }[];
}

/** Set for each shell anew. */
export const ANEW = /^(?:PWD|OLDPWD|SHLVL|_|HOME|TMPDIR)$/;

/**
 * Splits the variables of a snapshot: those that make programs run other code are not restored. PATH is, because each
 * decision looks at it, and what only chooses among code of the workspace is. What every command gets (`usual`) is there.
 */
export function restoreVariables(
  env: Readonly<Record<string, string>>,
  usual: Readonly<Record<string, string | undefined>>,
): Restored {
  const kept: Record<string, string> = {};
  const refused: { name: string; why: string }[] = [];
  for (const [name, value] of Object.entries(env)) {
    if (ANEW.test(name) || usual[name] === value) continue;
    const rule = variableRule(name, value);
    if (!/^[A-Za-z_][A-Za-z0-9_]*$/.test(name))
      refused.push({ name: JSON.stringify(name), why: 'it is no name of a variable' });
    else if (value.includes('\0')) refused.push({ name, why: 'it holds a NUL byte' });
    else if (name === 'PATH' || rule === undefined || rule.contained === true) kept[name] = value;
    else refused.push({ name, why: 'it changes what programs run' });
  }
  return { env: kept, refused };
}

/** Whether a shell may be started there: the directory exists and the policy lets commands read it. */
export function isUsableDirectory(path: string, plan: LaunchPlan): boolean {
  if (!path.startsWith('/') || path.includes('\0')) return false;
  const { canonical } = createPathLookup().resolve(path);
  const readable = plan.paths.some(
    ({ path: root, access }) => access !== 'device' && isBeneath(canonical, root),
  );
  if (!readable && !isBeneath(canonical, plan.workspace)) return false;
  return orElse(() => statSync(canonical).isDirectory(), false);
}

/** @throws {SandboxError} `usage.invalid`, `cwd.unusable`. */
export function checkSnapshot(value: unknown, plan: LaunchPlan): ShellSnapshot {
  const { cwd, env } = typeof value === 'object' && value !== null ? (value as Partial<ShellSnapshot>) : {};
  const isEnvironment =
    typeof env === 'object' && env !== null && Object.values(env).every((text) => typeof text === 'string');
  if (typeof cwd !== 'string' || !isEnvironment)
    throw new SandboxError('usage.invalid', 'session: restore must be a snapshot of a session, { cwd, env }');
  if (!isUsableDirectory(cwd, plan))
    throw new SandboxError(
      'cwd.unusable',
      `${cwd} of the snapshot is no directory that the policy lets commands use`,
    );
  return { cwd, env: { ...env } };
}
