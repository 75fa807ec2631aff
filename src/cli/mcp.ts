import { Console } from 'node:console';
import { visibleText } from '../base/visible-text.ts';
import { caller } from './shared/caller.ts';
import {
  addSandboxOptions,
  parseSeconds,
  type SandboxArguments,
  sandboxOptionsOf,
} from './shared/options.ts';
import { createProgram, parseArguments } from './shared/parse.ts';
import { printError } from './shared/print.ts';
import { describeBackend, describeConfinement } from './shared/show-plan.ts';
import { untilEnded } from './shared/signals.ts';

const DEFAULT_LONGEST_JOB_MS = 3600 * 1000;

const HELP_AFTER = `
A client (an agent) starts it and speaks the Model Context Protocol over standard input and output.
Tools: shell, shell_output, shell_kill, policy_explain. Only these options set what may be done: no argument
of a tool and no root of the client can change it.

What the policy asks is shown to the user of a client that can do so (elicitation), and otherwise goes
where the policy says: --ask queue waits for sandbox-run approvals; there is no terminal here.

It ends, with every command, when its standard input ends, or by SIGTERM, SIGINT or SIGHUP.

Examples:
  sandbox-run mcp --workspace ~/project
  sandbox-run mcp --workspace ~/project --profile read-only --ask queue
  claude mcp add sandbox -- sandbox-run mcp --workspace "$PWD"

In the configuration of a client:
  {"mcpServers": {"sandbox": {"command": "sandbox-run", "args": ["mcp", "--workspace", "/home/me/project"]}}}

Exit status: 0 the client is gone, or a signal came; 125 or 126 it cannot start.`;

interface McpArguments extends SandboxArguments {
  backgroundTimeout: number;
  elicitation: boolean;
  quiet?: boolean;
}

/** `sandbox-run mcp`: serves an agent over the Model Context Protocol. */
export async function mcp(args: readonly string[]): Promise<number> {
  const program = addSandboxOptions(
    createProgram(
      'sandbox-run mcp',
      'Serves the shell tools of an agent over the Model Context Protocol (stdio).',
      HELP_AFTER,
    ),
  )
    .option(
      '--background-timeout <seconds>',
      'end a background command after this time; 0: when the server ends (default: 3600)',
      parseSeconds,
      DEFAULT_LONGEST_JOB_MS,
    )
    .option(
      '--no-elicitation',
      'do not ask the user through the client, only in the way that the policy says',
    )
    .option('-q, --quiet', 'no remarks on standard error');
  const options = parseArguments(program, args)?.opts<McpArguments>();
  if (options === undefined) return 0;
  const say = options.quiet === true ? () => {} : (line: string) => printError(`mcp: ${line}`);
  // Whatever prints in this process, such as a plug-in of the policy: standard output is the protocol's.
  globalThis.console = new Console(process.stderr, process.stderr);
  return untilEnded(async (over) => {
    const { serveMcp } = await import('../agents/mcp/server.ts');
    await serveMcp({
      sandbox: sandboxOptionsOf(options),
      around: caller(),
      longestJob: options.backgroundTimeout,
      elicitation: options.elicitation,
      input: process.stdin,
      output: process.stdout,
      onReady: ({ plan }) => {
        const backend = describeBackend(plan, () => true);
        if (backend !== undefined) say(visibleText(backend));
        say(`ready: ${visibleText(describeConfinement(plan))}`);
      },
      onProblem: say,
      signal: over.signal,
    });
    return 0;
  });
}
