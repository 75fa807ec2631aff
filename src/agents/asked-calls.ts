import { SandboxError } from '../base/errors/sandbox-error.ts';
import type { RunOptions } from '../model/index.ts';
import type { CommandCheck, Sandbox } from '../run/index.ts';

/** A call of a model that a person may be asked about. */
interface AskedCall {
  /** The library's name for the call. */
  readonly id: string;
  /** Everything that was asked for, as text: only a call with the very same is the one that was asked about. */
  readonly content: string;
  readonly commands: readonly string[];
  readonly cwd?: string | undefined;
  /** Whether the application has answered for a call of that name already. */
  readonly isAnswered: boolean;
  /** Asked when the call is to run: whether the application's library has the approval of a person for it. */
  readonly isApproved: () => boolean;
}

/** What one command is run with. */
export type Approval = NonNullable<RunOptions['approved']>;

/** The questions about commands at this moment, to be bound to an answer. One that cannot be asked about is never approved. */
export async function bindNow(
  sandbox: Pick<Sandbox, 'check'>,
  commands: readonly string[],
  cwd?: string,
): Promise<{ readonly isQuestion: boolean; readonly approvals: readonly Approval[] }> {
  const checks: Partial<CommandCheck>[] = [];
  for (const command of commands) {
    try {
      checks.push(await sandbox.check(command, { cwd }));
    } catch (error) {
      // What cannot be looked at cannot be run either, and its result says why.
      if (!(error instanceof SandboxError)) throw error;
      checks.push({});
    }
  }
  return {
    isQuestion: checks.some(({ decision }) => decision?.verdict === 'ask'),
    approvals: checks.map(({ request }) => ({ fingerprint: request?.fingerprint ?? '' })),
  };
}

/** Unanswered questions that are remembered; the oldest are forgotten first, and their calls refused. */
const MOST_CALLS = 1000;

/**
 * The calls that people were asked about. That a library runs a call says little: an approval may have been given to another
 * call, to all calls, or to none. What counts here is that this very call was asked about, was approved, runs for the first
 * time, and would still be the same question.
 */
export class AskedCalls {
  readonly #sandbox: Pick<Sandbox, 'check'>;
  readonly #open = new Map<string, AskedCall & { readonly approvals: readonly Approval[] }>();

  constructor(sandbox: Pick<Sandbox, 'check'>) {
    this.#sandbox = sandbox;
  }

  /** Whether a person has to be asked about a call; if so, it is remembered. */
  async ask(call: AskedCall): Promise<boolean> {
    const { isQuestion, approvals } = await bindNow(this.#sandbox, call.commands, call.cwd);
    // An answer that is there already was given to another question, or the library asks again before it runs the call.
    if (isQuestion && !call.isAnswered) this.#keep(call, approvals);
    if (!isQuestion) this.#open.delete(call.id);
    return isQuestion;
  }

  /** Remembers a call that was approved already. */
  async remember(call: AskedCall): Promise<void> {
    this.#keep(call, (await bindNow(this.#sandbox, call.commands, call.cwd)).approvals);
  }

  /**
   * What to run each command of the call with, if it was approved: only with the question that was asked about it, which
   * is compared when it is launched; `undefined`: it was not. It is forgotten: an approval is good for once.
   */
  take(content: string, id?: string): readonly Approval[] | undefined {
    const call = [...this.#open.values()].find(
      (asked) => asked.content === content && (id === undefined || asked.id === id) && asked.isApproved(),
    );
    if (call === undefined) return undefined;
    this.#open.delete(call.id);
    return call.approvals;
  }

  #keep(call: AskedCall, approvals: readonly Approval[]): void {
    this.#open.delete(call.id);
    this.#open.set(call.id, { ...call, approvals });
    const [oldest] = this.#open.keys();
    if (this.#open.size > MOST_CALLS && oldest !== undefined) this.#open.delete(oldest);
  }
}
