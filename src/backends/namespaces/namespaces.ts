import type { Backend } from '../backend.ts';
import { confinementSpec } from '../confinement-spec.ts';

/**
 * What the landlock backend has besides Landlock. Instead of bubblewrap, which does the same with one program more that
 * may be missing or old, and knows nothing of protected paths, private directories and how a tree ends.
 */
export const namespaces: Backend = {
  id: 'namespaces',
  summary: 'a root, network and user of its own, and seccomp; for kernels without Landlock',
  probe: (features) =>
    features.namespaces.available
      ? { usable: true, features }
      : { usable: false, reason: features.namespaces.reason },
  confinement: (plan, { architecture }) => confinementSpec(plan, architecture),
};
