import { fileURLToPath } from 'node:url';

/** A program for python3 that runs another under a seccomp filter, as on a kernel that lacks something. */
export const WITHOUT = fileURLToPath(new URL('../cli/without.py', import.meta.url));
