import { writeFileSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import { SandboxError } from '../../errors/sandbox-error.ts';
import { homeDirectory } from '../../host/home-directory.ts';
import { makeDirectories } from '../../host/state-directory.ts';
import { userPolicyPath } from '../../run/policy-layers.ts';
import { errnoOf } from '../../util/errno-of.ts';
import { policyTemplate } from './template.ts';

/** Writes a commented policy file and says where. Never over one that is there. */
export function initPolicy(file: string | undefined): string {
  const path =
    file === undefined ? userPolicyPath(homeDirectory(), process.env.XDG_CONFIG_HOME) : resolve(file);
  try {
    makeDirectories(dirname(path));
    // No other user may write it, whatever the umask.
    writeFileSync(path, policyTemplate(), { flag: 'wx', mode: 0o644 });
  } catch (error) {
    const code = errnoOf(error) ?? String(error);
    if (code === 'EEXIST')
      throw new SandboxError('policy.exists', `${path} is already there; edit it, or name another file`);
    throw new SandboxError('policy.unreadable', `cannot write the policy ${path} (${code})`);
  }
  return `wrote ${path}; everything in it is a comment as yet\n`;
}
