import { Console } from 'node:console';
import { errorMessage } from '../../base/error-message.ts';
import { requireExactArguments, requireExactVariables } from '../../workspace/index.ts';
import { caller, currentDirectory } from '../shared/caller.ts';
import { printError } from '../shared/print.ts';
import {
  forgetEnds,
  notedEnds,
  noteEnd,
  type Rehearsed,
  startServer,
  takeServerAddress,
} from '../warm/start.ts';
import { answerCall, EXIT_BLOCKS, parseHookArguments } from './answer.ts';

/** `sandbox-run hook AGENT`: reads an event from standard input and answers it. Never throws. */
export async function hook(args: readonly string[]): Promise<number> {
  let server = takeServerAddress();
  let rehearsed: Rehearsed | undefined;
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
    requireExactVariables(caller().env);
    return await answerCall(wanted, (event) => {
      // Without a session, nothing says when the server is no longer needed.
      if (event.kind === 'other') server = undefined;
      if (server === undefined || event.kind === 'other') return undefined;
      const { session } = event;
      if (event.kind === 'session-end') noteEnd(server.path, event);
      if (event.kind === 'session-start') forgetEnds(server.path, [session]);
      // Late hooks of a session that has ended must not start a server for it.
      if (notedEnds(server.path).some((ended) => ended.session === session)) server = undefined;
      else rehearsed = { args, session, cwd: currentDirectory() };
      return undefined;
    });
  } catch (error) {
    printError(errorMessage(error));
    return EXIT_BLOCKS;
  } finally {
    // The next one need not wait for a start of Node.
    if (server !== undefined) await startServer(server, rehearsed);
  }
}
