import { basename, resolve } from 'node:path';
import type { SandboxOptions } from '../../model/options.ts';
import { validateFile, WORKSPACE_POLICY } from '../../run/resolve/policy-layers.ts';
import { resolvePolicy } from '../../run/resolve/resolve-policy.ts';

/** Checks one file, or all that are in force; says which are fine. */
export async function validatePolicy(file: string | undefined, options: SandboxOptions): Promise<string> {
  if (file !== undefined) {
    const narrowing = basename(file) === WORKSPACE_POLICY;
    await validateFile(resolve(file), narrowing);
    return `${file}: valid${narrowing ? ' (as the file of a workspace)' : ''}\n`;
  }
  const { layers } = await resolvePolicy(options);
  const paths = layers.map((layer) => layer.path).filter((path) => path !== undefined);
  if (paths.length === 0) return 'no policy file is in force here; the built-in policy is\n';
  return paths.map((path) => `${path}: valid\n`).join('');
}
