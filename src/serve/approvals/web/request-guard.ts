import { timingSafeEqual } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import { TOKEN_HEADER } from './page-messages.ts';

/**
 * True if a request names this server by its own address: another name that was made to point here (DNS rebinding) is
 * refused, and so is what another page sends.
 */
export function isFromHere({ headers }: IncomingMessage, port: number): boolean {
  const hosts = [`127.0.0.1:${port}`, `localhost:${port}`];
  const { host, origin } = headers;
  if (host === undefined || !hosts.includes(host)) return false;
  if (origin !== undefined && origin !== `http://${host}`) return false;
  // `none`: typed, or opened from a bookmark.
  const site = headers['sec-fetch-site'];
  return site === undefined || site === 'same-origin' || site === 'none';
}

/** True if a request comes from our page: by origin, by token and with JSON. */
export function isFromOurPage({ headers }: IncomingMessage, token: string): boolean {
  return (
    headers.origin !== undefined &&
    headers['content-type'] === 'application/json' &&
    hasToken(headers[TOKEN_HEADER], token)
  );
}

/** Compared in a time that says nothing about the token. */
export function hasToken(given: string | string[] | undefined, token: string): boolean {
  const bytes = Buffer.from(typeof given === 'string' ? given : '');
  const right = Buffer.from(token);
  return bytes.length === right.length && timingSafeEqual(bytes, right);
}
