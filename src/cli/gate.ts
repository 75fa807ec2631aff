import { randomUUID } from 'node:crypto';
import { resolve } from 'node:path';
import { InvalidArgumentError } from 'commander';
import { ERROR_CODES } from '../base/errors/codes.ts';
import { SandboxError } from '../base/errors/sandbox-error.ts';
import { visibleLine, visibleText } from '../base/visible-text.ts';
import type { SandboxOptions, Taint } from '../model/index.ts';
import { createChecker } from '../run/index.ts';
import type { GateAnswer, GateOutcome, GateRequest, RefusedMessage } from '../serve/index.ts';
import { caller } from './shared/caller.ts';
import { POLICY_FILE, parseTaints, profileOption, wholeNumber } from './shared/options.ts';
import { withSubcommands } from './shared/parse.ts';
import { jsonLine, printError, printOut } from './shared/print.ts';
import { aborted, untilEnded } from './shared/signals.ts';

const HELP_AFTER = `
For agents in containers: the host decides which commands they may run, on a Unix socket that is
mounted into the container. JSON-RPC 2.0, one message per line, as sandbox-run serve --schema has it:
after initialize
  {"jsonrpc":"2.0","id":"1","method":"gate.check","params":{"command","session"?,"tool"?}}
  {"jsonrpc":"2.0","id":"1","result":{"decision":"allow" | "deny","reason"?}}
The command is refused if there is no answer, if the answer is late or malformed, and if the socket is closed.

Examples:
  sandbox-run gate serve --socket /run/user/1000/gate.sock
  sandbox-run gate check --socket /gate.sock -c 'git push'

More: sandbox-run gate serve --help, sandbox-run gate check --help`;

const SERVE_HELP = `
The kernel says who sends a request: the user that connected. That user is the principal, to which
sessions belong. An allow means only that the policy does not object. The command runs in the container,
and nothing here keeps it in. So the decisions do not rely on any enforcement.

The workspace should be mounted at the same path in the container, because paths are judged as they
are here. Do not put the socket where a sandboxed command can write.

Signals: SIGTERM, SIGINT and SIGHUP deny what is pending, remove the socket and end it.

Examples:
  sandbox-run gate serve --socket /run/user/1000/gate.sock --workspace ~/project
  docker run -v /run/user/1000/gate.sock:/gate.sock -e SANDBOX_RUN_GATE=/gate.sock IMAGE
  sandbox-run gate serve --socket /srv/box/gate.sock --allow-uid 100999

Exit status: 0 after a signal; 125 if it cannot start.`;

const CHECK_HELP = `
The program around the model must call this before it runs a command; the model must not. A program in
the container can skip this call or send it a false command. So the host trusts nothing that is decided
here. What must always hold, the container itself must enforce.

A command that the container's own policy allows at low risk and that cannot use the network is decided
here, without the host, unless --taint is given. The host is asked about every other command.

Examples:
  sandbox-run gate check --socket /gate.sock -c "$COMMAND" && bash -c "$COMMAND"
  SANDBOX_RUN_GATE=/gate.sock sandbox-run gate check --session build-7 --json -c 'npm publish'

Exit status: 0 allowed; 126 refused, or no answer; 125 wrong usage.`;

/** Options of both: where the gate is, and whose policy it is. */
interface GateOptions extends Pick<SandboxOptions, 'workspace' | 'profile' | 'policy'> {
  readonly socket?: string;
}

interface ServeOptions extends GateOptions {
  readonly allowUid?: readonly number[];
  readonly quiet?: boolean;
  readonly audit: boolean;
}

interface CheckOptions extends GateOptions {
  readonly shell: string;
  readonly session?: string;
  readonly tool?: string;
  readonly taint?: readonly Taint[];
  readonly timeout?: number;
  readonly json?: boolean;
}

/** A little longer than people have for their answer. */
const TIMEOUT_MS = 310_000;
/** Of what a client sent. */
const MAX_SHOWN = 200;

/** `sandbox-run gate`: decides for agents in containers, and asks for them. */
export async function gate(args: readonly string[]): Promise<number> {
  const { command, does, run } = withSubcommands(
    'sandbox-run gate',
    'Decides about the commands of agents in containers.',
    HELP_AFTER,
  );
  const collect = (text: string, before: readonly number[] = []) => [...before, parseUid(text)];
  const ofGate = (name: string, description: string, help: string) =>
    command(name, description, help)
      .option('--socket <path>', 'the Unix socket (check: default $SANDBOX_RUN_GATE)')
      .option('--workspace <dir>', 'the directory where commands run (default: the current directory)')
      .addOption(profileOption())
      .option(...POLICY_FILE);
  ofGate('serve', 'answers requests until a signal ends it', SERVE_HELP)
    .option('--allow-uid <uid>', 'a further user id that may send requests; repeatable', collect)
    .option('--no-audit', 'no audit trail, unless the policy has one')
    .option('-q, --quiet', 'no line on standard error for each decision')
    .action((options: ServeOptions) => does(() => serveGate(options)));
  ofGate('check', 'asks whether a command may run', CHECK_HELP)
    .requiredOption('-c, --shell <string>', 'the shell string that is about to be run')
    .option('--session <id>', 'the session of the agent')
    .option('--tool <name>', 'the tool that would run the command')
    .option('--taint <list>', 'what the session has seen: corruption, secret', parseTaints)
    .option('--timeout <seconds>', 'how long to wait for the answer (default: 310)', parseGateSeconds)
    .option('--json', 'one JSON object')
    .action((options: CheckOptions) => does(() => checkAtGate(options)));
  return run(args);
}

/** Serves until a signal comes. Returns the exit status. */
async function serveGate(options: ServeOptions): Promise<number> {
  const { socket, allowUid: allowedUids = [], quiet = false, ...sandbox } = options;
  if (socket === undefined) throw new SandboxError('usage.invalid', 'gate serve needs --socket');
  const { startGateService } = await import('../serve/gate/gate-service.ts');
  const say = quiet ? () => {} : printError;
  const path = resolve(socket);
  // From the first moment on: a signal during the start is not lost either.
  await untilEnded(async ({ signal }) => {
    const service = await startGateService({
      ...{ sandbox, allowedUids, socket: path, around: caller() },
      onAnswer: (request, answer) => say(describeAnswer(request, answer)),
      onRefusal: (refused, count) => say(describeRefusal(refused, count)),
      onProblem: printError,
    });
    printOut(`the gate is ready: ${path}\n`);
    await aborted(signal);
    await service.close();
  });
  return 0;
}

function describeAnswer(request: GateRequest, { decision, reason }: GateAnswer): string {
  const { principal, requestId, session, command } = request;
  const who = session === undefined ? principal : `${principal} ${session}`;
  const why = reason === undefined ? '' : ` (${visibleLine(reason, MAX_SHOWN)})`;
  return `gate: ${decision} ${who} ${requestId}: ${visibleLine(command, MAX_SHOWN)}${why}`;
}

function describeRefusal({ code, principal, message }: RefusedMessage, count: number): string {
  return `gate: refused ${principal}: ${visibleLine(message, MAX_SHOWN)} [${code}]${count > 1 ? ` ${count} times more` : ''}`;
}

/** Decides what is provably local, and asks about the rest. Returns the exit status. */
async function checkAtGate(options: CheckOptions): Promise<number> {
  const socket = options.socket ?? process.env.SANDBOX_RUN_GATE ?? '';
  if (socket === '')
    throw new SandboxError('usage.invalid', 'no gate is named: use --socket, or set SANDBOX_RUN_GATE');
  // It cannot be guessed, so no other process can have put an answer there.
  const requestId = randomUUID();
  const isLocal = await isProvablyLocal(options);
  const outcome: Omit<GateOutcome, 'by'> & { readonly by: GateOutcome['by'] | 'here' } = isLocal
    ? { decision: 'allow', by: 'here' }
    : await ask(options, socket, requestId);
  const { decision, reason, by } = outcome;
  if (options.json === true) {
    printOut(jsonLine({ request_id: requestId, decision, reason, by }));
  } else {
    const why = reason ?? (isLocal ? 'provably local' : undefined);
    printOut(`${decision}${why === undefined ? '' : `  ${visibleText(why)}`}\n`);
  }
  return decision === 'allow' ? 0 : ERROR_CODES['command.denied'].exitStatus;
}

/**
 * Nothing that the host would have to know: low risk, no way to the network, understood completely, names no file, and
 * nothing was seen that could give orders. Whatever else the policy says here, it is the host's that counts.
 */
async function isProvablyLocal(options: CheckOptions): Promise<boolean> {
  const { shell: command, session, tool, taint = [], timeout, json, socket, ...sandbox } = options;
  if (taint.length > 0) return false;
  const { judge } = await createChecker(sandbox, caller(), { kernel: 'none' });
  const judgement = judge({ command });
  const decision = await judgement.decision;
  const { verdict, risk, reach } = decision;
  if (verdict !== 'allow' || risk !== 'low' || reach !== 'local') return false;
  const effects = judgement.effects(decision);
  // Only the host knows which paths are secret: a command that names a file is sent to it.
  if ([effects.reads, effects.writes, effects.patterns, effects.searches].some((paths) => paths.length > 0))
    return false;
  return judgement.exposures(decision, effects, undefined).length === 0;
}

async function ask(options: CheckOptions, socket: string, requestId: string): Promise<GateOutcome> {
  const { shell: command, session, tool, timeout = TIMEOUT_MS } = options;
  const question = {
    command,
    ...(session === undefined ? {} : { session }),
    ...(tool === undefined ? {} : { tool }),
  };
  const { askGate, unaskable } = await import('../serve/gate/ask-gate.ts');
  const problem = unaskable(question);
  if (problem !== undefined) throw new SandboxError('usage.invalid', `this cannot be asked: ${problem}`);
  return askGate(socket, question, { requestId, timeoutMs: timeout });
}

/** (uid_t)-1 is nobody, for the kernel. */
const MAX_UID = 0xffff_fffe;

const parseUid = wholeNumber(0, MAX_UID, 'it must be the number of a user.');

/** `--timeout S`, in milliseconds. */
function parseGateSeconds(text: string): number {
  const seconds = Number(text);
  if (text.trim() !== '' && seconds > 0 && seconds <= 86_400) return Math.ceil(seconds * 1000);
  throw new InvalidArgumentError('it must be a number of seconds, more than 0 and at most a day.');
}
