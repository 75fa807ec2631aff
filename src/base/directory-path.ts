import { fileURLToPath } from 'node:url';
import { SandboxError } from './errors/sandbox-error.ts';
import { orElse } from './or-else.ts';

/**
 * The path of a directory that may be given as a `file:` URL.
 * @throws {SandboxError} `usage.invalid`: it is a URL of something else.
 */
export function directoryPath(given: string | URL): string;
export function directoryPath(given: string | URL | undefined): string | undefined;
export function directoryPath(given: string | URL | undefined): string | undefined {
  if (!(given instanceof URL)) return given;
  // Throws for another scheme, another host, an encoded slash and what is not UTF-8.
  const path = orElse(() => fileURLToPath(given), undefined);
  if (path !== undefined && !path.includes('\0')) return path;
  throw new SandboxError(
    'usage.invalid',
    'a directory must be a path, or a file: URL of one on this machine',
  );
}
