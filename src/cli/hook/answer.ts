import { readSync } from 'node:fs';
import { AGENTS, answerHook, type HookEvent, type HookOptions, MAX_INPUT_BYTES } from '../../agents/index.ts';
import { errnoOf } from '../../base/errno-of.ts';
import { errorMessage } from '../../base/error-message.ts';
import { caller } from '../shared/caller.ts';
import { createProgram, parseArguments } from '../shared/parse.ts';
import { printError, printOut } from '../shared/print.ts';
import { addHookOptions, agentOf, type HookArguments, hookOptionsOf } from './arguments.ts';

/** Stops the tool call, whatever else is printed; every other status but 0 does not. */
export const EXIT_BLOCKS = 2;

const HELP_AFTER = `
Agents: ${Object.keys(AGENTS).join(', ')}

Modes:
  rewrite    the command runs through sandbox-run, in the sandbox
  decide     Claude Code only. The agent runs the command itself, and nothing confines it. A command that the
             policy allows is allowed if it is plain (it reads known files of the project, writes nothing, and
             has no variables or patterns). Otherwise the agent's own rules decide

The project is what the agent says (CLAUDE_PROJECT_DIR, GEMINI_PROJECT_DIR), else the current directory. A command that cannot be judged is refused.
"sandbox-run install AGENT" writes this into the agent's settings.

Examples:
  sandbox-run hook claude-code < call.json
  sandbox-run hook codex --policy ~/agents.toml < call.json

Exit status: 0 with the answer on standard output (empty: no opinion); 2 if that failed, which stops the
tool call.`;

interface WantedHook {
  readonly agent: string;
  readonly options: HookOptions;
}

/** Answers the event on standard input, and returns the exit status. Never throws. */
export async function answerCall(
  { agent, options }: WantedHook,
  onEvent?: (event: HookEvent) => string | undefined,
): Promise<number> {
  try {
    const { hooks } = await agentOf(agent, options.mode);
    const answer = await answerHook(hooks, readInput(), { ...options, around: caller() }, onEvent);
    return printOut(answer) ? 0 : EXIT_BLOCKS;
  } catch (error) {
    printError(errorMessage(error));
    return EXIT_BLOCKS;
  }
}

/**
 * Parses the command line; `undefined` if help was printed.
 * @throws {SandboxError} `usage.invalid`.
 */
export function parseHookArguments(args: readonly string[]): WantedHook | undefined {
  const program = createProgram(
    'sandbox-run hook',
    'Answers the hooks of an agent: judges its commands, and remembers what its session has seen.',
    HELP_AFTER,
  )
    .usage('[options] AGENT')
    .argument('<agent>', 'the agent whose hooks are answered');
  addHookOptions(program).option(
    '--audit',
    'put decisions and results into the audit trail, unless the policy says otherwise',
  );
  const parsed = parseArguments(program, args);
  if (parsed === undefined) return undefined;
  return { agent: parsed.args[0] ?? '', options: hookOptionsOf(parsed.opts<HookArguments>()) };
}

/** All of standard input, or one byte more than is taken. */
function readInput(): Uint8Array | Error {
  const chunks: Buffer[] = [];
  let length = 0;
  while (length <= MAX_INPUT_BYTES) {
    const chunk = Buffer.allocUnsafe(64 * 1024);
    try {
      const count = readSync(caller().stdio[0], chunk);
      if (count === 0) break;
      chunks.push(chunk.subarray(0, count));
      length += count;
    } catch (error) {
      const code = errnoOf(error);
      if (code === 'EOF') break;
      if (code !== 'EAGAIN') return new Error(`standard input cannot be read (${code})`);
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 5);
    }
  }
  return Buffer.concat(chunks);
}
