import { lstat, opendir, rmdir, unlink } from 'node:fs/promises';
import { errnoOf } from '../../../util/errno-of.ts';
import type { Answerer } from '../answer.ts';
import { type GateServer, principalOf, type RefusalCode, type ReportRefusal } from '../ports.ts';
import { decodeRequest } from '../protocol.ts';
import { FOLDER_LIMITS, type FolderLimits } from './folder-limits.ts';
import { idOfName, isTemporary, nameOf } from './names.ts';
import { openFolders } from './open-folders.ts';
import { type ReadFile, readStrangersFile } from './request-file.ts';
import { createResponseFolder } from './response-folder.ts';
import { createWalks, watchFolder } from './walks.ts';

/** Where requests come from, from whom, and who answers. */
export interface FolderServerOptions {
  /** The container writes it. */
  readonly requests: string;
  /** The container reads it, and must not be able to write it. */
  readonly responses: string;
  /** Users whose files are requests. */
  readonly allowedUids: ReadonlySet<number>;
  /** The addon's: takes the lock of an open file. */
  readonly tryLock: (fd: number) => boolean;
  readonly answer: Answerer;
  readonly report: ReportRefusal;
  /** Told what went wrong on our side, for a log. */
  readonly onProblem?: ((message: string) => void) | undefined;
  readonly limits?: Partial<FolderLimits>;
}

interface Pending {
  readonly controller: AbortController;
  readonly inode: bigint;
  readonly settled: Promise<void>;
}

/** How many names that cannot be removed are remembered, so that each is reported once. */
const MAX_STUCK = 4096;

/**
 * Answers requests that come as files: `ID.json` in one folder becomes `ID.json` in the other. A request stays where it
 * is until it is answered; a client that takes it away has withdrawn it.
 * @throws {SandboxError} `gate.unusable`.
 */
export async function serveFolder(options: FolderServerOptions): Promise<GateServer> {
  const { allowedUids, answer, report, onProblem } = options;
  const limits = { ...FOLDER_LIMITS, ...options.limits };
  const folders = openFolders(options.requests, options.responses, options.tryLock);
  const responses = await createResponseFolder(folders.responses, {
    ageMs: limits.responseAgeMs,
    count: limits.responses,
  }).catch((error: unknown) => {
    folders.close();
    throw error;
  });
  const pending = new Map<string, Pending>();
  const stuck = new Set<string>();
  let roomFreed = () => {};
  let closing = false;

  // Names are bytes; as Latin-1 each byte is a character, and back.
  const pathOf = (name: string) => Buffer.from(folders.requests + name, 'latin1');

  async function remove(name: string): Promise<void> {
    try {
      await unlink(pathOf(name)).catch((error: unknown) => {
        if (errnoOf(error) === 'EISDIR') return rmdir(pathOf(name));
        throw error;
      });
      stuck.delete(name);
    } catch (error) {
      // A directory with something in it: not worth following a stranger's tree.
      if (errnoOf(error) !== 'ENOENT' && stuck.size < MAX_STUCK) stuck.add(name);
    }
  }

  async function refuse(name: string, code: RefusalCode, uid: number, problem: string): Promise<void> {
    const principal = uid < 0 ? 'unknown' : principalOf(uid);
    await report({ code, transport: 'folder', principal, message: problem, requestId: idOfName(name) });
    await remove(name);
  }

  /** Refuses a request, and says so to whoever waits for its answer. */
  async function deny(id: string, code: RefusalCode, uid: number, problem: string): Promise<void> {
    await refuse(nameOf(id), code, uid, problem);
    await respond(id, 'deny', `refused: ${problem}`);
  }

  async function respond(id: string, decision: 'allow' | 'deny', reason: string | undefined): Promise<void> {
    try {
      await responses.write({ request_id: id, decision, ...(reason === undefined ? {} : { reason }) });
    } catch (error) {
      onProblem?.(`an answer could not be written, so ${id} gets none: ${String(error)}`);
    }
  }

  async function take(name: string): Promise<void> {
    if (stuck.has(name)) return;
    if (isTemporary(name)) {
      const info = await lstat(pathOf(name)).catch(() => undefined);
      if (info !== undefined && Date.now() - info.ctimeMs > limits.temporaryMs)
        await refuse(name, 'stale', info.uid, 'a file was never given its name');
      return;
    }
    const id = idOfName(name);
    if (id === undefined) {
      const info = await lstat(pathOf(name)).catch(() => undefined);
      if (info !== undefined)
        await refuse(name, 'forged_name', info.uid, 'a file is not named like a request');
      return;
    }
    if (pending.has(id)) return;
    const file = await readStrangersFile(folders.requests + name, (uid) => allowedUids.has(uid));
    if (file.kind === 'gone') return;
    if (file.kind === 'forged') await refuse(name, 'forged_file', file.uid, `${name}: ${file.problem}`);
    else await consider(id, file);
  }

  async function consider(id: string, file: ReadFile & { readonly kind: 'file' }): Promise<void> {
    const { uid, inode } = file;
    if (await responses.has(id)) {
      await refuse(nameOf(id), 'replayed_id', uid, 'the request has been answered before');
      return;
    }
    const decoded = decodeRequest(file.bytes);
    if (!decoded.ok) return deny(id, 'malformed', uid, decoded.problem);
    const { request_id: requestId, command, session, tool } = decoded.message;
    if (requestId !== id)
      return deny(id, 'forged_name', uid, 'request_id is not what the file is named after');
    if (Date.now() - file.changedAt > limits.requestAgeMs)
      return deny(id, 'stale', uid, 'the request is too old for anybody to wait for it');
    const controller = new AbortController();
    const request = {
      requestId,
      command,
      session,
      tool,
      principal: principalOf(uid),
      signal: controller.signal,
    };
    const settled = answer(request).then(async ({ decision, reason }) => {
      // First: whoever is killed in between finds an answered request, and refuses it.
      await respond(id, decision, reason);
      await remove(nameOf(id));
      pending.delete(id);
      roomFreed();
    });
    pending.set(id, { controller, inode, settled });
  }

  async function withdrawGone(): Promise<void> {
    for (const [id, { controller, inode }] of [...pending]) {
      const info = await lstat(pathOf(nameOf(id)), { bigint: true }).catch(() => undefined);
      if (info?.ino !== inode) controller.abort('the request was withdrawn');
    }
  }

  /** One walk over the folder, an entry at a time: however many there are, everybody else gets a turn. */
  async function walk(): Promise<void> {
    const seen = new Set<string>();
    for await (const { name } of await opendir(folders.requests, { encoding: 'latin1' })) {
      while (pending.size >= limits.pending && !closing) {
        await new Promise<void>((done) => {
          roomFreed = done;
        });
      }
      if (closing) return;
      await take(name).catch((error: unknown) => {
        onProblem?.(`a request could not be looked at: ${String(error)}`);
        stuck.add(name);
      });
      if (stuck.has(name)) seen.add(name);
    }
    for (const name of stuck) if (!seen.has(name)) stuck.delete(name);
  }

  const walks = createWalks(async () => {
    try {
      await walk();
    } catch (error) {
      onProblem?.(`the folder of requests could not be read: ${String(error)}`);
    }
  }, limits.pauseMs);
  let ticking = Promise.resolve();
  let goneReported = false;
  const timer = setInterval(() => {
    walks.request();
    ticking = ticking.then(withdrawGone).then(responses.tidy);
    if (folders.isGone() && !goneReported) {
      goneReported = true;
      onProblem?.('the folder of requests was removed; start the gate again');
    }
  }, limits.pollMs);
  const watcher = limits.watch ? watchFolder(folders.requests, walks.request) : undefined;
  walks.request();

  return {
    close: async () => {
      closing = true;
      clearInterval(timer);
      watcher?.close();
      roomFreed();
      await walks.stop();
      const left = [...pending.values()];
      for (const { controller } of left) controller.abort('the gate server is stopping');
      await Promise.all(left.map(({ settled }) => settled));
      await ticking;
      folders.close();
    },
  };
}
