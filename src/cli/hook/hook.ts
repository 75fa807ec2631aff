import { Console } from 'node:console';
import { currentDirectory, requireExactArguments, requireExactVariables } from '../../host/exact-text.ts';
import { errorMessage } from '../../util/error-message.ts';
import { printError } from '../shared/print.ts';
import { noteEnd, type Rehearsed, startServer, takeServerAddress } from '../warm/start.ts';
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
    requireExactVariables();
    return await answerCall(wanted, (event) => {
      if (event.kind === 'session-end') {
        if (server !== undefined) noteEnd(server, event.session);
        server = undefined;
      } else if (event.kind !== 'other')
        rehearsed = { args, session: event.session, cwd: currentDirectory() };
    });
  } catch (error) {
    printError(errorMessage(error));
    return EXIT_BLOCKS;
  } finally {
    // The next one need not wait for a start of Node.
    if (server !== undefined) await startServer(server, rehearsed);
  }
}
