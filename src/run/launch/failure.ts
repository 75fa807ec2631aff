import type { ErrorCode } from '../../base/errors/codes.ts';
import { SandboxError } from '../../base/errors/sandbox-error.ts';
import { shortageOf } from '../../base/errors/shortage.ts';
import { errnoName } from '../../confine/kernel/errno.ts';
import type { NativeFailure } from '../../confine/native/contract.ts';
import type { ExecutionError } from '../../model/index.ts';
import { describeRootFailure } from '../other-backends/firejail/root-directory.ts';

/** What a failed step of the launch means to the caller. `treeEnded`: no process of the command runs any more. */
export function describeFailure(failure: NativeFailure, treeEnded = true): ExecutionError {
  const errno = failure.errno === 0 ? undefined : errnoName(failure.errno);
  const path = failure.path === '' ? undefined : failure.path;
  const [code, said] = meaning(failure, errno, path);
  const message = treeEnded ? said : `${said}; processes that it started may still run`;
  return { code, message, stage: failure.stage, errno, path };
}

/** The step that failed, of an error that the addon threw; `undefined`: it is another error. */
export function failureIn(error: unknown): NativeFailure | undefined {
  return (error as { readonly failure?: NativeFailure }).failure;
}

/** What to throw in place of an error that the addon threw. */
export function describeThrown(error: unknown): unknown {
  const failure = failureIn(error);
  if (failure === undefined) return error;
  const { code, message } = describeFailure(failure);
  return new SandboxError(code, message, { cause: error });
}

/** A failed step, by names. */
interface FailedStep {
  readonly stage: string;
  readonly errno: string | undefined;
  /** Empty: there is none. */
  readonly path: string;
}

/** The code of a failure, and its message for a person. */
type Meaning = readonly [ErrorCode, string];

/** A text alone is a `launch.failed`; `undefined`: the step means nothing of its own this time. */
type Says = (step: FailedStep) => Meaning | string | undefined;

function meaning(failure: NativeFailure, errno: string | undefined, path = ''): Meaning {
  const step: FailedStep = { stage: failure.stage, errno, path };
  const short = shortageOf(errno);
  if (short !== undefined && isForWantOf(step)) return ['launch.failed', short];
  const root = describeRootFailure(failure);
  if (root !== undefined) return ['launch.failed', `${root}; nothing was run`];
  const said = (STAGES.get(step.stage) ?? familyOf(step.stage))?.(step) ?? notApplied(step);
  return typeof said === 'string' ? ['launch.failed', said] : said;
}

/** True where the errno has only this meaning; for seccomp and exec it has others. */
function isForWantOf({ errno, stage }: FailedStep): boolean {
  return (
    errno === 'EMFILE' ||
    errno === 'ENFILE' ||
    /^(thread|event|clone|warden|namespace|view)(\.|$)/.test(stage)
  );
}

function notApplied({ stage, errno, path }: FailedStep): string {
  const where = path === '' ? '' : ` at ${path}`;
  const refused = errno === 'EPERM' || errno === 'ENOSYS' || errno === undefined;
  return `the sandbox could not be applied: step ${stage} failed with ${errno ?? 'no errno'}${where}; nothing was run${
    refused ? ' (the cause may be an outer sandbox or container that intercepts system calls)' : ''
  }`;
}

function notExecuted({ errno, path }: FailedStep): Meaning {
  switch (errno) {
    case 'ENOENT':
      return [
        'program.not_executable',
        `${path} exists, but it or its interpreter is not there inside the sandbox; allow its directory with the option readable`,
      ];
    case 'EACCES':
      return [
        'program.not_executable',
        `${path} may not be executed in the sandbox; allow its directory with the option readable`,
      ];
    case 'ENOEXEC':
      return [
        'program.not_executable',
        `${path} is not a program: a script needs a first line such as #!/bin/sh`,
      ];
    case 'E2BIG':
      return ['program.not_executable', `${path} cannot be started: arguments and environment are too long`];
    default:
      return ['program.not_executable', `${path} cannot be executed (${errno})`];
  }
}

function notEntered(path: string, errno: string | undefined): string {
  const where = `the working directory ${path}`;
  const allow = 'allow it with the option readable or the option writable';
  switch (errno) {
    case 'ENOTDIR':
      return `${where} is not a directory`;
    case 'ENOENT':
      return `${where} does not exist in the sandbox; make it, or, if it exists outside, ${allow}`;
    default:
      return `${where} cannot be entered in the sandbox (${errno}); ${allow}`;
  }
}

function notOpened({ errno, path }: FailedStep): Meaning {
  const what =
    errno === 'ELOOP'
      ? 'became a symbolic link since the policy was resolved'
      : `cannot be opened (${errno})`;
  return [
    errno === 'ENOENT' ? 'policy.path_missing' : 'confinement.failed',
    `${path}, which the policy names, ${what}`,
  ];
}

const noPrivatePlace: Says = ({ errno, path }) => [
  'confinement.failed',
  errno === 'ENOSPC' || errno === 'EDQUOT'
    ? `there is no room for a private directory in ${path} (${errno}); free some (df, df -i), or set TMPDIR to a place with room`
    : `no private directory can be made in ${path} (${errno}); set TMPDIR to a writable directory`,
];

const noLayer: Says = ({ errno }) => [
  'changes.unavailable',
  `a preview is not possible here: no copy-on-write layer can be mounted over the workspace (overlayfs: ${errno}); it needs Linux 5.11, and XDG_STATE_HOME on a file system that can carry one (ext4, xfs, btrfs; tmpfs from Linux 6.6), which those of containers often cannot`,
];

const endedTooEarly: Says = ({ path }) =>
  `a process that prepares the sandbox was ended too early${path === '' ? '' : ` (${path})`}, from outside or because memory ran out; nothing was run; try again`;

const outsideOfIt: Says = ({ stage, errno, path }) =>
  `a process is not in the sandbox that was made for it (${path === '' ? stage : `${stage} at ${path}`}: ${errno}); nothing was run`;

const noWarden: Says = ({ stage, errno }) =>
  `the process that ends what the command starts cannot be made (${stage === 'warden' ? '' : `${stage.slice('warden.'.length)}: `}${errno}); nothing was run`;

/** THE table of stages that mean something of their own; any other is a step that could not be applied. */
const STAGES: ReadonlyMap<string, Says> = new Map<string, Says>([
  ['exec', notExecuted],
  ['view.layer', noLayer],
  ['cwd', ({ errno, path }) => ['cwd.unusable', notEntered(path, errno)]],
  [
    'stdio',
    ({ errno }) =>
      errno === 'EISDIR'
        ? 'a standard stream is a directory, which would lead out of the sandbox; redirect it to a file'
        : undefined,
  ],
  [
    'terminal',
    ({ errno, path }) =>
      `no terminal can be made for the command (${errno}${path === '' ? '' : ` at ${path}`}); run it without one, or end programs that hold many terminals (sysctl kernel.pty.nr counts them)`,
  ],
  [
    'cache.lock',
    ({ errno, path }) => [
      'cache.in_use',
      errno === 'EAGAIN'
        ? `the cache of this workspace is being cleared, and that takes too long (${path} is locked); try again`
        : `${path} cannot be locked (${errno}), so the cache could be cleared while the command uses it; run sandbox-run cache clear`,
    ],
  ],
  ['landlock.open', notOpened],
  ['view.open', notOpened],
  ['setup.ended', endedTooEarly],
  ['child.ended', endedTooEarly],
  ['namespace.check', outsideOfIt],
  ['view.check', outsideOfIt],
  ['slot.incomplete', outsideOfIt],
  ['warden', noWarden],
  [
    'rehearsal',
    ({ errno }) =>
      `no command can be started and supervised here: a throw-away child did not end as it should (${errno ?? 'without an errno'}); nothing was run`,
  ],
  [
    'launcher',
    ({ path }) =>
      `Firejail could not set up the sandbox (it ended with ${path}; its own message is in standard error); nothing was run`,
  ],
  [
    'launcher.others',
    ({ errno }) =>
      errno === undefined
        ? 'Firejail left a process in the sandbox that is less restricted than the command, and that the command could take over (a login shell, for example); nothing was run; update Firejail or choose another backend'
        : `/proc does not show whether Firejail left a process in the sandbox that the command could take over (${errno}); nothing was run; choose another backend`,
  ],
  ['launcher.exec', ({ errno, path }) => `${path} cannot be executed any more (${errno}); nothing was run`],
  [
    'launcher.program',
    () =>
      'the program sandbox-run-begin, beside the addon, is missing or was changed; install sandbox-run again (in a checkout: npm run build:native)',
  ],
  // The following stages fail after the command has run.
  [
    'wait',
    () =>
      'the command ran, but its exit status is lost: something else in this process waits for every child',
  ],
  [
    'supervision',
    ({ errno }) =>
      `the command ran and was ended, because its time and its limits could not be watched any more (${errno})`,
  ],
  [
    'warden_lost',
    () =>
      'the command ran and was ended, because its warden (the process that ends what the command started) was ended, by the command itself or from outside',
  ],
  [
    'cgroup.lost',
    ({ path }) =>
      `the command ran and was ended, because its control group ${path}, which held its limits, was removed from outside`,
  ],
  [
    'launcher.lost',
    () =>
      'the command ran, but its exit status is not known: the process that waited for it inside Firejail was ended, by the command itself or from outside',
  ],
]);

/** Messages for all stages whose names begin so. */
const FAMILIES: readonly (readonly [string, Says])[] = [
  ['warden.', noWarden],
  ['private_', noPrivatePlace],
];

const familyOf = (stage: string) => FAMILIES.find(([beginning]) => stage.startsWith(beginning))?.[1];
