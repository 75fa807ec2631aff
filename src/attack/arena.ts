import { randomBytes } from 'node:crypto';
import { closeSync, mkdirSync, mkdtempSync, openSync, realpathSync, rmSync, writeFileSync } from 'node:fs';
import { homedir, tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { SandboxError } from '../errors/sandbox-error.ts';
import type { LaunchPlan } from '../model/launch-plan.ts';
import type { Policy } from '../model/policy.ts';
import { isBeneath } from '../util/absolute-path.ts';
import { errnoOf } from '../util/errno-of.ts';
import { onlyIf, type Place } from './attack.ts';
import type { Bystander } from './bystander.ts';
import { TRUSTED_FILES } from './file-attacks.ts';

const PREFIX = 'sandbox-run-doctor-';

/** Directories in which everything is a canary. Removed as a whole. */
export interface Arena {
  readonly secret: string;
  /** The workspace of the sandbox, and the one for trying without. */
  readonly workspace: string;
  readonly bareWorkspace: string;
  readonly readable: string;
  /** Temporary files of what is tried without a sandbox. */
  readonly temporary: string;
  /** A directory that `isGranted` says no to; `undefined`: the policy grants every place where one could be made. */
  makeOutside(isGranted: (path: string) => boolean): Outside | undefined;
  shared(parent: string): string | undefined;
  dispose(): void;
}

/** A directory outside. */
interface Outside {
  readonly path: string;
  /** Open in this process. */
  readonly descriptor: number;
}

/**
 * Makes the directories.
 * @throws {SandboxError} `confinement.failed` where nothing can be made.
 */
export function makeArena(): Arena {
  const made: string[] = [];
  const open: number[] = [];
  const make = (parent: string): string => {
    const path = realpathSync(mkdtempSync(join(parent, PREFIX)));
    made.push(path);
    return path;
  };
  const secret = `secret-${randomBytes(12).toString('hex')}`;
  const dispose = () => {
    for (const descriptor of open.splice(0)) closeSync(descriptor);
    for (const path of made.splice(0)) removeIfThere(path);
  };
  try {
    const root = make(tmpdir());
    const [workspace, bareWorkspace, readable, temporary] = ['work', 'bare', 'readable', 'tmp'].map(
      (name) => {
        const path = join(root, name);
        mkdirSync(path);
        return path;
      },
    ) as [string, string, string, string];
    for (const path of [workspace, bareWorkspace]) fillWorkspace(path);
    const shared = new Map(['/tmp', '/dev/shm'].map((parent) => [parent, orNothing(() => make(parent))]));
    return {
      secret,
      workspace,
      bareWorkspace,
      readable,
      temporary,
      makeOutside: (isGranted) => {
        for (const parent of [tmpdir(), '/var/tmp', homedir()]) {
          const path = isGranted(parent) ? undefined : orNothing(() => make(parent));
          if (path === undefined || isGranted(path)) continue;
          writeFileSync(join(path, 'open-by-launcher'), `${secret}\n`, { mode: 0o600 });
          const descriptor = openSync(path, 'r');
          open.push(descriptor);
          return { path, descriptor };
        }
        return undefined;
      },
      shared: (parent) => shared.get(parent),
      dispose,
    };
  } catch (error) {
    dispose();
    if (error instanceof SandboxError) throw error;
    const code = errnoOf(error) ?? String(error);
    throw new SandboxError(
      'confinement.failed',
      `no temporary directory can be made in ${tmpdir()} (${code}); set TMPDIR to a writable directory`,
    );
  }
}

function fillWorkspace(workspace: string): void {
  for (const [name, content] of Object.entries(TRUSTED_FILES)) {
    mkdirSync(dirname(join(workspace, name)), { recursive: true });
    writeFileSync(join(workspace, name), content);
  }
}

function orNothing<T>(make: () => T): T | undefined {
  try {
    return make();
  } catch {
    return undefined;
  }
}

function removeIfThere(path: string): void {
  try {
    rmSync(path, { recursive: true, force: true });
  } catch {
    // What an attack shut stays: it lies in a directory of its own.
  }
}

/** What the places in which attacks are tried are made of. */
interface PlaceParts {
  readonly arena: Arena;
  readonly outside: Outside | undefined;
  readonly victim: Bystander;
  readonly program: string;
  readonly plan: Pick<LaunchPlan, 'paths'>;
  readonly policy: Policy;
}

/** The first real-time signal that libc leaves to programs, and some for those who use them. */
const FIRST_SIGNAL = 40;

/** Whether the policy lets commands have a path. */
export const isGrantedBy =
  ({ paths }: Pick<LaunchPlan, 'paths'>) =>
  (path: string): boolean =>
    paths.some((grant) => isBeneath(path, grant.path));

/** The two places in which attacks are tried. */
export function makePlaces(parts: PlaceParts): { readonly bare: Place; readonly confined: Place } {
  let lastSignal = FIRST_SIGNAL;
  const { arena, outside, victim, program, plan, policy } = parts;
  const isReadOnly = plan.paths.some(({ path, access }) => path === arena.readable && access === 'read');
  const place = (inSandbox: boolean): Place => ({
    inSandbox,
    workspace: inSandbox ? arena.workspace : arena.bareWorkspace,
    get outside() {
      onlyIf(outside !== undefined, 'the policy grants every place where a file could be put');
      return outside.path;
    },
    get readable() {
      onlyIf(isReadOnly, 'the policy gives nothing that may only be read');
      return arena.readable;
    },
    shared: (parent) => {
      const directory = arena.shared(parent);
      onlyIf(directory !== undefined, `nothing can be made in ${parent}`);
      return directory;
    },
    victim,
    program,
    secret: arena.secret,
    signal: () => lastSignal++,
    files: policy.filesystem,
    isGranted: isGrantedBy(plan),
  });
  return { bare: place(false), confined: place(true) };
}
