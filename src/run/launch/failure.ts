import { describeRootFailure } from '../../backends/firejail/root-directory.ts';
import type { ErrorCode } from '../../errors/codes.ts';
import { shortageOf } from '../../errors/shortage.ts';
import { errnoName } from '../../kernel/errno.ts';
import type { ExecutionError } from '../../model/execution-result.ts';
import type { NativeFailure } from '../../native/contract.ts';

/** What a failed step of the launch means to the caller. `treeEnded`: no process of the command runs any more. */
export function describeFailure(failure: NativeFailure, treeEnded = true): ExecutionError {
  const errno = failure.errno === 0 ? undefined : errnoName(failure.errno);
  const path = failure.path === '' ? undefined : failure.path;
  const [code, said] = meaning(failure, errno, path);
  const message = treeEnded ? said : `${said}; processes that it started may still run`;
  return { code, message, stage: failure.stage, errno, path };
}

function meaning(failure: NativeFailure, errno: string | undefined, path = ''): readonly [ErrorCode, string] {
  const { stage } = failure;
  const short = shortageOf(errno);
  if (short !== undefined && isForWantOf(errno, stage)) return ['launch.failed', short];
  if (stage === 'exec') return execMeaning(errno, path);
  if (stage === 'launcher') {
    return [
      'launch.failed',
      `Firejail could not set up the sandbox (it ended with ${path}; its own message is in standard error); nothing was run`,
    ];
  }
  if (stage === 'launcher.others') {
    return [
      'launch.failed',
      errno === undefined
        ? 'Firejail left a process in the sandbox that is less restricted than the command, and that the command could take over (a login shell, for example); nothing was run; update Firejail or choose another backend'
        : `/proc does not show whether Firejail left a process in the sandbox that the command could take over (${errno}); nothing was run; choose another backend`,
    ];
  }
  const root = describeRootFailure(failure);
  if (root !== undefined) return ['launch.failed', `${root}; nothing was run`];
  if (stage === 'launcher.exec')
    return ['launch.failed', `${path} cannot be executed any more (${errno}); nothing was run`];
  if (stage === 'launcher.program') {
    return [
      'launch.failed',
      'the program sandbox-run-begin, beside the addon, is missing or was changed; install sandbox-run again (in a checkout: npm run build:native)',
    ];
  }
  if (stage === 'cache.lock') {
    return [
      'cache.in_use',
      errno === 'EAGAIN'
        ? `the cache of this workspace is being cleared, and that takes too long (${path} is locked); try again`
        : `${path} cannot be locked (${errno}), so the cache could be cleared while the command uses it; run sandbox-run cache clear`,
    ];
  }
  if (stage === 'cwd') {
    return [
      'cwd.unusable',
      `the working directory ${path} cannot be entered in the sandbox (${errno}); allow it with --ro or --rw`,
    ];
  }
  if (stage === 'landlock.open' || stage === 'view.open') {
    const what =
      errno === 'ELOOP'
        ? 'became a symbolic link since the policy was resolved'
        : `cannot be opened (${errno})`;
    return [
      errno === 'ENOENT' ? 'policy.path_missing' : 'confinement.failed',
      `${path}, which the policy names, ${what}`,
    ];
  }
  if (stage === 'stdio' && errno === 'EISDIR') {
    return [
      'launch.failed',
      'a standard stream is a directory, which would lead out of the sandbox; redirect it to a file',
    ];
  }
  if (stage === 'terminal') {
    return [
      'launch.failed',
      `no terminal can be made for the command (${errno}${path === '' ? '' : ` at ${path}`}); run it without one, or end programs that hold many terminals (sysctl kernel.pty.nr counts them)`,
    ];
  }
  if (stage === 'wait') {
    return [
      'launch.failed',
      'the command ran, but its exit status is lost: something else in this process waits for every child',
    ];
  }
  if (stage === 'supervision') {
    return [
      'launch.failed',
      `the command ran and was ended, because its time and its limits could not be watched any more (${errno})`,
    ];
  }
  if (stage === 'warden_lost') {
    return [
      'launch.failed',
      'the command ran and was ended, because its warden (the process that ends what the command started) was ended, by the command itself or from outside',
    ];
  }
  if (stage === 'cgroup.lost') {
    return [
      'launch.failed',
      `the command ran and was ended, because its control group ${path}, which held its limits, was removed from outside`,
    ];
  }
  if (stage === 'launcher.lost') {
    return [
      'launch.failed',
      'the command ran, but its exit status is not known: the process that waited for it inside Firejail was ended, by the command itself or from outside',
    ];
  }
  if (stage === 'setup.ended' || stage === 'child.ended') {
    const how = path === '' ? '' : ` (${path})`;
    return [
      'launch.failed',
      `a process that prepares the sandbox was ended too early${how}, from outside or because memory ran out; nothing was run; try again`,
    ];
  }
  if (stage === 'namespace.check' || stage === 'view.check' || stage === 'slot.incomplete') {
    return [
      'launch.failed',
      `a process is not in the sandbox that was made for it (${path === '' ? stage : `${stage} at ${path}`}: ${errno}); nothing was run`,
    ];
  }
  if (stage === 'rehearsal') {
    return [
      'launch.failed',
      `no command can be started and supervised here: a throw-away child did not end as it should (${errno ?? 'without an errno'}); nothing was run`,
    ];
  }
  if (stage === 'warden' || stage.startsWith('warden.')) {
    return [
      'launch.failed',
      `the process that ends what the command starts cannot be made (${stage === 'warden' ? '' : `${stage.slice('warden.'.length)}: `}${errno}); nothing was run`,
    ];
  }
  if (stage.startsWith('private_')) {
    return [
      'confinement.failed',
      errno === 'ENOSPC' || errno === 'EDQUOT'
        ? `there is no room for a private directory in ${path} (${errno}); free some (df, df -i), or set TMPDIR to a place with room`
        : `no private directory can be made in ${path} (${errno}); set TMPDIR to a writable directory`,
    ];
  }
  const where = path === '' ? '' : ` at ${path}`;
  const refused = errno === 'EPERM' || errno === 'ENOSYS' || errno === undefined;
  return [
    'launch.failed',
    `the sandbox could not be applied: step ${stage} failed with ${errno ?? 'no errno'}${where}; nothing was run${
      refused ? ' (the cause may be an outer sandbox or container that intercepts system calls)' : ''
    }`,
  ];
}

/** True where the errno has only this meaning; for seccomp and exec it has others. */
function isForWantOf(errno: string | undefined, stage: string): boolean {
  return (
    errno === 'EMFILE' ||
    errno === 'ENFILE' ||
    /^(thread|event|clone|warden|namespace|view)(\.|$)/.test(stage)
  );
}

function execMeaning(errno: string | undefined, path: string): readonly [ErrorCode, string] {
  switch (errno) {
    case 'ENOENT':
      return [
        'program.not_executable',
        `${path} exists, but it or its interpreter is not there inside the sandbox; allow its directory with --ro`,
      ];
    case 'EACCES':
      return [
        'program.not_executable',
        `${path} may not be executed in the sandbox; allow its directory with --ro`,
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
