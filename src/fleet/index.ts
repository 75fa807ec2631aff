// The exports of this room for code outside of src: tests and scripts import nothing below it.
export { Blobs } from './archive/blobs.ts';
export { sendManifest, sendWorkspace, withDirectories } from './archive/send.ts';
export { createFleet } from './create-fleet.ts';
export type { Fleet } from './fleet-api.ts';
export { DEFAULT_LEASE, Lease, LeaseWatch, marginOf, readWorker } from './lease.ts';
export { JobSource, Offer } from './offers.ts';
export { OutputSender } from './output.ts';
export { ensureConsumer, openQueue, type Queue, satisfies } from './queue.ts';
export { FleetWorker, MOST_NEEDS, type WorkerOptions } from './worker.ts';
