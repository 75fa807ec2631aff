import { tmpdir } from 'node:os';
import type { NativeConfinementSpec, NativeSetUidLauncher } from '../../native/contract.ts';

/** A sandbox of Firejail's with nothing in it but what every one has. */
export function plainSpec(program: string, keptOpen: readonly string[] | undefined): NativeConfinementSpec {
  const launcher: NativeSetUidLauncher = {
    program,
    arguments: ['--quiet', '--noprofile', '--caps.drop=all', '--nonewprivs', '--keep-fd=3,4,5'],
    settings: '',
    conditional: [],
    slotSetting: '',
    foregroundSettings: '',
    deadlineOption: '--timeout=',
    env: 'PATH=/usr/sbin:/usr/bin:/sbin:/bin\0',
    keptOpen,
  };
  return {
    landlock: { handledFs: 0n, handledNet: 0n, scoped: 0n },
    rules: [],
    filter: new Uint8Array(),
    namespaces: undefined,
    limits: [],
    treeLimits: {
      memoryBytes: 0,
      processes: 0,
      cpuMs: 0,
      tmpBytes: 0,
      idleTimeoutMs: 0,
      cgroupParent: '',
      cgroupClone: false,
    },
    umask: -1,
    temporaryParent: tmpdir(),
    memoryParent: '',
    slotDirectories: [],
    seedFiles: [],
    copies: [],
    slotVariables: [],
    setUidLauncher: launcher,
    processTree: 'subreaper',
    exitTracing: false,
  };
}
