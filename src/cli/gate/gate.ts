import { SandboxError } from '../../errors/sandbox-error.ts';
import { createProgram, parseArguments } from '../shared/parse.ts';
import { parseTaints } from '../shared/policy-options.ts';
import { printOut } from '../shared/print.ts';
import {
  type CheckOptions,
  parseGateSeconds,
  parseUid,
  type ServeOptions,
  sandboxOptionsOf,
  socketOf,
} from './options.ts';

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

/** `sandbox-run gate`: decides for agents in containers, and asks for them. */
export async function gate(args: readonly string[]): Promise<number> {
  const program = createProgram('sandbox-run gate')
    .description('Decides about the commands of agents in containers.')
    .addHelpText('after', HELP_AFTER);
  let task = async (): Promise<number> => {
    printOut(program.helpInformation());
    return 0;
  };
  const collect = (text: string, before: readonly number[] = []) => [...before, parseUid(text)];
  const command = (name: string, description: string) =>
    program
      .command(name)
      .description(description)
      .allowExcessArguments(false)
      .option('--socket <path>', 'the Unix socket (check: default $SANDBOX_RUN_GATE)')
      .option('--workspace <dir>', 'the directory where commands run (default: the current directory)')
      .option('--profile <name>', 'built-in profile (default: workspace-write)')
      .option('--policy <file>', 'a policy file (TOML), added to those of the machine and the user');
  command('serve', 'answers requests until a signal ends it')
    .option('--allow-uid <uid>', 'a further user id that may send requests; repeatable', collect)
    .option('-q, --quiet', 'no line on standard error for each decision')
    .addHelpText('after', SERVE_HELP)
    .action((options: ServeOptions) => {
      task = async () => {
        const { socket, allowUid: allowedUids = [], quiet = false } = options;
        if (socket === undefined) throw new SandboxError('usage.invalid', 'gate serve needs --socket');
        const { serveGate } = await import('./serve.ts');
        return serveGate({ sandbox: sandboxOptionsOf(options), socket, allowedUids, quiet });
      };
    });
  command('check', 'asks whether a command may run')
    .requiredOption('-c, --shell <string>', 'the shell string that is about to be run')
    .option('--session <id>', 'the session of the agent')
    .option('--tool <name>', 'the tool that would run the command')
    .option('--taint <list>', 'what the session has seen: corruption, secret', parseTaints)
    .option('--timeout <seconds>', 'how long to wait for the answer (default: 310)', parseGateSeconds)
    .option('--json', 'one JSON object')
    .addHelpText('after', CHECK_HELP)
    .action((options: CheckOptions) => {
      task = async () => {
        const { checkAtGate } = await import('./check.ts');
        const { shell: command = '', session, tool, taint: taints = [], timeout, json = false } = options;
        const socket = socketOf(options);
        const sandbox = sandboxOptionsOf(options);
        return checkAtGate({ command, session, tool, taints, socket, sandbox, json, timeoutMs: timeout });
      };
    });
  if (parseArguments(program, args) === undefined) return 0;
  return task();
}
