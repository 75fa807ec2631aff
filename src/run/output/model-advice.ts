import { ERROR_CODES, type ErrorCode } from '../../errors/codes.ts';
import type { ExecutionError, ExecutionResult } from '../../model/execution-result.ts';

/**
 * What a model can do after something was stopped: ask the user, do it in another way, or not do it. Nothing here says how
 * to get around a rule.
 */
const AFTER_CHECK: Readonly<Record<string, string>> = {
  syntax: 'write it as simpler commands, without the part that was not understood',
  paths: 'use paths within what is allowed',
  reach: 'do it without the network',
  leaves: 'do it without acting outside the sandbox',
  losses: 'do not delete work that cannot be brought back; move it to another place instead',
  dangerous: 'do it without this program',
  'allow-list': 'use a program that the policy lists',
  arguments: 'do it without this option',
  environment: 'do it without this variable',
  application: 'write it as one simple command with plain paths',
  'git-guard': 'let the user push, pull and rebase',
  rules: 'do it another way, or leave this step to the user',
  autonomy: 'only reading is allowed now: tell the user what you would do',
  budget: 'wait, or tell the user that the number of commands for this hour is used up',
  session: 'use commands that do not change the shell',
};

const OTHERWISE = 'do it in another way that is allowed';
const TELL =
  'If that is not possible, tell the user what you need and why; only the user can change the policy.';

/** For a command that the policy refuses. */
export function adviceAfterRefusal(check: string | undefined): string {
  const advice = check === undefined || !Object.hasOwn(AFTER_CHECK, check) ? OTHERWISE : AFTER_CHECK[check];
  return `Next: ${advice ?? OTHERWISE}. ${TELL} Do not repeat it unchanged.`;
}

/** For a command that the policy asks about. `id`: that of the question. */
export function adviceAfterQuestion(id: string | undefined): string {
  return `Next: tell the user what the command is for. The user can approve it with \`sandbox-run approvals approve ${id ?? 'ID'}\`${id === undefined ? ' while it waits (`sandbox-run approvals list` shows the ID)' : ''}. Only the user may approve. Or ${OTHERWISE}.`;
}

/** For a command that a person was asked about and refused. */
export const AFTER_NO =
  'Next: the user was asked and refused. Do not ask for the same again; ask the user how to go on.';

const AFTER_ERROR: Readonly<Partial<Record<ErrorCode, string>>> = {
  'program.not_found': 'Next: use a program that is there, or tell the user which one is missing.',
  'program.not_executable':
    'Next: use a program that may be executed here, or tell the user what you need it for.',
  'cwd.unusable': 'Next: name a directory within what is allowed.',
  'approval.void': 'Next: something changed after the approval. Ask again, or tell the user.',
};

/** For a command that could not be started. */
export function adviceAfterFailure(code: string): string {
  return (
    (Object.hasOwn(AFTER_ERROR, code) ? AFTER_ERROR[code as ErrorCode] : undefined) ??
    'Next: the sandbox failed, not the command. Tell the user.'
  );
}

const LESS: Readonly<Record<NonNullable<ExecutionResult['limit']>['name'], string>> = {
  memory: 'work on less data at a time',
  processes: 'start fewer processes at a time',
  cpu: 'work in smaller steps',
  tmp: 'keep fewer temporary files, or keep them in the workspace',
  idle: 'let the command print its progress, or work in smaller steps',
  'file-size': 'write smaller files',
};

/** For a command that was ended. */
export function adviceAfterEnd(result: Pick<ExecutionResult, 'status' | 'limit'>): string {
  if (result.limit !== undefined)
    return `Next: ${LESS[result.limit.name]}, or tell the user, who can set limits.${LIMIT_KEYS[result.limit.name]}.`;
  if (result.status === 'timed-out')
    return 'Next: work in smaller steps, or tell the user that it needs more time. What it did before is not undone.';
  return 'Next: it was canceled from outside. Run it again only if the user wants it.';
}

const LIMIT_KEYS: Readonly<Record<keyof typeof LESS, string>> = {
  memory: 'memory',
  processes: 'processes',
  cpu: 'cpu_seconds',
  tmp: 'tmp_bytes',
  idle: 'idle_timeout_seconds',
  'file-size': 'file_size',
};

/** A sentence without advice, for codes whose message tells the operator what to do. */
const FACTS: Readonly<Partial<Record<ErrorCode, (path: string, errno: string) => string>>> = {
  'cwd.unusable': (path, errno) => `the working directory ${path} cannot be entered in the sandbox${errno}`,
  'program.not_found': (path) => `there is no program ${path}`,
  'program.not_executable': (path, errno) => `${path} cannot be executed in the sandbox${errno}`,
};

/** Codes whose messages are for the author of the command, and name no options. */
const SAID_AS_IT_IS: ReadonlySet<string> = new Set<ErrorCode>(['command.denied', 'approval.void']);

/**
 * Why something was stopped where no check of the policy says it. Messages of errors are the operator's: they name options
 * that let a command through. Where only the message knows more, a model gets the meaning of the code.
 */
export function reasonWithoutAdvice({
  code,
  message,
  about = { path: undefined, errno: undefined },
}: {
  readonly code: string;
  readonly message: string;
  readonly about?: Pick<ExecutionError, 'path' | 'errno'>;
}): string {
  // For a directory that was never entered, an adapter says what it wants instead.
  const isSaid = SAID_AS_IT_IS.has(code) || (code === 'cwd.unusable' && about.path === undefined);
  if (isSaid || !Object.hasOwn(ERROR_CODES, code)) return message;
  const known = code as ErrorCode;
  const fact = about.path === undefined ? undefined : FACTS[known];
  return fact === undefined
    ? ERROR_CODES[known].meaning
    : fact(about.path ?? '', about.errno === undefined ? '' : ` (${about.errno})`);
}
