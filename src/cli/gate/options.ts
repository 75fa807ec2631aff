import { InvalidArgumentError } from 'commander';
import { SandboxError } from '../../errors/sandbox-error.ts';
import type { Taint } from '../../model/decision.ts';
import type { SandboxOptions } from '../../model/options.ts';

/** Options of `gate serve`. */
export interface ServeOptions {
  readonly socket?: string;
  readonly workspace?: string;
  readonly profile?: string;
  readonly policy?: string;
  readonly allowUid?: readonly number[];
  readonly quiet?: boolean;
}

/** Options of `gate check`. */
export interface CheckOptions extends Omit<ServeOptions, 'allowUid' | 'quiet'> {
  readonly shell?: string;
  readonly session?: string;
  readonly tool?: string;
  readonly taint?: readonly Taint[];
  readonly timeout?: number;
  readonly json?: boolean;
}

/** The socket that a client asks on. @throws {SandboxError} `usage.invalid` if none is named. */
export function socketOf(options: CheckOptions): string {
  const socket = options.socket ?? process.env.SANDBOX_RUN_GATE;
  if (socket !== undefined && socket !== '') return socket;
  throw new SandboxError('usage.invalid', 'no gate is named: use --socket, or set SANDBOX_RUN_GATE');
}

/** Whose policy it is. */
export function sandboxOptionsOf({ workspace, profile, policy }: ServeOptions): SandboxOptions {
  return {
    ...(workspace === undefined ? {} : { workspace }),
    ...(profile === undefined ? {} : { profile }),
    ...(policy === undefined ? {} : { policy }),
  };
}

/** (uid_t)-1 is nobody, for the kernel. */
const MAX_UID = 0xffff_fffe;

/** `--allow-uid N`. */
export function parseUid(text: string): number {
  if (/^\d{1,10}$/.test(text) && Number(text) <= MAX_UID) return Number(text);
  throw new InvalidArgumentError('it must be the number of a user.');
}

/** `--timeout S`, in milliseconds. */
export function parseGateSeconds(text: string): number {
  const seconds = Number(text);
  if (text.trim() !== '' && seconds > 0 && seconds <= 86_400) return Math.ceil(seconds * 1000);
  throw new InvalidArgumentError('it must be a number of seconds, more than 0 and at most a day.');
}
