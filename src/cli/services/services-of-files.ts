import { createHash } from 'node:crypto';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { SandboxError } from '../../base/errors/sandbox-error.ts';
import { readableWord } from '../../base/shell-quote.ts';
import { visibleLine } from '../../base/visible-text.ts';
import { resolvePolicy, WORKSPACE_POLICY } from '../../run/index.ts';
import { caller } from '../shared/caller.ts';
import type { FileWish, UpWish } from './options.ts';
import { upToRepositoryRoot } from './places.ts';
import { isRunning, readRecords } from './records.ts';

const digestOf = (service: object) => createHash('sha256').update(JSON.stringify(service)).digest('hex');

/**
 * Whether the policy files still define a service as they did when it was started. True for a service that no policy file names.
 * @throws {SandboxError} what `resolvePolicy` throws.
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

/** A service that policy files define. */
interface ServiceOfFile {
  readonly name: string;
  /** The arguments of `up`. */
  readonly words: readonly string[];
  readonly isRunning: boolean;
}

/**
 * Each service that the policy files define, or the one that is named.
 * @throws {SandboxError} `service.unknown` if there is none; also what `resolvePolicy` throws.
 */
export async function servicesOfFiles({ name, sandbox, words }: FileWish): Promise<readonly ServiceOfFile[]> {
  const { policy, project, workspace } = await resolvePolicy(sandbox, caller());
  const all = Object.entries(policy.services).filter(([known]) => name === undefined || known === name);
  const isKnown = (known: string, places: readonly string[]) =>
    readRecords().some((one) => one.name === known && places.includes(one.workspace) && isRunning(one));
  if (all.length > 0)
    return all.map(([known, service]) => {
      const { command, ready, ready_line, ready_timeout_seconds, restart, publish = [] } = service;
      const more = [
        ...[known, ...words],
        ...(ready === undefined ? [] : ['--ready', String(ready)]),
        ...(ready_line === undefined ? [] : ['--ready-line', ready_line]),
        ...(ready_timeout_seconds === undefined ? [] : ['--ready-timeout', String(ready_timeout_seconds)]),
        ...(restart === undefined ? [] : ['--restart', restart]),
        ...publish.flatMap((port) => ['--publish', port]),
        ...['--of-file', digestOf(service)],
        ...(typeof command === 'string' ? ['-c', command] : ['--', ...command]),
      ];
      return { name: known, words: more, isRunning: isKnown(known, [workspace]) };
    });
  const isUntrusted =
    project?.standing !== 'trusted' && project?.widenings.some(({ key }) => key.startsWith('services.'));
  const where = visibleLine(workspace, 4096);
  const [, ...around] = upToRepositoryRoot(workspace);
  const above = around.find((directory) => existsSync(join(directory, WORKSPACE_POLICY)));
  const named = name === undefined ? '' : ` ${name}`;
  const isStarted = name !== undefined && isKnown(name, [workspace, ...around]);
  const remedy = isStarted
    ? `${name} runs with the command that up was given: sandbox-run restart ${name}`
    : above === undefined
      ? `Add [services.${name ?? 'web'}] with command = "…", or give the command: sandbox-run up ${name ?? 'web'} -- COMMAND`
      : `A parent directory has a .sandbox-run.toml: sandbox-run up${named} --workspace ${readableWord(visibleLine(above, 4096))}`;
  const what = name === undefined ? 'services' : `a service ${name}`;
  throw new SandboxError(
    'service.unknown',
    isUntrusted === true
      ? `nothing was started: the .sandbox-run.toml of ${where} is not trusted, so its services are ignored. To review and trust it: sandbox-run trust`
      : `nothing was started: neither your policy file nor a trusted .sandbox-run.toml names ${what} for ${where}. ${remedy}`,
  );
}
