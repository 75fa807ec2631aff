import { ERROR_CODES, type ErrorCode } from '../../errors/codes.ts';
import { SandboxError } from '../../errors/sandbox-error.ts';
import { refusedCommand, type SentResult, type ServerMessage } from '../../gate/shells/messages.ts';
import type { ApprovalRequest, Approver } from '../../model/approval.ts';
import type { Taint } from '../../model/decision.ts';
import { loadAddon } from '../../native/load.ts';
import { exitStatus } from '../../run/launch/exit-status.ts';
import { connectToSession, listShells } from '../../run/session/shell-places.ts';
import { deferred } from '../../util/deferred.ts';
import { visibleJson, visibleText } from '../../util/visible-text.ts';
import { hasTerminal } from '../shared/ask-here.ts';
import { createProgram, parseArguments } from '../shared/parse.ts';
import { parseTaints } from '../shared/policy-options.ts';
import { printBytes, printError, printOut } from '../shared/print.ts';
import { parseSeconds } from '../shared/quantities.ts';

/** Options of `session run`. */
interface ShellRunArguments {
  shell?: string;
  approved?: boolean;
  taint?: readonly Taint[];
  timeout?: number;
  json?: boolean;
  quiet?: boolean;
}

const RUN_HELP = `
Examples:
  sandbox-run session run build -- make -j4
  sandbox-run session run build 'cd src && . ../env/bin/activate'
  sandbox-run session run build --timeout 600 --json -c 'npm test'

Ctrl-C interrupts the command; the session goes on. What the policy asks is asked here if there is a
terminal. A command that ends the shell (exit, exec) gets its status, and a new shell goes on.

Exit status: the command's; 124 time-out; 130 interrupted; 125 there is no such session; 126 refused.`;

/**
 * Parses `NAME [options] [--] COMMAND…`, with the options also before the name; `undefined` if help was printed.
 * @throws {SandboxError} `usage.invalid`.
 */
export function parseShellRun(
  args: readonly string[],
): { readonly name: string; readonly command: string; readonly options: ShellRunArguments } | undefined {
  const parser = () =>
    createProgram('sandbox-run session run')
      .usage(
        "NAME [options] [--] COMMAND [ARG...]\n       sandbox-run session run NAME [options] 'SHELL STRING'",
      )
      .description('Runs a command in a shell session.')
      .argument('[name]', 'the session')
      .argument('[command...]', 'the program and its arguments, or a shell string')
      .passThroughOptions()
      .option('-c, --shell <string>', 'run a shell string')
      .option('--approved', 'you looked at this command: run it though the policy asks')
      .option('--taint <list>', 'what the session was exposed to: corruption, secret', parseTaints)
      .option('--timeout <seconds>', 'interrupt the command after this time; 0: never', parseSeconds)
      .option('--json', 'print one result object, with captured output, instead of passing it through')
      .option('-q, --quiet', 'no remarks on standard error')
      .addHelpText('after', RUN_HELP);
  const before = parseArguments(parser(), args);
  if (before === undefined) return undefined;
  const [name, ...rest] = before.args;
  if (name === undefined)
    throw new SandboxError('usage.invalid', 'no session is named (see sandbox-run session run --help)');
  const behind = parseArguments(parser(), rest);
  if (behind === undefined) return undefined;
  const options = { ...before.opts<ShellRunArguments>(), ...behind.opts<ShellRunArguments>() };
  return { name, command: shellStringOf(options.shell, behind.args), options };
}

/** The shell string of `-c STRING`, of one operand, which is one, or of several, which are words. */
function shellStringOf(shell: string | undefined, operands: readonly string[]): string {
  if (shell !== undefined && operands.length > 0)
    throw new SandboxError(
      'usage.invalid',
      `-c takes one string; "${operands[0]}" is left over (quote it whole)`,
    );
  const text = shell ?? (operands.length === 1 ? operands[0] : operands.map(quoted).join(' '));
  if (text === undefined || text === '')
    throw new SandboxError('usage.invalid', 'no command given (see sandbox-run session --help)');
  return text;
}

function quoted(word: string): string {
  return /^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`;
}

/** Runs a command in a session and returns the exit status. */
export async function runInShell(name: string, command: string, options: ShellRunArguments): Promise<number> {
  const refused = refusedCommand(command);
  if (refused !== undefined) throw new SandboxError('usage.invalid', refused);
  const outcome = deferred<number>();
  const withdrawn = new AbortController();
  let approver: Approver | undefined;
  let interrupted = false;
  const interrupt = () => {
    interrupted = true;
    withdrawn.abort();
    connected.send({ type: 'interrupt' });
  };
  const ask = async (question: number, request: ApprovalRequest, timeoutMs: number) => {
    const { createTerminalApprover } = await import('../../run/gate-parts.ts');
    approver ??= createTerminalApprover({ tryLock: loadAddon().tryLock, onInterrupt: interrupt });
    const answer = await approver.ask(request, { timeoutMs, signal: withdrawn.signal });
    connected.send({
      type: 'answer',
      question,
      approved: answer.approved,
      ...(answer.approved ? { scope: answer.scope } : { reason: answer.reason }),
    });
  };
  const onMessage = (message: ServerMessage) => {
    switch (message.type) {
      case 'output':
        printBytes(message.stream === 'stdout' ? 1 : 2, Buffer.from(message.data, 'base64'));
        break;
      case 'ask':
        void ask(message.question, message.request, message.timeout);
        break;
      case 'queued':
        if (options.quiet !== true)
          printError(
            `waits for an answer: sandbox-run approvals show ${message.id}, approve ${message.id} or deny ${message.id}`,
          );
        break;
      case 'result':
        if (options.json === true) printOut(`${JSON.stringify(message.result)}\n`);
        if (options.quiet !== true) remark(message.result, message.confinement, options.json === true);
        outcome.resolve(
          interrupted && message.result.status === 'canceled' ? 130 : exitStatus(message.result),
        );
        break;
      case 'error':
        outcome.reject(new SandboxError(errorCode(message.code), message.message));
        break;
      case 'info':
      case 'stopped':
        break;
    }
  };
  const connected = await connectToSession(name, onMessage, () =>
    outcome.reject(new SandboxError('session.closed', `the session ${name} ended while the command ran`)),
  );
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, interrupt);
  const { timeout, approved, taint, json } = options;
  connected.send({
    type: 'run',
    command,
    stream: json !== true,
    terminal: hasTerminal(),
    ...(timeout === undefined ? {} : { timeout }),
    ...(approved === undefined ? {} : { approved }),
    ...(taint === undefined ? {} : { taints: [...taint] }),
  });
  try {
    return await outcome.promise;
  } finally {
    for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.off(signal, interrupt);
    connected.close();
  }
}

function errorCode(code: string): ErrorCode {
  return Object.hasOwn(ERROR_CODES, code) ? (code as ErrorCode) : 'session.closed';
}

function remark(result: SentResult, confinement: string, json: boolean): void {
  for (const warning of result.warnings) printError(`warning: ${warning}`);
  if (result.restarted)
    printError(
      'the shell ended with this command; a new one goes on in the same directory, without its functions',
    );
  if (json) return;
  if (result.error !== undefined && result.error !== null) printError(result.error.message);
  if (result.status === 'timed-out')
    printError(`timed out after ${(result.durationMs / 1000).toFixed(1)} s (--timeout SECONDS changes it)`);
  if (result.status === 'exited' && result.exitCode !== 0)
    printError(`exited ${result.exitCode} in the sandbox: ${confinement}`);
}

/** Ends a session and waits until it has ended. */
export async function stopShell(name: string): Promise<string> {
  const ended = deferred<void>();
  const connected = await connectToSession(
    name,
    () => {},
    () => ended.resolve(),
  );
  connected.send({ type: 'stop' });
  await ended.promise;
  return `${name}: stopped\n`;
}

/** The lines about shell sessions in `session list`. */
export async function describeShells(json: boolean): Promise<string> {
  const shells = await listShells();
  if (json)
    return shells.map((found) => `${visibleJson(JSON.stringify({ kind: 'shell', ...found }))}\n`).join('');
  const time = (at: number) => new Date(at).toISOString();
  return shells
    .map(
      ({ id, cwd, running, startedAt, lastUsedAt, pid }) =>
        `shell ${id}: ${running ? 'running' : 'idle'} in ${visibleText(cwd)}; started ${time(startedAt)}, last used ${time(lastUsedAt)}, process ${pid}\n`,
    )
    .join('');
}
