import { request as httpRequest } from 'node:http';
import type { PersonalAnswer } from '../../src/model/index.ts';

/** A request as the page shows it. */
export interface ShownRequest {
  readonly id: string;
  readonly from: readonly string[];
}

/** All requests that wait, whenever they are others, as the page at an address is told. Ends with its server. */
export async function* waitingOnPage(address: string): AsyncGenerator<readonly ShownRequest[]> {
  const { origin, hash } = new URL(address);
  const events = await fetch(`${origin}/events`, { headers: { 'x-sandbox-run-token': hash.slice(1) } });
  let text = '';
  for await (const chunk of events.body ?? []) {
    const parts = `${text}${Buffer.from(chunk).toString()}`.split('\n\n');
    text = parts.pop() ?? '';
    for (const part of parts) {
      const [, data] = /^event: pending\ndata: (.*)$/.exec(part) ?? [];
      if (data !== undefined) yield JSON.parse(data).requests;
    }
  }
}

/** Answers a request as the page does; gives what its server says. */
export function answerOnPage(
  address: string,
  id: string,
  answer: PersonalAnswer = { approved: true, scope: 'once' },
): Promise<{ readonly status: number; readonly sentence: string }> {
  const { host, port, origin, hash } = new URL(address);
  const headers = {
    ...{ host, origin, 'content-type': 'application/json', 'sec-fetch-site': 'same-origin' },
    'x-sandbox-run-token': hash.slice(1),
  };
  return new Promise((done, failed) => {
    const sent = httpRequest({ host: '127.0.0.1', port, path: '/answer', method: 'POST', headers });
    sent.on('response', async (response) => {
      const body = await response.setEncoding('utf8').toArray();
      done({ status: response.statusCode ?? 0, sentence: body.join('') });
    });
    sent.on('error', failed);
    sent.end(JSON.stringify({ id, ...answer }));
  });
}
