import { readdirSync, statfsSync } from 'node:fs';
import { hostname, release } from 'node:os';
import { dirname, join } from 'node:path';
import { errnoOf } from '../base/errno-of.ts';
import { SandboxError } from '../base/errors/sandbox-error.ts';
import { refuseShortage } from '../base/errors/shortage.ts';
import type { MaybePromise } from '../base/promise.ts';
import type { Policy, RecordStream, State } from '../model/index.ts';
import { ensureStateDirectory, homeDirectory, stateDirectoryPath } from '../workspace/index.ts';
import { operatorStateSettings } from './resolve/policy-layers.ts';

/** The state directory of this process's user; it need not exist. */
export function stateDirectory(): string {
  return stateDirectoryPath(homeDirectory(), process.env.XDG_STATE_HOME);
}

/** OVERLAYFS_SUPER_MAGIC of linux/magic.h. */
const OVERLAYFS = 0x794c7630;

/** Why no layer over a workspace can lie in the state directory, as far as kernel and file system tell without a trial. */
export function layersRefused(kernel: string = release()): string | undefined {
  const [major = 0, minor = 0] = kernel.split('.').map(Number.parseFloat);
  // overlayfs has `userxattr`, without which no namespace of ours mounts it, from then on.
  if (major < 5 || (major === 5 && minor < 11))
    return `overlayfs in a namespace needs Linux 5.11, and this is ${kernel}`;
  const directory = stateDirectory();
  // No overlay has its changes on another one: the root of a container is one.
  if (!isOnOverlay(directory)) return undefined;
  return `the state directory ${directory} lies on overlayfs, as in containers; set XDG_STATE_HOME to a place on a volume or a tmpfs`;
}

/** Whether a directory, or the nearest one above it that exists, is on overlayfs. One that cannot be examined is left to the launch. */
function isOnOverlay(directory: string): boolean {
  for (let at = directory; ; at = dirname(at)) {
    try {
      return statfsSync(at).type === OVERLAYFS;
    } catch (error) {
      refuseShortage(error);
      if (errnoOf(error) !== 'ENOENT' || at === '/') return false;
    }
  }
}

/** Where the audit trail of a state directory is. */
export function auditDirectory(directory: string = stateDirectory()): string {
  return join(directory, 'audit');
}

/** Where the state is: what a policy says of it. */
export type StateSettings = Policy['state'];

/**
 * Whether anything was ever remembered: loading SQLite takes as long as a decision. Also if only what belongs to the database
 * is left, which opening it then refuses.
 * @throws {SandboxError} `state.unusable`: what cannot be looked at may be there.
 */
export function hasState(directory: string = stateDirectory()): boolean {
  try {
    return readdirSync(directory).some((name) => name.startsWith('gate.db'));
  } catch (error) {
    const code = errnoOf(error);
    if (code === 'ENOENT' || code === 'ENOTDIR') return false;
    throw new SandboxError(
      'state.unusable',
      `${directory} cannot be looked at; make it readable or set XDG_STATE_HOME`,
      { cause: error },
    );
  }
}

/** The state of a directory, opened with the first call; at once from then on. A failure is tried again by the next. */
export interface LazyState {
  (): MaybePromise<State>;
  /** Closes what was opened. A later call opens it again. */
  close(): Promise<void>;
}

/** Opens nothing before it is needed: the directory, or the server that the policy names. */
export function lazyState(
  directory: string,
  settings: () => MaybePromise<StateSettings | undefined> = operatorStateSettings,
): LazyState {
  let state: MaybePromise<State> | undefined;
  const get = () => {
    state ??= open(directory, settings).then(
      (opened) => {
        state = opened;
        return opened;
      },
      (error: unknown) => {
        state = undefined;
        throw error;
      },
    );
    return state;
  };
  const close = async () => {
    const opened = await state;
    state = undefined;
    await opened?.close();
  };
  return Object.assign(get, { close });
}

async function open(
  directory: string,
  settings: () => MaybePromise<StateSettings | undefined>,
): Promise<State> {
  const said = await settings();
  if (said?.url !== undefined) {
    const { openFleetStore, openFleetState } = await import('./fleet-parts.ts');
    return openFleetState(await openFleetStore({ ...said, url: said.url }, fleetName()));
  }
  const { openState } = await import('./stateful-parts.ts');
  return openState(ensureStateDirectory(directory));
}

/** Who actions are counted for and approvals belong to, unless the application says: the user of this process. */
export function defaultPrincipal(): string {
  return `uid:${process.geteuid?.()}`;
}

/**
 * The audit stream of a fleet.
 * @throws {SandboxError} `fleet.…`, `policy.invalid` where the settings name no server.
 */
export async function openOwnStream(settings: StateSettings): Promise<RecordStream> {
  const { url } = settings;
  if (url === undefined)
    throw new SandboxError('policy.invalid', 'the policy names no server of a fleet (state.url)');
  const { openRecordStream } = await import('./fleet-parts.ts');
  return openRecordStream({ ...settings, url }, fleetName());
}

/** What a NATS server shows of this process. */
const fleetName = () => `sandbox-run ${hostname()} ${process.pid}`;

/** The state of this user, for commands that only show or change it, and whose it is. */
export async function openOwnState(
  principal: string = defaultPrincipal(),
  settings?: StateSettings,
): Promise<{ readonly state: State; readonly principal: string }> {
  return {
    state: await open(stateDirectory(), settings ? () => settings : operatorStateSettings),
    principal,
  };
}
