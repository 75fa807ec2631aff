import type { Backend } from '../backend.ts';
import { confinementSpec } from '../confinement-spec.ts';

/** Landlock and seccomp, with a view of the sandbox's own where the host has namespaces. */
export const landlock: Backend = {
  id: 'landlock',
  summary: 'Landlock and seccomp, with namespaces where the host has them (Linux 5.13)',
  probe: (features) =>
    features.landlock.available
      ? { usable: true, features }
      : { usable: false, reason: features.landlock.reason },
  confinement: (plan, { architecture }) => confinementSpec(plan, architecture),
};
