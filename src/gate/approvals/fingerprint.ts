import { createHash } from 'node:crypto';
import type { Command } from '../../model/execution-request.ts';

/** What an approval is bound to. */
export interface FingerprintParts {
  readonly command: Command;
  readonly cwd: string;
  readonly executables: readonly {
    readonly name: string;
    readonly path: string;
    readonly identity: string;
  }[];
  readonly environment: readonly string[];
  readonly profile: string;
  readonly confinement: string;
  readonly policyVersion: string;
}

/** stub until merged */
export function fingerprint(parts: FingerprintParts): string {
  return createHash('sha256').update(JSON.stringify(parts)).digest('hex');
}
