import type { Policy, PolicyFile } from '../../src/model/index.ts';
import { effectivePolicy } from '../../src/policy/index.ts';

/** The policy that holds in `/w` for a user whose home is `/home/user`, of files that come on top of each other. */
export function policyOf(...files: readonly PolicyFile[]): Policy {
  const layers = files.map((says) => ({ name: 'option' as const, says }));
  return effectivePolicy(layers, { workspace: '/w', home: '/home/user' }).policy;
}
