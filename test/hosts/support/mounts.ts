import { ROOT } from './world.ts';

/**
 * Words before a command that give it a mount namespace of its own, in which a shell text makes mounts: nothing of it is
 * seen outside, and it ends with the command. An ordinary user becomes root of a user namespace for it.
 */
export function withMounts(text: string, ...then: readonly string[]): readonly string[] {
  const unshare = ROOT ? ['unshare', '--mount'] : ['unshare', '--mount', '--map-root-user'];
  return [...unshare, '--propagation', 'private', 'sh', '-ec', `${text}\nexec "$@"`, 'sh', ...then];
}

/** From here on an ordinary user without an entry in the user database. Only for root. */
export const AS_STRANGER = ['setpriv', '--reuid', '54321', '--regid', '54321', '--clear-groups'] as const;
