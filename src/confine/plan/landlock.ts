import { isBeneath } from '../../base/absolute-path.ts';
import {
  availableAt,
  FILE_RIGHTS,
  type FileRightName,
  NETWORK_RIGHTS,
  SCOPES,
} from '../kernel/landlock/rights.ts';
import type { LaunchPlan, PathAccess, PlannedPath, PlannedRule } from './launch-plan.ts';
import type { Mechanisms } from './mechanisms.ts';

/** What each kind of access needs. `write` leaves out device nodes: no command needs to make one. */
const RIGHTS_OF_ACCESS: Readonly<Record<PathAccess, readonly FileRightName[]>> = {
  data: ['read_file', 'read_dir'],
  read: ['execute', 'read_file', 'read_dir'],
  write: [
    'execute',
    'write_file',
    'read_file',
    'read_dir',
    'remove_dir',
    'remove_file',
    'make_dir',
    'make_reg',
    'make_sock',
    'make_fifo',
    'make_sym',
    'refer',
    'truncate',
    'resolve_unix',
  ],
  device: ['read_file', 'write_file', 'read_dir', 'truncate', 'ioctl_dev'],
};

/** What a domain handles, by name. */
type HandledRights = Omit<LaunchPlan['landlock'], 'rules'>;

/**
 * The most that can be handled with the mechanisms. Every file right is handled (so that it is refused where no
 * rule grants it); `refer` too, because a kernel that knows it and does not handle it refuses every rename
 * between directories. Network rights only back up a network that seccomp already shuts, or whose sockets a supervisor
 * connects, which is in no domain: in a network namespace the command's own servers have to work. Pure.
 */
export function handledRights(used: Mechanisms): HandledRights {
  const abi = used.landlockAbi;
  const names = <Name extends string>(table: readonly { readonly name: Name }[]) =>
    table.map((row) => row.name);
  return {
    abi,
    handledFile: availableAt(FILE_RIGHTS, names(FILE_RIGHTS), abi),
    handledNetwork:
      used.inetSockets === 'refused' || used.inetSockets === 'listed'
        ? availableAt(NETWORK_RIGHTS, names(NETWORK_RIGHTS), abi)
        : [],
    scoped: availableAt(SCOPES, names(SCOPES), abi),
  };
}

/** The rules of a domain: those of the policy's paths and of what belongs to the command itself. Pure. */
export function landlockRules(
  used: Mechanisms,
  paths: readonly PlannedPath[],
  slotDirectories: readonly string[],
  sharedMemory: boolean,
  /** The workspace, where a layer lies over it: what is in it is another object than on the host. */
  layered?: string,
): readonly PlannedRule[] {
  if (used.landlockAbi === 0) return [];
  const rule = (path: string, access: PathAccess, required: boolean, inView = false): PlannedRule => ({
    path,
    rights: availableAt(FILE_RIGHTS, RIGHTS_OF_ACCESS[access], used.landlockAbi).filter(
      // Sockets of its own a domain can use without it.
      (right) => right !== 'resolve_unix' || used.socketsOfOthers,
    ),
    required,
    inView,
  });
  const rules = paths.map(({ path, access, required }) =>
    rule(path, access, required, layered !== undefined && isBeneath(path, layered)),
  );
  rules.push(...slotDirectories.map((path) => rule(path, 'write', true)));
  if (!used.view) {
    // Nothing can be put in its place without a view, and python's semaphores need it.
    rules.push(rule('/dev/shm', 'write', false));
    return rules;
  }
  if (sharedMemory) rules.push(rule('shm:', 'write', true));
  // Lists the directories that lead to what is mounted.
  rules.push({ path: '/', rights: ['read_dir'], required: true, inView: true });
  rules.push(rule('/dev/pts', 'device', true, true));
  return rules;
}
