import type { ErrorCode } from '../errors/codes.ts';
import { errnoName } from '../kernel/errno.ts';
import type { ExecutionError } from '../model/execution-result.ts';
import type { NativeFailure } from '../native/contract.ts';

/** What a failed step of the launch means to the caller. */
export function describeFailure(failure: NativeFailure): ExecutionError {
  const errno = failure.errno === 0 ? undefined : errnoName(failure.errno);
  const path = failure.path === '' ? undefined : failure.path;
  const [code, message] = meaning(failure.stage, errno, path);
  return { code, message, stage: failure.stage, errno, path };
}

function meaning(stage: string, errno: string | undefined, path = ''): readonly [ErrorCode, string] {
  if (errno === 'EMFILE' || errno === 'ENFILE') {
    return [
      'launch.failed',
      'too many files are open for one more command; run fewer at a time, or raise the limit (`ulimit -n`)',
    ];
  }
  if (stage === 'exec') return execMeaning(errno, path);
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
      `no terminal can be made for the command (${errno}${path === '' ? '' : ` at ${path}`}); run it without one, or end what holds many (sysctl kernel.pty.nr counts them)`,
    ];
  }
  if (stage === 'wait') {
    return [
      'launch.failed',
      'the command ran, but its exit status is lost: something else in this process waits for every child',
    ];
  }
  if (stage === 'warden_lost') {
    return [
      'launch.failed',
      'the command ran, but its warden was ended from outside or by the command itself, which ends the command; what else it started may still run',
    ];
  }
  if (stage === 'warden') {
    return [
      'launch.failed',
      `no process can be made that ends what the command starts (${errno}); nothing was run`,
    ];
  }
  if (stage.startsWith('private_')) {
    return [
      'confinement.failed',
      `no private directory can be made in ${path} (${errno}); set TMPDIR to a writable directory`,
    ];
  }
  const where = path === '' ? '' : ` at ${path}`;
  return [
    'launch.failed',
    `the sandbox could not be applied: step ${stage} failed with ${errno ?? 'no errno'}${where}; nothing was run`,
  ];
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
        `${path} is no program: a script needs a first line such as #!/bin/sh`,
      ];
    case 'E2BIG':
      return ['program.not_executable', `${path} cannot be started: arguments and environment are too long`];
    default:
      return ['program.not_executable', `${path} cannot be executed (${errno})`];
  }
}

/** Stages whose failure means that this host allows no namespaces, not that the plan is wrong. */
const NAMESPACE_STAGES =
  /^(namespace\.(create|user|uid_map|setgroups|gid_map|mount|loopback|open)|view\.(propagation|root|build|pivot|create))$/;
/** EUSERS, too many namespaces, which Node has no name for, is 87. */
const REFUSALS = new Set([
  'errno 87',
  'EPERM',
  'EACCES',
  'ENOSYS',
  'EINVAL',
  'ENOSPC',
  'EOPNOTSUPP',
  'ENODEV',
]);

/** Why namespaces cannot be had, if that is what the failure says. */
export function namespaceRefusal(failure: NativeFailure): string | undefined {
  const errno = errnoName(failure.errno);
  if (!NAMESPACE_STAGES.test(failure.stage) || !REFUSALS.has(errno)) return undefined;
  const where = failure.path === '' ? '' : ` at ${failure.path}`;
  return `this host refuses namespaces (${failure.stage}: ${errno}${where})`;
}
