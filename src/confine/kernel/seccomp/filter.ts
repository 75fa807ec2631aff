import { SECCOMP_GROUP_NAMES, SECCOMP_GROUPS, type SeccompGroupName } from './groups.ts';
import { KILL_PROCESS, refuseWith, type SeccompFilter } from './ir.ts';

/**
 * What a command may do with sockets.
 *
 * `network`: `refused` = no inet socket at all; `asked` = none either, but another filter asks a supervisor, which refuses each and tells it; `isolated` = TCP and UDP, because the process is alone in an empty network
 * namespace; `listed` = TCP and UDP by way of a supervisor, which another filter asks, and nothing that it could not see;
 * `open` = TCP and UDP as on the host.
 */
export interface SeccompNeeds {
  readonly network: 'refused' | 'asked' | 'isolated' | 'listed' | 'open';
  /** `supervised`: those that a supervisor, which another filter asks, makes and connects; `asked`: refuses and tells. */
  readonly unixSockets: 'allowed' | 'supervised' | 'asked' | 'refused';
  /**
   * `own`: of other processes of the sandbox, because something else keeps those outside out of reach, and a listener
   * answers for halted exits; `own-but-exits`: those are refused.
   */
  readonly tracing: 'own' | 'own-but-exits' | 'refused';
  /** `shared`: with the user's other programs, so refused. */
  readonly ipcObjects: 'own' | 'shared';
  /**
   * `supervised`: of existing objects, by another filter that asks, and given to directories alone. `kept`: the workspace is
   * shared by such directories, where git and cp fail that cannot set the bit again, and nobody can be asked.
   */
  readonly setGroupId?: 'supervised' | 'kept' | 'refused';
  /** Whose scheduling, priorities and limits a command changes by number. `supervised`: by another filter that asks, its own. */
  readonly otherProcesses?: 'supervised' | 'refused';
}

const SET_ID_GROUPS = { supervised: '@set-id-of-files', kept: '@set-user-id', refused: '@set-id' } as const;

/** Groups that only some commands get. */
const NOT_BY_DEFAULT: ReadonlySet<SeccompGroupName> = new Set([
  '@ptrace',
  '@trace-exit',
  '@other-processes',
  '@other-process-groups',
  '@network-off',
  '@socket-diagnostics',
  '@unix-sockets-off',
  '@unix-datagrams',
  '@tcp-fast-open',
  '@source-routes',
  '@host-interfaces',
  '@ipc-objects',
  '@set-id',
  '@set-id-of-files',
  '@set-user-id',
]);

/** The groups that a command gets by default, in the order of the table. */
export function seccompGroupsFor(needs: SeccompNeeds): readonly SeccompGroupName[] {
  const added = new Set<SeccompGroupName>();
  if (needs.tracing === 'refused') added.add('@ptrace');
  if (needs.tracing === 'own-but-exits') added.add('@trace-exit');
  if (needs.network === 'refused') added.add('@network-off');
  if (needs.network !== 'isolated') added.add('@socket-diagnostics');
  if (needs.network === 'listed') added.add('@tcp-fast-open').add('@source-routes').add('@host-interfaces');
  if (needs.unixSockets === 'refused') added.add('@unix-sockets-off');
  if (needs.unixSockets === 'supervised' || needs.unixSockets === 'asked') added.add('@unix-datagrams');
  if (needs.ipcObjects === 'shared') added.add('@ipc-objects');
  added.add(needs.otherProcesses === 'supervised' ? '@other-process-groups' : '@other-processes');
  added.add(SET_ID_GROUPS[needs.setGroupId ?? 'refused']);
  return SECCOMP_GROUP_NAMES.filter((name) => added.has(name) || !NOT_BY_DEFAULT.has(name));
}

/**
 * What commands need by default, on hosts with namespaces and without: the programs for it are assembled beforehand. Without Landlock
 * tracing is refused, and beneath somebody else's seccomp listener halting exits is; a program for that is assembled when it is asked
 * for.
 */
export const USUAL_NEEDS: readonly SeccompNeeds[] = (
  ['refused', 'asked', 'isolated', 'listed', 'open'] as const
).flatMap((network) =>
  // The network supervisor supervises Unix sockets too.
  (network === 'listed' ? (['supervised'] as const) : (['allowed', 'refused', 'asked'] as const)).flatMap(
    (unixSockets) =>
      (
        [
          { ipcObjects: 'own', setGroupId: 'supervised', otherProcesses: 'supervised' },
          { ipcObjects: 'own', setGroupId: 'refused' },
          { ipcObjects: 'shared', setGroupId: 'supervised', otherProcesses: 'supervised' },
          { ipcObjects: 'shared', setGroupId: 'refused' },
        ] as const
      )
        .map((shared) => ({ network, unixSockets, tracing: 'own' as const, ...shared }))
        // Drops combinations that no plan has: with a supervisor `asked` takes the place of `refused`; own IPC objects need namespaces.
        .filter((needs) => {
          const supervised = 'otherProcesses' in needs;
          const ofSockets = [network, unixSockets];
          return (
            !ofSockets.includes(supervised ? 'refused' : 'asked') &&
            !(needs.ipcObjects === 'own' && ofSockets.some((one) => one === 'refused' || one === 'asked'))
          );
        }),
  ),
);

/**
 * Groups that a session's shell is refused beside those of the plan: a program that it starts could take the descriptor of
 * its channel, or write its memory, and answer for it. A filter cannot tell the shell from the programs that it starts.
 */
export const SHELL_GROUPS: readonly SeccompGroupName[] = ['@ptrace'];

/**
 * A filter that refuses what any of the groups refuses and allows the rest. The order of the names and repeated names
 * make no difference.
 *
 * Calls of a foreign architecture end the process: a 32-bit program could not do anything anyway, and under ENOSYS it
 * could not even exit (musl's `_Exit` loops for ever, glibc's crashes); where the kernel lacks 32-bit support it crashes
 * as well. x32 and too-new numbers get ENOSYS, as from a kernel without them, so that libraries use the older call.
 *
 * @throws RangeError on a name that is not in the table.
 */
export function buildFilter(groupNames: readonly SeccompGroupName[]): SeccompFilter {
  for (const name of groupNames) {
    if (!Object.hasOwn(SECCOMP_GROUPS, name)) throw new RangeError(`no seccomp group is called ${name}`);
  }
  return {
    layers: SECCOMP_GROUP_NAMES.filter((name) => groupNames.includes(name)).map((name) => ({
      name,
      rules: SECCOMP_GROUPS[name].rules,
    })),
    foreignArchitecture: KILL_PROCESS,
    unknownSyscall: refuseWith('ENOSYS'),
  };
}
