import {
  accessSync,
  closeSync,
  constants,
  fstatSync,
  openSync,
  realpathSync,
  type Stats,
  statSync,
} from 'node:fs';
import { dirname } from 'node:path';
import { SandboxError } from '../../../errors/sandbox-error.ts';
import { isBeneath } from '../../../util/absolute-path.ts';
import { errnoOf } from '../../../util/errno-of.ts';

/** The two folders, held open: whatever becomes of their names, these are meant. */
export interface OpenFolders {
  /** Paths that lead to the open folders, each with a slash at its end. */
  readonly requests: string;
  readonly responses: string;
  /** True if the requests folder was removed, so that nobody can ask any more. */
  readonly isGone: () => boolean;
  readonly close: () => void;
}

/**
 * Opens the folders and makes sure that answers can come from us only. That the container sees the folder of answers
 * read-only has to be seen to by whoever mounts it; what the host's own permissions can say about it is checked.
 * @throws {SandboxError} `gate.unusable`.
 */
export function openFolders(
  requests: string,
  responses: string,
  tryLock: (fd: number) => boolean,
): OpenFolders {
  const opened: number[] = [];
  const close = () => {
    for (const fd of opened.splice(0)) closeSync(fd);
  };
  try {
    const asking = open(requests, opened);
    const answering = open(responses, opened);
    refuseMixed(asking, answering);
    refuseUnlessOurs(answering);
    refuseUnlessEmptiable(asking);
    if (!tryLock(answering.fd)) refuse(answering.path, 'is in use: another server answers there');
    return {
      requests: `/proc/self/fd/${asking.fd}/`,
      responses: `/proc/self/fd/${answering.fd}/`,
      isGone: () => fstatSync(asking.fd).nlink === 0,
      close,
    };
  } catch (error) {
    close();
    if (error instanceof SandboxError) throw error;
    const code = errnoOf(error) ?? String(error);
    throw new SandboxError(
      'gate.unusable',
      `the gate cannot use the folders ${requests} and ${responses} (${code}); both must exist, and /proc be there`,
    );
  }
}

interface Folder {
  readonly fd: number;
  /** Canonical. */
  readonly path: string;
  readonly info: Stats;
}

function open(folder: string, opened: number[]): Folder {
  const path = realpathSync(folder);
  const fd = openSync(path, constants.O_RDONLY | constants.O_DIRECTORY | constants.O_NOFOLLOW);
  opened.push(fd);
  return { fd, path, info: fstatSync(fd) };
}

function refuseMixed(requests: Folder, responses: Folder): void {
  const same = requests.info.ino === responses.info.ino && requests.info.dev === responses.info.dev;
  if (same || isBeneath(requests.path, responses.path) || isBeneath(responses.path, requests.path))
    refuse(
      responses.path,
      'must be apart from the folder of requests, neither the same nor one inside the other',
    );
}

/** Nobody else may put an answer there, or another folder in its place. */
function refuseUnlessOurs({ path, info }: Folder): void {
  const own = process.geteuid?.();
  if (info.uid !== own) refuse(path, `belongs to user ${info.uid}; the folder of answers must be yours`);
  if ((info.mode & 0o022) !== 0) refuse(path, 'can be written by others; chmod go-w it');
  for (let above = dirname(path); ; above = dirname(above)) {
    const { uid, mode } = statSync(above);
    if (uid !== 0 && uid !== own)
      refuse(path, `lies in ${above}, which belongs to user ${uid}; choose another place`);
    if ((mode & 0o022) !== 0 && (mode & 0o1000) === 0)
      refuse(path, `lies in ${above}, which others can write; chmod go-w that`);
    if (above === '/') return;
  }
}

/** Requests are taken away once they are answered. */
function refuseUnlessEmptiable({ fd, path, info }: Folder): void {
  accessSync(`/proc/self/fd/${fd}`, constants.W_OK | constants.X_OK);
  const own = process.geteuid?.();
  if ((info.mode & 0o1000) !== 0 && own !== 0 && info.uid !== own)
    refuse(path, 'is sticky and not yours, so that requests could not be taken away; chmod -t it');
}

function refuse(path: string, why: string): never {
  throw new SandboxError('gate.unusable', `the gate cannot use ${path}: it ${why}`);
}
