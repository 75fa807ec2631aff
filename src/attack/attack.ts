import type { ControlId } from '../model/enforcement-report.ts';

/** What the program said about one move: `LABEL=ok[:TEXT]` or why it did not work. */
export interface Said {
  readonly ok: boolean;
  /** What was got, if it worked; else the errno's name or what became of the process. */
  readonly text: string;
}

/** A process outside the sandbox that is there to be attacked. */
export interface Victim {
  readonly pid: number;
  /** Ports on 127.0.0.1. */
  readonly tcp: number;
  readonly udp: number;
  /** Where its secret is in its memory, in hexadecimal. */
  readonly address: string;
  /** Number of its System V shared memory. */
  readonly sharedMemory: string;
  /** Name of an abstract socket, with a leading `@`; datagrams go to the same name with `.datagram`. */
  readonly abstract: string;
  /** Whether a word came to it, or a signal: `signal-N`. */
  got(word: string): boolean;
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
  /** A directory of the host's own beneath `/tmp` or `/dev/shm`; `undefined`: none could be made. */
  shared(parent: '/tmp' | '/dev/shm'): string | undefined;
  readonly victim: Victim;
  /** Sockets by path, of the victim: outside and in the workspace. */
  readonly socketOutside: string;
  readonly socketInside: string;
  /** The program with the moves. */
  readonly program: string;
  /** What nobody else knows. */
  readonly secret: string;
  /** The variable of this process that has the secret. */
  readonly variable: string;
  /** A name of one's own for files, words and marks. */
  name(): string;
  /** A real-time signal that nobody else sends. */
  signal(): number;
  /** The policy shares the temporary directory of the host. */
  readonly sharesTemporary: boolean;
  /** The policy has this path of the workspace protected. */
  isProtected(path: string): boolean;
  /** The policy grants this path of the host. */
  isGranted(path: string): boolean;
}

/** An attack, ready to be tried in one place. */
export interface Staged {
  /** Name and arguments for `sandbox-run-attack`. */
  readonly move: readonly [string, ...string[]];
  /** Whether it worked, by what is seen outside. Default: it says so. */
  readonly worked?: (said: Said) => boolean | Promise<boolean>;
  /** A word in the command line of processes that may be left behind. */
  readonly mark?: string;
}

/** How the command of an attack is started: with others of its control, alone, on a terminal, under low limits. */
export type Manner = 'together' | 'alone' | 'terminal' | 'limited';

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
  /** Prepares it for one place; a sentence: why it cannot be tried there. */
  readonly stage: (place: Place) => Staged | string;
}

/** What worked is read from what was got, not from what the program says. */
export const showsSecret =
  ({ secret }: Place) =>
  (said: Said): boolean =>
    said.ok && said.text.includes(secret);
