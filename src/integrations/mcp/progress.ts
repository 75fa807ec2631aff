import type { RequestHandlerExtra } from '@modelcontextprotocol/sdk/shared/protocol.js';
import type { ServerNotification, ServerRequest } from '@modelcontextprotocol/sdk/types.js';
import type { OutputChunk } from '../../model/output.ts';
import { neutralize } from '../../run/output/neutralize.ts';
import { visibleLine } from '../../util/visible-text.ts';

/** What the SDK says about a call, besides its arguments. */
export type CallExtra = Pick<
  RequestHandlerExtra<ServerRequest, ServerNotification>,
  'signal' | '_meta' | 'sendNotification'
>;

const INTERVAL_MS = 1_000;
const LINE_CHARACTERS = 200;
/** Of the end of the output, to find its last line in. */
const LOOKED_AT = 2_048;

/** Progress of one call. */
interface Progress {
  /** To be called with the output. `undefined`: the client did not ask for progress. */
  readonly onOutput: ((chunk: OutputChunk) => void) | undefined;
  /** To be called before the call is answered. */
  stop(): void;
}

/** Tells a client that asked for it how long a call has taken and the last line of output, at most once a second. */
export function reportProgress({ _meta, sendNotification }: CallExtra): Progress {
  const progressToken = _meta?.progressToken;
  if (progressToken === undefined) return { onOutput: undefined, stop: () => {} };
  const begun = performance.now();
  let end = Buffer.alloc(0);
  let isSending = false;
  const timer = setInterval(() => {
    // A client that does not read gets no more of it.
    if (isSending) return;
    isSending = true;
    const elapsed = performance.now() - begun;
    // In tenths of a second: it has to grow, also where a late one is followed by one in time.
    const progress = Math.round(elapsed / 100) / 10;
    const message = `${Math.round(elapsed / 1000)} s${lastLine(end)}`;
    const params = { progressToken, progress, message };
    const sent = () => {
      isSending = false;
    };
    sendNotification({ method: 'notifications/progress', params }).then(sent, sent);
  }, INTERVAL_MS);
  return {
    onOutput: ({ bytes }) => {
      end = Buffer.concat([end, bytes.subarray(-LOOKED_AT)]).subarray(-LOOKED_AT);
    },
    stop: () => clearInterval(timer),
  };
}

function lastLine(end: Buffer): string {
  const lines = neutralize(end.toString('utf8')).split('\n');
  const line = lines.findLast((text) => text.trim() !== '');
  return line === undefined ? '' : `: ${visibleLine(line, LINE_CHARACTERS)}`;
}
