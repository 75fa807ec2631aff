/**
 * Error numbers that a filter may return, by name (asm-generic/errno-base.h and errno.h; x64 and arm64 share them).
 * Add a row to use another one.
 */
const SECCOMP_ERRNOS = {
  EPERM: 1,
  EACCES: 13,
  EINVAL: 22,
  ENOSYS: 38,
  EPROTONOSUPPORT: 93,
  EOPNOTSUPP: 95,
  EAFNOSUPPORT: 97,
} as const;

/** Name of an error that a filter may return. */
export type SeccompErrno = keyof typeof SECCOMP_ERRNOS;

/** What happens to a system call: it runs, it fails with an error, or it ends the whole process by SIGSYS. */
export type SeccompAction =
  | { readonly kind: 'allow' }
  | { readonly kind: 'errno'; readonly errno: SeccompErrno }
  | { readonly kind: 'kill-process' };

/** The call runs. */
export const ALLOW: SeccompAction = { kind: 'allow' };

/** The process ends by SIGSYS, uncatchable (`SECCOMP_RET_KILL_PROCESS`, Linux 4.14). */
export const KILL_PROCESS: SeccompAction = { kind: 'kill-process' };

/** The call does not run and fails with the named error. */
export function refuseWith(errno: SeccompErrno): SeccompAction {
  return { kind: 'errno', errno };
}

const RET_KILL_PROCESS = 0x8000_0000;
const RET_ERRNO = 0x0005_0000;
const RET_ALLOW = 0x7fff_0000;

/** The 32-bit value that a filter program returns for the action (`SECCOMP_RET_*` of linux/seccomp.h). */
export function actionValue(action: SeccompAction): number {
  switch (action.kind) {
    case 'allow':
      return RET_ALLOW;
    case 'errno':
      return RET_ERRNO + SECCOMP_ERRNOS[action.errno];
    case 'kill-process':
      return RET_KILL_PROCESS;
  }
}

/** Text of a filter's return value, as in `ALLOW`, `ERRNO EPERM`, `KILL_PROCESS`; hexadecimal if not one of ours. */
export function formatActionValue(value: number): string {
  if (value === RET_ALLOW) return 'ALLOW';
  if (value === RET_KILL_PROCESS) return 'KILL_PROCESS';
  const errno = Object.entries(SECCOMP_ERRNOS).find((entry) => RET_ERRNO + entry[1] === value);
  return errno === undefined ? `0x${value.toString(16)}` : `ERRNO ${errno[0]}`;
}
