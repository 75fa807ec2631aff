import { Console } from 'node:console';
import { readSync } from 'node:fs';
import { requireExactArguments, requireExactVariables } from '../../host/exact-text.ts';
import { AGENTS } from '../../integrations/agents.ts';
import { answerHook, MAX_INPUT_BYTES } from '../../integrations/hooks/answer-hook.ts';
import type { HookOptions } from '../../integrations/hooks/hook-adapter.ts';
import { errnoOf } from '../../util/errno-of.ts';
import { errorMessage } from '../../util/error-message.ts';
import { createProgram, parseArguments } from '../shared/parse.ts';
import { printError, printOut } from '../shared/print.ts';
import { addHookOptions, agentOf, type HookArguments, hookOptionsOf } from './arguments.ts';

/** Stops the tool call, whatever else is printed; every other status but 0 does not. */
const EXIT_BLOCKS = 2;

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

/** `sandbox-run hook AGENT`: reads an event from standard input and answers it. Never throws. */
export async function hook(args: readonly string[]): Promise<number> {
  try {
    const wanted = parseHookArguments(args);
    if (wanted === undefined) return 0;
    // Whatever prints in this process, such as a plug-in of the policy: an agent that cannot read the answer may let the
    // call through.
    globalThis.console = new Console(process.stderr, process.stderr);
    process.stdout.write = process.stderr.write.bind(process.stderr);
    // An uncaught exception ends Node with a status that lets the tool call through.
    process.once('uncaughtException', (error) => {
      printError(`the hook failed: ${error.message}`);
      process.exit(EXIT_BLOCKS);
    });
    requireExactArguments(args);
    requireExactVariables();
    const { hooks } = await agentOf(wanted.agent, wanted.options.mode);
    const answer = await answerHook(hooks, readInput(), wanted.options, process.env);
    return printOut(answer) ? 0 : EXIT_BLOCKS;
  } catch (error) {
    printError(errorMessage(error));
    return EXIT_BLOCKS;
  }
}

function parseHookArguments(
  args: readonly string[],
): { readonly agent: string; readonly options: HookOptions } | undefined {
  const program = createProgram(
    'sandbox-run hook',
    'Answers the hooks of an agent: judges its commands, and remembers what its session has seen.',
    HELP_AFTER,
  )
    .usage('[options] AGENT')
    .argument('<agent>', 'the agent whose hooks are answered');
  addHookOptions(program);
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
      const count = readSync(0, chunk);
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
