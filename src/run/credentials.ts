import { isBeneath } from '../base/absolute-path.ts';
import { SandboxError } from '../base/errors/sandbox-error.ts';
import type { LaunchPlan } from '../confine/plan/launch-plan.ts';
import { CREDENTIALS_VARIABLE } from '../gate/nats/index.ts';
import { realPath } from './resolve/own-program.ts';

/**
 * A file that commands can read is no secret. `credentials`: that of a NATS server; default: what the environment names.
 * @throws {SandboxError} `fleet.invalid`.
 */
export function refuseReadableCredentials(
  { paths, workspace }: Pick<LaunchPlan, 'paths' | 'workspace'>,
  credentials: string | undefined = process.env[CREDENTIALS_VARIABLE],
): void {
  if (credentials === undefined || credentials === '') return;
  const real = realPath(credentials);
  const root = [workspace, ...paths.map(({ path }) => path)].find((place) => isBeneath(real, place));
  if (root === undefined) return;
  throw new SandboxError(
    'fleet.invalid',
    `the credentials file ${credentials} lies in ${root}, which commands can read; put it elsewhere`,
  );
}
