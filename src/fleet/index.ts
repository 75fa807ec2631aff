// What others may import of this house; inside of it, files import each other. Its README says what it is for.

export { createFleet } from './create-fleet.ts';
export type { Fleet, FleetJob } from './fleet-api.ts';
export {
  DEFAULT_LEASE,
  Lease,
  LeaseWatch,
  LONGEST_LEASE,
  marginOf,
  readWorker,
  SHORTEST_LEASE,
} from './lease.ts';
export { JobSource, Offer } from './offers.ts';
export { OutputSender } from './output.ts';
export { ensureConsumer, openQueue, type Queue, satisfies } from './queue.ts';
export { FleetWorker, MOST_NEEDS, type WorkerOptions } from './worker.ts';

// Workspaces that travel

export { Blobs } from './archive/blobs.ts';
export { sendManifest, sendWorkspace, withDirectories } from './archive/send.ts';
export { refuseFilled } from './archive/tree.ts';
