import { randomBytes } from 'node:crypto';

/** A name that sorts by time and that nobody guesses: `20261123-101500-4fd8a1`. `at`: milliseconds since 1970. */
export function timedId(at: number): string {
  const time = new Date(at).toISOString().slice(0, 19).replace(/[-:]/g, '').replace('T', '-');
  return `${time}-${randomBytes(3).toString('hex')}`;
}

/** Whether a text may be such a name: it is no path. */
export const isTimedId = (text: string): boolean => /^\d{8}-\d{6}-[0-9a-f]{6}$/.test(text);
