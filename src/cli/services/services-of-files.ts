import { createHash } from 'node:crypto';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { SandboxError } from '../../base/errors/sandbox-error.ts';
import { readableWord } from '../../base/shell-quote.ts';
import { visibleLine } from '../../base/visible-text.ts';
import { resolvePolicy, WORKSPACE_POLICY } from '../../run/index.ts';
import { caller } from '../shared/caller.ts';
import type { FileWish, UpWish } from './options.ts';
import { withinRepository } from './places.ts';

const digestOf = (service: object) => createHash('sha256').update(JSON.stringify(service)).digest('hex');

/**
 * Whether the policy of a service names it as it did when it was started; true for one that no policy file named.
 * @throws {SandboxError} as `resolvePolicy`.
 */
export async function isAsInFile(
  { name, sandbox, ofFile }: Pick<UpWish, 'name' | 'sandbox' | 'ofFile'>,
  workspace: string,
): Promise<boolean> {
  if (ofFile === undefined) return true;
  const { policy } = await resolvePolicy({ ...sandbox, workspace }, caller());
  const service = Object.hasOwn(policy.services, name) ? policy.services[name] : undefined;
  return service !== undefined && digestOf(service) === ofFile;
}

/**
 * The words behind `up` for services of policy files: of all, or of the one that is named.
 * @throws {SandboxError} `service.unknown` if there is none; as `resolvePolicy`.
 */
export async function wordsFromFiles({
  name,
  sandbox,
  words,
}: FileWish): Promise<readonly (readonly string[])[]> {
  const { policy, project, workspace } = await resolvePolicy(sandbox, caller());
  const all = Object.entries(policy.services).filter(([known]) => name === undefined || known === name);
  if (all.length > 0)
    return all.map(([known, service]) => {
      const { command, ready, ready_line, ready_timeout_seconds, restart, publish = [] } = service;
      return [
        ...[known, ...words],
        ...(ready === undefined ? [] : ['--ready', String(ready)]),
        ...(ready_line === undefined ? [] : ['--ready-line', ready_line]),
        ...(ready_timeout_seconds === undefined ? [] : ['--ready-timeout', String(ready_timeout_seconds)]),
        ...(restart === undefined ? [] : ['--restart', restart]),
        ...publish.flatMap((port) => ['--publish', port]),
        ...['--of-file', digestOf(service)],
        ...(typeof command === 'string' ? ['-c', command] : ['--', ...command]),
      ];
    });
  const asks =
    project?.standing !== 'trusted' && project?.widenings.some(({ key }) => key.startsWith('services.'));
  const where = visibleLine(workspace, 4096);
  const [, ...around] = withinRepository(workspace);
  const above = around.find((directory) => existsSync(join(directory, WORKSPACE_POLICY)));
  const named = name === undefined ? '' : ` ${name}`;
  const remedy =
    above === undefined
      ? `Add [services.${name ?? 'web'}] with command = "…", or give the command: sandbox-run up ${name ?? 'web'} -- COMMAND`
      : `A directory above has a file: sandbox-run up${named} --workspace ${readableWord(visibleLine(above, 4096))}`;
  const what = name === undefined ? 'no services' : `no service ${name}`;
  throw new SandboxError(
    'service.unknown',
    asks === true
      ? `nothing was started: the .sandbox-run.toml of ${where} is not trusted, so its services do not count. Look at them and decide: sandbox-run trust`
      : `nothing was started: your policy file and a trusted .sandbox-run.toml name ${what} for ${where}. ${remedy}`,
  );
}
