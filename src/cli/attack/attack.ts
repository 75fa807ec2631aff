import { randomBytes } from 'node:crypto';
import type { ControlId, ControlState } from '../../confine/plan/enforcement-report.ts';
import type { Policy } from '../../model/index.ts';
import type { Bystander } from './bystander.ts';

/** The variable of this process that has the secret; its name is one that no pattern passes on. */
export const SECRET_VARIABLE = 'SANDBOX_RUN_DOCTOR_SECRET';

/** What the program said about one move: `LABEL=ok[:TEXT]` or why it did not work. */
export interface Said {
  readonly ok: boolean;
  /** What was got, if it worked; else the errno's name or what became of the process. */
  readonly text: string;
}

/** Where an attack is tried: once without a sandbox, then inside one. Everything in it was made for it. */
export interface Place {
  readonly inSandbox: boolean;
  /** What a command may work in; the working directory. */
  readonly workspace: string;
  /** A directory that the policy does not grant. */
  readonly outside: string;
  /** A directory to which the policy gives read access. */
  readonly readable: string;
  /** A directory of the host's own beneath one that everybody may write to. */
  shared(parent: '/tmp' | '/dev/shm'): string;
  readonly victim: Bystander;
  /** The program with the moves. */
  readonly program: string;
  /** What nobody else knows. */
  readonly secret: string;
  /** A real-time signal that nobody else sends. */
  signal(): number;
  /** What the policy says about files. */
  readonly files: Policy['filesystem'];
  /** The policy grants this path of the host. */
  isGranted(path: string): boolean;
  /** The policy lists this port of 127.0.0.1. */
  isListed(port: number): boolean;
}

/** Name and arguments for `sandbox-run-attack`. */
export type Move = readonly [string, ...string[]];

/** An attack, ready to be tried in one place. */
export interface Staged {
  readonly move: Move;
  /**
   * Whether it worked, by what is seen outside. Default: it says so. What it throws says why that cannot be seen: then the
   * attack neither worked nor was held.
   */
  readonly worked?: (said: Said, told: ToldDenials) => boolean | Promise<boolean>;
  /** A word in the command line of processes that may be left behind. */
  readonly mark?: string;
}

/** What the result of a command in the sandbox says that it was denied. */
export interface ToldDenials {
  readonly objects: readonly string[];
  /** Calls could not be looked at, for want of descriptors say: the list may lack something. */
  readonly isIncomplete: boolean;
}

/** Prepares an attack for one place. What it throws says why it cannot be tried there. */
export type Stage = (place: Place) => Staged;

/**
 * How the command of an attack is started: with others of its control, alone, on a terminal, under low limits, or with others
 * where the network lists one server, or in a preview.
 */
export type Manner = 'together' | 'alone' | 'terminal' | 'limited' | 'listed' | 'previewed';

/** One move of an attacker. */
export interface Attack {
  /** Named by the move; stable. */
  readonly id: string;
  readonly control: ControlId;
  /** What is done, for people. */
  readonly does: string;
  /** Default: `together`. */
  readonly manner?: Manner;
  /** Also a control that our own backends report as degraded claims to stop this. */
  readonly claimedInPart?: true;
  /**
   * States of the control in which a claim that was not kept let nothing out, as on a machine that is too busy to look in time:
   * what worked is `failed` then, and not an escape.
   */
  readonly letsNothingOut?: readonly ControlState[];
  readonly stage: Stage;
}

/** What came of an attack in a place. */
export type Observation =
  | { readonly kind: 'worked' }
  | { readonly kind: 'held' | 'failed' | 'not-tried'; readonly reason: string }
  /** It failed for want of descriptors or memory, which says nothing at all. */
  | { readonly kind: 'short'; readonly reason: string };

type Further = Pick<Attack, 'manner' | 'claimedInPart' | 'letsNothingOut'>;
type Row = readonly [id: string, does: string, stage: Stage, further?: Further];

/** For attacks that a control in part claims to stop, too. */
export const IN_PART = { claimedInPart: true } as const satisfies Further;

/** The attacks on one control, as a table. `further`: what holds for all of them. */
export function attacksOn(
  control: ControlId,
  rows: readonly Row[],
  further: Further = {},
): readonly Attack[] {
  return rows.map(([id, does, stage, more]) => ({ id, control, does, stage, ...further, ...more }));
}

/** A move of which the program itself says whether it worked. */
export const says =
  (...move: Move): Stage =>
  () => ({ move });

/** The process that starts the attacks. */
export const LAUNCHER = String(process.pid);
/** `htons(ETH_P_ALL)`. */
export const ALL_PACKETS = 0x0300;

/** For a socket of this family, type and protocol. */
export const asksForSocket = (...what: readonly [number, number, number]): Stage =>
  says('ask-for-socket', ...what.map(String));

/** One that is to get the secret: whether it worked is read from what was got. */
export const getsSecret =
  (move: (place: Place) => Move): Stage =>
  (place) => ({ move: move(place), worked: ({ ok, text }) => ok && text.includes(place.secret) });

/**
 * For what an attack needs of a place.
 * @throws why it cannot be tried there.
 */
export function onlyIf(condition: boolean, otherwise: string): asserts condition {
  if (!condition) throw new Error(otherwise);
}

/** A random name that is told from all others, for files, words and marks. */
export const freshName = (): string => `attack-${randomBytes(6).toString('hex')}`;
