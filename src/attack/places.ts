import { randomBytes } from 'node:crypto';
import { join } from 'node:path';
import type { LaunchPlan } from '../model/launch-plan.ts';
import type { Policy } from '../model/policy.ts';
import { isBeneath } from '../util/absolute-path.ts';
import type { Arena, Outside } from './arena.ts';
import type { Place, Victim } from './attack.ts';

/** The variable of this process that has the secret; its name is one that no pattern passes on. */
export const SECRET_VARIABLE = 'SANDBOX_RUN_DOCTOR_SECRET';

/** The first real-time signal that libc leaves to programs, and some for those who use them. */
const FIRST_SIGNAL = 40;

/** Where the sockets of the victim are: outside, in the workspace of the sandbox, and in the other one. */
export interface Sockets {
  readonly outside: string | undefined;
  readonly workspace: string;
  readonly bareWorkspace: string;
}

/** What the two places have in common. */
export interface PlaceParts {
  readonly arena: Arena;
  readonly outside: Outside | undefined;
  readonly sockets: Sockets;
  readonly victim: Victim;
  readonly program: string;
  readonly plan: Pick<LaunchPlan, 'paths'>;
  readonly policy: Policy;
}

/** A random name that is told from all others. */
export const freshName = (): string => `attack-${randomBytes(6).toString('hex')}`;

/** Whether the policy lets commands have a path. */
export const isGrantedBy =
  ({ paths }: Pick<LaunchPlan, 'paths'>) =>
  (path: string): boolean =>
    paths.some((grant) => isBeneath(path, grant.path));

/** The two places in which attacks are tried. */
export function makePlaces(parts: PlaceParts): { readonly bare: Place; readonly confined: Place } {
  let lastSignal = FIRST_SIGNAL;
  const { arena, outside, sockets, plan } = parts;
  const isReadOnly = plan.paths.some(({ path, access }) => path === arena.readable && access === 'read');
  const place = (inSandbox: boolean): Place => ({
    inSandbox,
    workspace: inSandbox ? arena.workspace : arena.bareWorkspace,
    get outside() {
      return orReason(outside?.path, 'the policy grants every place where a file could be put');
    },
    get readable() {
      return orReason(
        isReadOnly ? arena.readable : undefined,
        'the policy gives nothing that may only be read',
      );
    },
    shared: arena.shared,
    victim: parts.victim,
    get socketOutside() {
      return orReason(sockets.outside, 'the policy grants every place where a socket could be put');
    },
    socketInside: inSandbox ? sockets.workspace : sockets.bareWorkspace,
    program: parts.program,
    secret: arena.secret,
    variable: SECRET_VARIABLE,
    name: freshName,
    signal: () => lastSignal++,
    sharesTemporary: parts.policy.filesystem.tmp === 'host',
    isProtected: (path) => parts.policy.filesystem.protect.includes(path),
    isGranted: isGrantedBy(plan),
  });
  return { bare: place(false), confined: place(true) };
}

/** Short names, because a socket's is 107 bytes at most. */
export function socketsIn(arena: Arena, outside: Outside | undefined): Sockets {
  return {
    outside: outside === undefined ? undefined : join(outside.path, 's'),
    workspace: join(arena.workspace, 's'),
    bareWorkspace: join(arena.bareWorkspace, 's'),
  };
}

/** Whoever prepares an attack notes why it cannot be. */
function orReason(path: string | undefined, reason: string): string {
  if (path === undefined) throw new Error(reason);
  return path;
}
