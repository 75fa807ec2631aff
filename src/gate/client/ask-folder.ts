import { randomBytes } from 'node:crypto';
import { type FSWatcher, watch } from 'node:fs';
import { rename, unlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { errnoOf } from '../../util/errno-of.ts';
import { nameOf, TEMPORARY_PREFIX } from '../server/folder/names.ts';
import { readStrangersFile } from '../server/folder/request-file.ts';
import { encodeRequest, type GateMessage, MAX_MESSAGE_BYTES } from '../server/protocol.ts';
import { type ClientOutcome, noAnswer, outcomeOf } from './outcome.ts';

const POLL_MS = 200;

/** The folders as the client sees them. */
export interface ClientFolders {
  readonly requests: string;
  readonly responses: string;
}

/** Asks a gate server by way of files. Never rejects: whatever goes wrong is a no. */
export async function askFolder(
  { requests, responses }: ClientFolders,
  message: GateMessage,
  timeoutMs: number,
): Promise<ClientOutcome> {
  const text = encodeRequest(message);
  if (Buffer.byteLength(text) - 1 > MAX_MESSAGE_BYTES)
    return noAnswer('the command is too long to be asked about');
  const end = performance.now() + timeoutMs;
  const name = nameOf(message.request_id);
  const request = join(requests, name);
  const temporary = join(requests, `${TEMPORARY_PREFIX}${randomBytes(12).toString('hex')}`);
  const readAnswer = () => readStrangersFile(join(responses, name), () => true);
  const bell = createBell(responses);
  try {
    if ((await readAnswer()).kind !== 'gone') return noAnswer('there is an answer before it was asked for');
    // Who serves may be another user.
    await writeFile(temporary, text, { flag: 'wx', mode: 0o644 });
    await rename(temporary, request);
    for (;;) {
      const file = await readAnswer();
      if (file.kind === 'file') return outcomeOf(file.bytes, message.request_id);
      if (file.kind === 'forged') return noAnswer(`the answer cannot be used: ${file.problem}`);
      const left = end - performance.now();
      if (left <= 0) return noAnswer('there was no answer in time');
      await bell.wait(Math.min(left, POLL_MS));
    }
  } catch (error) {
    const code = errnoOf(error) ?? String(error);
    return noAnswer(`the folders of the gate cannot be used (${code})`);
  } finally {
    bell.close();
    // Withdraws it where it was not answered; otherwise the server takes it away itself.
    await Promise.all([temporary, request].map((path) => unlink(path).catch(() => {})));
  }
}

/** Rings when something changes in a folder, and after a while in any case. */
function createBell(folder: string) {
  let wake = () => {};
  let rung = false;
  const watcher = startWatching(folder, () => {
    rung = true;
    wake();
  });
  return {
    wait: async (milliseconds: number) => {
      if (!rung) {
        await new Promise<void>((done) => {
          const timer = setTimeout(done, milliseconds);
          wake = () => {
            clearTimeout(timer);
            done();
          };
        });
      }
      rung = false;
    },
    close: () => watcher?.close(),
  };
}

function startWatching(folder: string, onChange: () => void): FSWatcher | undefined {
  try {
    const watcher = watch(folder, onChange);
    watcher.on('error', () => watcher.close());
    return watcher;
  } catch {
    // Polling is enough.
    return undefined;
  }
}
