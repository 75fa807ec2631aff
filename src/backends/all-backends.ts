import type { Facility, HostFeatures } from '../model/host-features.ts';
import { application } from './application.ts';
import type { Backend } from './backend.ts';
import { confinementSpec } from './confinement-spec.ts';
import { firejail } from './firejail/firejail.ts';

/** A backend that the addon is all of: it needs one facility of the kernel, and uses whatever else there is. */
function ofKernel(
  about: Pick<Backend, 'id' | 'summary'>,
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
  { id: 'landlock', summary: 'Landlock and seccomp, with namespaces where the host has them (Linux 5.13)' },
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
  },
  (features) => features.namespaces,
);

/** Every backend, in the order of {@link BACKEND_IDS}. */
export const BACKENDS: readonly Backend[] = [landlock, namespaces, firejail, application];
