import { randomBytes } from 'node:crypto';
import { lstat, open, readdir, rename, unlink } from 'node:fs/promises';
import { errnoOf } from '../../../util/errno-of.ts';
import { encodeResponse, type GateResponse } from '../protocol.ts';
import { idOfName, isTemporary, nameOf, TEMPORARY_PREFIX } from './names.ts';

/** How long and how many answers are kept. */
export interface KeptResponses {
  readonly ageMs: number;
  readonly count: number;
}

/** The answers, which only the server writes. */
export interface ResponseFolder {
  has(id: string): Promise<boolean>;
  /** Complete from the moment on at which it has its name. */
  write(response: GateResponse): Promise<void>;
  /** Takes away what is too old, and the oldest if there are too many. */
  tidy(): Promise<void>;
}

/** `prefix`: the folder, with a slash at its end. */
export async function createResponseFolder(prefix: string, kept: KeptResponses): Promise<ResponseFolder> {
  /** Names and when they were written, oldest first. */
  const written = new Map<string, number>();

  const earlier: (readonly [string, number])[] = [];
  for (const name of await readdir(prefix)) {
    // Left behind by a server that was killed; nobody else writes here.
    if (isTemporary(name)) await unlink(prefix + name);
    else if (idOfName(name) !== undefined) earlier.push([name, (await lstat(prefix + name)).mtimeMs]);
  }
  for (const [name, at] of earlier.sort(([, one], [, other]) => one - other)) written.set(name, at);

  async function tidy(): Promise<void> {
    const oldest = Date.now() - kept.ageMs;
    for (const [name, at] of written) {
      if (at > oldest && written.size <= kept.count) return;
      written.delete(name);
      await unlink(prefix + name).catch(() => {});
    }
  }

  return {
    has: async (id) => {
      try {
        await lstat(prefix + nameOf(id));
        return true;
      } catch (error) {
        // Whatever else it is, there is to be no second answer.
        return errnoOf(error) !== 'ENOENT';
      }
    },
    write: async (response) => {
      const name = nameOf(response.request_id);
      const temporary = `${prefix}${TEMPORARY_PREFIX}${randomBytes(12).toString('hex')}`;
      const handle = await open(temporary, 'wx', 0o644);
      try {
        await handle.writeFile(encodeResponse(response));
        // Whatever the umask: the container has to read it.
        await handle.chmod(0o644);
      } catch (error) {
        await unlink(temporary).catch(() => {});
        throw error;
      } finally {
        await handle.close();
      }
      await rename(temporary, prefix + name);
      written.delete(name);
      written.set(name, Date.now());
      if (written.size > kept.count) await tidy();
    },
    tidy,
  };
}
