import { randomBytes } from 'node:crypto';
import { closeSync, mkdirSync, mkdtempSync, openSync, realpathSync, rmSync, writeFileSync } from 'node:fs';
import { homedir, tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { errnoOf } from '../../base/errno-of.ts';
import { SandboxError } from '../../base/errors/sandbox-error.ts';
import { orElse } from '../../base/or-else.ts';
import { HIDDEN_DIRECTORY, HIDDEN_FILE } from './file-attacks.ts';

const PREFIX = 'sandbox-run-doctor-';

/** A directory outside. */
interface Outside {
  readonly path: string;
  /** Open in this process. */
  readonly descriptor: number;
}

/** Why there is no place to try anything in. */
export function noTemporaryDirectory(error: unknown): SandboxError {
  const code = errnoOf(error) ?? String(error);
  return new SandboxError(
    'confinement.failed',
    `no temporary directory can be made in ${tmpdir()} (${code}); set TMPDIR to a writable directory`,
  );
}

/** Directories in which everything is a canary. Removed as a whole. */
export class Arena implements Disposable {
  readonly secret = `secret-${randomBytes(12).toString('hex')}`;
  /** The workspace of the sandbox, and the one for trying without. */
  readonly workspace: string;
  readonly bareWorkspace: string;
  readonly readable: string;
  /** Temporary files of what is tried without a sandbox. */
  readonly temporary: string;
  private readonly made: string[] = [];
  private readonly open: number[] = [];
  private readonly sharedIn: ReadonlyMap<string, string | undefined>;

  /** @throws {SandboxError} `confinement.failed` where nothing can be made. */
  constructor() {
    try {
      const root = this.make(tmpdir());
      const inRoot = (name: string) => {
        const path = join(root, name);
        mkdirSync(path);
        return path;
      };
      this.workspace = inRoot('work');
      this.bareWorkspace = inRoot('bare');
      this.readable = inRoot('readable');
      this.temporary = inRoot('tmp');
      for (const path of [this.workspace, this.bareWorkspace]) fillWorkspace(path, this.secret);
      this.sharedIn = new Map(
        ['/tmp', '/dev/shm'].map((parent) => [parent, orElse(() => this.make(parent), undefined)]),
      );
    } catch (error) {
      this[Symbol.dispose]();
      throw noTemporaryDirectory(error);
    }
  }

  /** A directory that `isGranted` says no to; `undefined`: the policy grants every place where one could be made. */
  makeOutside(isGranted: (path: string) => boolean): Outside | undefined {
    for (const parent of [tmpdir(), '/var/tmp', homedir()]) {
      const path = isGranted(parent) ? undefined : orElse(() => this.make(parent), undefined);
      if (path === undefined || isGranted(path)) continue;
      writeFileSync(join(path, 'open-by-launcher'), `${this.secret}\n`, { mode: 0o600 });
      const descriptor = openSync(path, 'r');
      this.open.push(descriptor);
      return { path, descriptor };
    }
    return undefined;
  }

  shared(parent: string): string | undefined {
    return this.sharedIn.get(parent);
  }

  [Symbol.dispose](): void {
    for (const descriptor of this.open.splice(0)) closeSync(descriptor);
    // What an attack shut stays: it lies in a directory of its own.
    for (const path of this.made.splice(0))
      orElse(() => rmSync(path, { recursive: true, force: true }), undefined);
  }

  private make(parent: string): string {
    const path = realpathSync(mkdtempSync(join(parent, PREFIX)));
    this.made.push(path);
    return path;
  }
}

/** Files of a workspace that the user's own tools obey later, with what is in them before. */
const TRUSTED_FILES = {
  '.git/hooks/pre-commit': '#!/bin/sh\n',
  '.git/config': '[core]\n\tbare = false\n',
  '.git/HEAD': 'ref: refs/heads/main\n',
  '.vscode/tasks.json': '{}\n',
  '.envrc': 'export A=1\n',
} as const;

function fillWorkspace(workspace: string, secret: string): void {
  const files = { ...TRUSTED_FILES, [join(HIDDEN_DIRECTORY, HIDDEN_FILE)]: `${secret}\n` };
  for (const [name, content] of Object.entries(files)) {
    mkdirSync(dirname(join(workspace, name)), { recursive: true });
    writeFileSync(join(workspace, name), content);
  }
}
