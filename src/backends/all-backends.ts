import { application } from './application/application.ts';
import type { Backend } from './backend.ts';
import { firejail } from './firejail/firejail.ts';
import { landlock } from './landlock/landlock.ts';
import { namespaces } from './namespaces/namespaces.ts';

/** Every backend, in the order of {@link BACKEND_IDS}. */
export const BACKENDS: readonly Backend[] = [landlock, namespaces, firejail, application];
