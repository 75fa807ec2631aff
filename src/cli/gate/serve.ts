import { resolve } from 'node:path';
import type { SandboxOptions } from '../../model/options.ts';
import type { GateAnswer, GateRequest } from '../../serve/gate/answer.ts';
import { startGateService } from '../../serve/gate/gate-service.ts';
import type { RefusedMessage } from '../../serve/gate/refusal-report.ts';
import { visibleLine } from '../../util/visible-text.ts';
import { printError, printOut } from '../shared/print.ts';
import { aborted, untilEnded } from '../shared/until-ended.ts';

interface Serve {
  readonly sandbox: SandboxOptions;
  readonly socket: string;
  readonly allowedUids: readonly number[];
  readonly quiet: boolean;
}

const MAX_SHOWN = 200;

/** Serves until a signal comes. Returns the exit status. */
export async function serveGate({ socket, quiet, ...rest }: Serve): Promise<number> {
  const say = quiet ? () => {} : printError;
  const path = resolve(socket);
  // From the first moment on: a signal during the start is not lost either.
  await untilEnded(async ({ signal }) => {
    const service = await startGateService({
      ...rest,
      socket: path,
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
