// What the page says to its server, and hears from it.
import type { PersonalAnswer } from '../../../../model/index.ts';
import {
  CHANGE_REQUESTS,
  type PendingRequests,
  TOKEN_HEADER,
  type WaitingChanges,
} from '../page-messages.ts';

const KEY = 'sandbox-run-token';

const token = takeToken();

/** What the server said; `ok`: it was done. */
export interface Said {
  readonly ok: boolean;
  readonly sentence: string;
}

/** Answers a request. */
export const sendAnswer = (id: string, answer: PersonalAnswer): Promise<Said> =>
  post('/answer', { id, ...answer });

/** Asks for the diff of changes, or has them applied or discarded: all, or what is at or beneath a path. */
export const askOfChanges = (
  what: keyof typeof CHANGE_REQUESTS,
  id: string,
  path: string | undefined,
): Promise<Said> => post(CHANGE_REQUESTS[what], { id, ...(path === undefined ? {} : { path }) });

async function post(path: string, body: object): Promise<Said> {
  const response = await fetch(path, {
    method: 'POST',
    headers: { 'content-type': 'application/json', [TOKEN_HEADER]: token },
    body: JSON.stringify(body),
  });
  return { ok: response.ok, sentence: (await response.text()).replace(/\n$/, '') };
}

/** Who hears what waits. */
interface Listeners {
  pending(message: PendingRequests): void;
  changes(message: WaitingChanges): void;
}

/**
 * Calls the listeners whenever what waits changes. Resolves if we are not admitted; throws if the connection ends. Server-sent
 * events by fetch: EventSource cannot send the header with the token.
 */
export async function listen({ pending, changes }: Listeners): Promise<void> {
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
      if (data === undefined) continue;
      if (event.startsWith('event: changes\n')) changes(JSON.parse(data));
      else pending(JSON.parse(data));
    }
  }
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
