import { createConnection } from 'node:net';
import { errnoOf } from '../../util/errno-of.ts';
import { createLineReader } from '../server/connection/line-reader.ts';
import { encodeRequest, type GateMessage, MAX_MESSAGE_BYTES } from '../server/protocol.ts';
import { type ClientOutcome, noAnswer, outcomeOf } from './outcome.ts';

/** After an answer, for the server to say that there is no other one. */
const END_MS = 500;
const unusable = (why: string) => noAnswer(`the answer cannot be used: ${why}`);

/** Asks a gate server. Never rejects: whatever goes wrong is a no. */
export function askSocket(path: string, message: GateMessage, timeoutMs: number): Promise<ClientOutcome> {
  const line = encodeRequest(message);
  if (Buffer.byteLength(line) - 1 > MAX_MESSAGE_BYTES)
    return Promise.resolve(noAnswer('the command is too long to be asked about'));
  return new Promise((done) => {
    const reader = createLineReader(MAX_MESSAGE_BYTES);
    const socket = createConnection({ path });
    let answer: ClientOutcome | undefined;
    let endTimer: NodeJS.Timeout | undefined;
    const timer = setTimeout(() => finish(noAnswer('there was no answer in time')), timeoutMs);

    function finish(outcome: ClientOutcome): void {
      clearTimeout(timer);
      clearTimeout(endTimer);
      socket.destroy();
      done(outcome);
    }

    function take(chunk: Buffer): void {
      reader.push(chunk);
      const bytes = answer === undefined ? reader.take() : undefined;
      if (bytes === 'too-long') finish(unusable('it is too long'));
      else if (answer !== undefined || (bytes !== undefined && reader.isPartial()))
        finish(unusable('there is more than one'));
      else if (bytes !== undefined) expectEnd(outcomeOf(bytes, message.request_id));
    }

    /** A server that has another answer gives it before it ends its side. */
    function expectEnd(given: ClientOutcome): void {
      answer = given;
      // It came in time.
      clearTimeout(timer);
      socket.end();
      endTimer = setTimeout(() => finish(given), END_MS);
    }

    socket.on('connect', () => socket.write(line));
    socket.on('data', take);
    socket.on('end', () => finish(answer ?? noAnswer('the gate closed the connection without an answer')));
    socket.on('error', (error) => {
      const code = errnoOf(error) ?? error.message;
      finish(answer ?? noAnswer(`the gate at ${path} cannot be reached (${code})`));
    });
    socket.on('close', () => finish(answer ?? noAnswer('the connection to the gate broke')));
  });
}
