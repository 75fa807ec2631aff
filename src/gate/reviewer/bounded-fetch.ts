import { exactText } from './reply.ts';

/** Of a whole response; one that fits is a few hundred bytes. */
const MAX_RESPONSE_BYTES = 256 * 1024;

/**
 * fetch for an endpoint that is not trusted with more than an answer: it follows no redirect, which would carry the key
 * and the command to another host, and reads a bounded body of valid UTF-8 before anybody looks at it.
 */
export async function boundedFetch(url: string | URL | Request, init?: RequestInit): Promise<Response> {
  const response = await fetch(url, { ...init, redirect: 'error' });
  const { status, statusText, headers } = response;
  const text = exactText(await bodyOf(response));
  // A body was decoded, where there is one: its length and encoding are no longer those of the headers.
  const kept = new Headers(headers);
  for (const name of ['content-length', 'content-encoding', 'transfer-encoding']) kept.delete(name);
  return new Response(text === '' ? null : text, { status, statusText, headers: kept });
}

async function bodyOf(response: Response): Promise<Uint8Array> {
  const chunks: Uint8Array[] = [];
  let length = 0;
  // Leaving the loop, also by an exception, cancels the stream and with it the transfer.
  for await (const chunk of response.body ?? []) {
    length += chunk.byteLength;
    if (length > MAX_RESPONSE_BYTES) throw new RangeError('the response is too long');
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
}
