import { accessSync, constants, realpathSync } from 'node:fs';
import { homedir, tmpdir } from 'node:os';
import { orElse } from '../base/or-else.ts';
import type { FullGrant, Grant } from './plan/grant.ts';

const SHARED_MEMORY = '/dev/shm';

/** Where private directories are made, and the home of the user who asks, as far as a grant does not say it. */
export function whatIsUsual(grant: Grant): Pick<FullGrant, 'hostHome' | 'temporaryParent' | 'memoryParent'> {
  return {
    hostHome: grant.hostHome ?? homedir(),
    temporaryParent: grant.temporaryParent ?? orElse(() => realpathSync(tmpdir()), '/tmp'),
    memoryParent: 'memoryParent' in grant ? grant.memoryParent : sharedMemory(),
  };
}

function sharedMemory(): string | undefined {
  return orElse(() => {
    accessSync(SHARED_MEMORY, constants.W_OK | constants.X_OK);
    return SHARED_MEMORY;
  }, undefined);
}
