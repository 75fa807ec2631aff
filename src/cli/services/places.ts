import { existsSync, realpathSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { SandboxError } from '../../base/errors/sandbox-error.ts';
import { orElse } from '../../base/or-else.ts';
import { visibleLine } from '../../base/visible-text.ts';
import { currentDirectory } from '../shared/caller.ts';
import type { ServiceChoice } from './options.ts';

/** The key of a service. */
interface Named {
  readonly name: string;
  readonly workspace: string;
}

/**
 * The services that a command line means: those of the workspace that it names, else those of the nearest directory that has any,
 * from the current directory up.
 */
export function chosen<T extends Named>(all: readonly T[], { name, workspace }: ServiceChoice): readonly T[] {
  const isMeant = (one: Named) => name === undefined || one.name === name;
  const real = (path: string) => orElse(() => realpathSync.native(path), path);
  const start = real(resolve(currentDirectory(), workspace ?? '.'));
  for (let at = start; ; at = dirname(at)) {
    const found = all.filter((one) => one.workspace === at && isMeant(one));
    if (found.length > 0 || workspace !== undefined || at === dirname(at)) return found;
  }
}

/** The error for a command line that means no service. */
export function noSuchService({ name, workspace }: ServiceChoice): SandboxError {
  const where = visibleLine(resolve(currentDirectory(), workspace ?? '.'), 4096);
  const what = name === undefined ? 'no service runs' : `no service ${name} runs`;
  return new SandboxError('service.unknown', `${what} in ${where} (sandbox-run ps shows those that do)`);
}

/** A workspace and its parent directories up to the root of its Git repository; only the workspace if it is in none. */
export function upToRepositoryRoot(workspace: string): readonly string[] {
  const around: string[] = [];
  for (let at = workspace; ; at = dirname(at)) {
    around.push(at);
    if (existsSync(join(at, '.git'))) return around;
    if (at === dirname(at)) return [workspace];
  }
}
