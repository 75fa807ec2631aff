import { natsFailure } from './connection.ts';
import type { Publisher } from './publisher.ts';

/** Errors of JetStream: another last sequence (two of them), a message with this id is being written. */
const OUTRUN: ReadonlySet<number> = new Set([10071, 10164, 10158]);

/** A message that is to follow another one of its subject. */
interface Follower {
  readonly subject: string;
  readonly data: string | Uint8Array;
  /** The sequence of the last message of the subject; 0: there is none. */
  readonly behind: number;
  readonly headers?: Readonly<Record<string, string>>;
  /** Nothing else is in the stream: the sequence is compared by every server, where the write is ordered. */
  readonly isAlone?: boolean;
}

/**
 * Writes what follows a message; returns its sequence. `undefined`: something else does. The expected sequence alone does
 * not compare on servers before 2.9.21: in a cluster they look at it before the write is ordered among the others
 * (nats-server issue 4320). The id of the message is compared after that: of all that follow one message the servers keep
 * one.
 * @throws {SandboxError} `fleet.…`: whether it was written is unknown.
 */
export async function writeBehind(
  publisher: Publisher,
  { subject, data, behind, headers = {}, isAlone = false }: Follower,
  url: string,
): Promise<number | undefined> {
  try {
    const { seq, duplicate } = await publisher.publish(subject, data, {
      ...headers,
      'Nats-Msg-Id': `${subject}@${behind}`,
      'Nats-Expected-Last-Subject-Sequence': String(behind),
      ...(isAlone && behind > 0 && { 'Nats-Expected-Last-Sequence': String(behind) }),
    });
    return duplicate ? undefined : seq;
  } catch (error) {
    if (isOutrun(error)) return undefined;
    throw natsFailure(error, url);
  }
}

/** Known by JetStream's own code, and never by a text. */
function isOutrun(error: unknown): boolean {
  return (
    error instanceof Error && 'code' in error && typeof error.code === 'number' && OUTRUN.has(error.code)
  );
}
