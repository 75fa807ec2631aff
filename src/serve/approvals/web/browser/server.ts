// What the page says to its server, and hears from it.
import type { PersonalAnswer } from '../../../../approvals/answer-request.ts';
import { type PendingRequests, TOKEN_HEADER } from '../page-messages.ts';

const KEY = 'sandbox-run-token';

/** The server that the page came from. */
export interface Server {
  /** What the server said to an answer; `ok`: it was taken. */
  answer(id: string, answer: PersonalAnswer): Promise<{ readonly ok: boolean; readonly sentence: string }>;
  /** Calls `pending` whenever what waits changes. Resolves if we are not admitted; throws if the connection ends. */
  listen(pending: (message: PendingRequests) => void): Promise<void>;
}

/** @see Server */
export function createServer(): Server {
  const token = takeToken();
  return {
    async answer(id, given) {
      const response = await fetch('/answer', {
        method: 'POST',
        headers: { 'content-type': 'application/json', [TOKEN_HEADER]: token },
        body: JSON.stringify({ id, ...given }),
      });
      return { ok: response.ok, sentence: (await response.text()).trim() };
    },
    // Server-sent events by fetch: EventSource cannot send the header with the token.
    async listen(pending) {
      const response = await fetch('/events', { headers: { [TOKEN_HEADER]: token } });
      if (response.status === 403) return;
      if (!response.ok || response.body === null) throw new Error('refused');
      const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
      let buffer = '';
      for (;;) {
        const { value, done } = await reader.read();
        if (done) throw new Error('ended');
        const events = `${buffer}${value}`.split('\n\n');
        buffer = events.pop() ?? '';
        for (const event of events) {
          const [, data] = /^data: (.*)$/m.exec(event) ?? [];
          if (data !== undefined) pending(JSON.parse(data));
        }
      }
    },
  };
}

/**
 * Out of the address at once, so that it is in no history and no screenshot. Storage is kept apart by port, and ends with
 * the tab.
 */
function takeToken(): string {
  const given = location.hash.slice(1);
  if (given === '') return sessionStorage.getItem(KEY) ?? '';
  sessionStorage.setItem(KEY, given);
  history.replaceState(null, '', location.pathname);
  return given;
}
