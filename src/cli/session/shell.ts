import { SandboxError } from '../../base/errors/sandbox-error.ts';
import { readableWord } from '../../base/shell-quote.ts';
import { visibleText } from '../../base/visible-text.ts';
import type { Approver, Taint } from '../../model/index.ts';
import { briefly, exitStatus } from '../../run/index.ts';
import {
  connectToSession,
  listShells,
  type Question,
  receivedRequest,
  receivedTurn,
  refusedCommand,
  type ServerConnection,
  type Told,
} from '../../serve/index.ts';
import { FULL } from '../run/options.ts';
import { printEnd, printRestart } from '../run/pass-through.ts';
import { hasTerminal, sayQueued, terminalApprover } from '../shared/ask-here.ts';
import { parseSeconds, TAINTS_SEEN } from '../shared/options.ts';
import { createProgram, parseArguments } from '../shared/parse.ts';
import { jsonLine, printBytes, printNote, printOut } from '../shared/print.ts';
import { ENDING, onSignals } from '../shared/signals.ts';

/** Options of `session run`. */
interface ShellRunArguments {
  shell?: string;
  approved?: boolean;
  taint?: readonly Taint[];
  timeout?: number;
  json?: boolean;
  'json=full'?: boolean;
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
    createProgram('sandbox-run session run', 'Runs a command in a shell session.', RUN_HELP)
      .usage(
        "NAME [options] [--] COMMAND [ARG...]\n       sandbox-run session run NAME [options] 'SHELL STRING'",
      )
      .argument('[name]', 'the session')
      .argument('[command...]', 'the program and its arguments, or a shell string')
      .passThroughOptions()
      .option('-c, --shell <string>', 'run a shell string')
      .option('--approved', 'you looked at this command: run it though the policy asks')
      .option(...TAINTS_SEEN)
      .option('--timeout <seconds>', 'interrupt the command after this time; 0: never', parseSeconds)
      .option('--json', 'print one result object, with captured output, instead of passing it through')
      .option(FULL, 'the same with everything: what is enforced, every reason, what was used')
      .option('-q, --quiet', 'no remarks on standard error');
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
  const text = shell ?? (operands.length === 1 ? operands[0] : operands.map(readableWord).join(' '));
  if (text === undefined || text === '')
    throw new SandboxError('usage.invalid', 'no command given (see sandbox-run session --help)');
  return text;
}

/** Runs a command in a session and returns the exit status. */
export async function runInShell(name: string, command: string, options: ShellRunArguments): Promise<number> {
  const refused = refusedCommand(command);
  if (refused !== undefined) throw new SandboxError('usage.invalid', refused);
  const { timeout, approved, taint, 'json=full': full = false, quiet = false } = options;
  const json = options.json === true || full;
  const given = new AbortController();
  const interrupt = () => given.abort();
  const asker = new Asker(interrupt);
  const connection = await connectToSession(name, {
    approvals: hasTerminal(),
    onTold: (told) => hear(told, asker, quiet),
  });
  asker.answerTo(connection);
  using _ = onSignals(ENDING, interrupt);
  try {
    const sent = await connection.call(
      'session.run',
      {
        ...{ session: name, command, stream: !json, encoding: 'base64', escapes: 'keep' },
        ...(timeout === undefined ? {} : { timeout }),
        ...(approved === undefined ? {} : { approved }),
        ...(taint === undefined ? {} : { taints: [...taint] }),
      },
      { signal: given.signal },
    );
    const result = receivedTurn(sent, connection.about?.report);
    if (json)
      printOut(jsonLine({ ...(full ? result : briefly(result)), messageForModel: sent.messageForModel }));
    printEnd(result, { json, quiet });
    if (!quiet) {
      if (result.restarted) printRestart();
      if (!json && result.status === 'exited' && result.exitCode !== 0) {
        const info = await connection.call('session.info', { session: name }).catch(() => undefined);
        if (info === undefined) printNote('the session has ended');
      }
    }
    return given.signal.aborted && result.status === 'canceled' ? 130 : exitStatus(result);
  } catch (error) {
    throw error instanceof SandboxError && error.code === 'gate.unusable'
      ? new SandboxError('session.closed', `the session ${name} ended while the command ran`)
      : error;
  } finally {
    asker.end();
    connection.close();
  }
}

function hear(told: Told, asker: Asker, quiet: boolean): void {
  switch (told.method) {
    case 'output':
      printBytes(told.params.stream === 'stdout' ? 1 : 2, Buffer.from(told.params.data, 'base64'));
      break;
    case 'approvals.requested':
      void asker.ask(told.params);
      break;
    case 'approvals.withdrawn':
      asker.withdraw(told.params.question);
      break;
    case 'approvals.queued':
      if (!quiet) sayQueued(told.params.id);
      break;
    case 'ended':
      break;
  }
}

/** Asks on the terminal of this process what the session asks. */
class Asker {
  private readonly onInterrupt: () => void;
  private readonly open = new Map<string, AbortController>();
  private approver: Promise<Approver> | undefined;
  private connected: ServerConnection | undefined;

  constructor(onInterrupt: () => void) {
    this.onInterrupt = onInterrupt;
  }

  answerTo(connection: ServerConnection): void {
    this.connected = connection;
  }

  async ask(asked: Question): Promise<void> {
    const { question, expiresAt } = asked;
    const withdrawn = new AbortController();
    this.open.set(question, withdrawn);
    // One for all: it asks one question at a time.
    this.approver ??= terminalApprover(this.onInterrupt);
    const timeoutMs = Math.max(expiresAt - Date.now(), 0);
    const approver = await this.approver;
    const answer = await approver.ask(receivedRequest(asked), { timeoutMs, signal: withdrawn.signal });
    this.open.delete(question);
    const { approved } = answer;
    const more = answer.approved ? { scope: answer.scope } : { reason: answer.reason };
    // Too late is a no in any case.
    await this.connected?.call('approvals.answer', { question, approved, ...more }).catch(() => {});
  }

  withdraw(question: string): void {
    this.open.get(question)?.abort();
  }

  /** Nobody waits for an answer any more. */
  end(): void {
    for (const withdrawn of this.open.values()) withdrawn.abort();
  }
}

/** Ends a session and waits until it has ended. */
export async function stopShell(name: string): Promise<string> {
  const connection = await connectToSession(name);
  await connection.call('session.close', { session: name });
  await connection.ended;
  return `${name}: stopped\n`;
}

/** The lines about shell sessions in `session list`. */
export async function describeShells(json: boolean): Promise<string> {
  const shells = await listShells();
  if (json) return shells.map((found) => jsonLine({ kind: 'shell', ...found })).join('');
  const time = (at: number) => new Date(at).toISOString();
  return shells
    .map(
      ({ id, cwd, running, startedAt, lastUsedAt, pid }) =>
        `shell ${id}: ${running ? 'running' : 'idle'} in ${visibleText(cwd)}; started ${time(startedAt)}, last used ${time(lastUsedAt)}, process ${pid}\n`,
    )
    .join('');
}
