import type { Policy } from '../../src/model/policy.ts';
import type { PolicyFile } from '../../src/model/policy-keys.ts';
import { effectivePolicy } from '../../src/policy/effective.ts';

/** The policy that holds in `/w` for a user whose home is `/home/user`, of files that come on top of each other. */
export function policyOf(...files: readonly PolicyFile[]): Policy {
  const layers = files.map((says) => ({ name: 'option' as const, says }));
  return effectivePolicy(layers, { workspace: '/w', home: '/home/user' }).policy;
}
