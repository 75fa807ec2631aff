import { createHash } from 'node:crypto';
import type { Command } from '../model/command.ts';

/** A program that a command names, and the file that would be executed for it. */
interface FingerprintExecutable {
  /** As the command names it. */
  readonly name: string;
  /** Canonical; `undefined`: none was found, or it is no program. */
  readonly path: string | undefined;
  /** Changes whenever the file does: device, inode, size, times, …. */
  readonly identity: string | undefined;
}

/** Everything that matters about a command: an answer is good for exactly this. */
export interface FingerprintParts {
  readonly command: Command;
  /** Canonical. */
  readonly cwd: string;
  readonly executables: readonly FingerprintExecutable[];
  /** As in `ApprovalRequest`; in any order. */
  readonly environment: readonly string[];
  readonly profile: string;
  readonly confinement: readonly string[];
  /** Of the effective policy. */
  readonly policyVersion: string;
}

/** SHA-256, hexadecimal. Different parts give different text to hash: nested lists in JSON, in which nothing runs together. */
export function fingerprint(parts: FingerprintParts): string {
  const { command, executables, environment } = parts;
  const text = JSON.stringify([
    'sandbox-run approval 1',
    typeof command === 'string' ? ['shell', command] : ['argv', ...command],
    parts.cwd,
    executables.map(({ name, path, identity }) => [name, path ?? null, identity ?? null]),
    [...environment].sort(),
    parts.profile,
    parts.confinement,
    parts.policyVersion,
  ]);
  return createHash('sha256').update(text).digest('hex');
}
