import type { Facility, HostFeatures } from '../plan/host-features.ts';
import { ofLandlock, ofNamespaces } from '../plan/mechanisms.ts';
import type { Backend } from './backend.ts';
import { confinementSpec } from './confinement-spec.ts';

/** A backend that the addon is all of: it needs one facility of the kernel, and uses whatever else there is. */
function ofKernel(
  about: Pick<Backend, 'id' | 'summary' | 'mechanisms'>,
  needed: (features: HostFeatures) => Facility,
): Backend {
  return {
    ...about,
    probe: (features) => {
      const facility = needed(features);
      return facility.available ? { usable: true, features } : { usable: false, reason: facility.reason };
    },
    confinement: confinementSpec,
  };
}

const landlock = ofKernel(
  {
    id: 'landlock',
    summary: 'Landlock and seccomp, with namespaces where the host has them (Linux 5.13)',
    mechanisms: ofLandlock,
  },
  (features) => features.landlock,
);

/**
 * What the landlock backend has besides Landlock. Instead of bubblewrap, which does the same with one program more that
 * may be missing or old, and knows nothing of protected paths, private directories and how a tree ends.
 */
const namespaces = ofKernel(
  {
    id: 'namespaces',
    summary: 'a root, network and user of its own, and seccomp; for kernels without Landlock',
    mechanisms: ofNamespaces,
  },
  (features) => features.namespaces,
);

/** Those that need nothing but the kernel, the stronger first. */
export const KERNEL_BACKENDS: readonly Backend[] = [landlock, namespaces];
