import type { Backend } from '../../confine/backends/backend.ts';
import { KERNEL_BACKENDS } from '../../confine/backends/kernel-backends.ts';
import { application } from './application.ts';
import { firejail } from './firejail/firejail.ts';

/** Every backend, in the order of {@link BACKEND_IDS}: those of the kernel, and those that are handed to the core. */
export const BACKENDS: readonly Backend[] = [...KERNEL_BACKENDS, firejail, application];
