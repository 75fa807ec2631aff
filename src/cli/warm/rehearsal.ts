import { setTimeout as pause } from 'node:timers/promises';
import { answerHook, checkerParts, type HookOptions } from '../../agents/index.ts';
import { WITHOUT } from '../../gate/index.ts';
import { checkOnly } from '../../run/index.ts';
import type { Caller } from '../../serve/index.ts';
import { parseHookArguments } from '../hook/answer.ts';
import { agentOf } from '../hook/arguments.ts';
import { parseRunArguments } from '../run/options.ts';
import * as run from '../run/run.ts';
import { onBehalfOf } from '../shared/caller.ts';
import { SignalForwarding } from '../shared/signals.ts';
import type { OpenPolicies } from './pool.ts';
import type { Rehearsed } from './start.ts';

/** Typical commands of agents, to be decided about in turn. None of them is run. */
const COMMANDS = [
  'ls -la src',
  "grep -rn 'TODO' src --include='*.ts' | head -20",
  'git status --short && git diff --stat',
  'cat package.json 2>/dev/null | wc -l',
  'npm test 2>&1 | tail -5',
  'mkdir -p build && echo "one $HOME" > build/out.txt',
  "cat > notes.txt <<'END'\na line\nEND",
  'for f in a b; do python3 -c "print(1)" "$f"; done',
];
/** Rounds after which V8 has compiled the code of a decision, so that calls take hardly less time later. */
const ROUNDS = 48;
/** Rounds for later sessions of the server, when the code is compiled already: they only open policies. */
const FEW_ROUNDS = 2;
/** Milliseconds between two rounds, which leave the processor to other processes: they are busy, too, when a session begins. */
const PAUSE_MS = 4;
/** Milliseconds to wait before looking again whether a call is being answered. */
const BUSY_MS = 20;

/**
 * Warms a server up: it opens policies and decides about example commands, so that code is compiled, before the first call of a
 * session comes. Nothing is run, recorded, counted, remembered or asked.
 */
export class Rehearsal {
  readonly #policies: OpenPolicies;
  readonly #isBusy: () => boolean;
  #isOver = false;
  #rounds = ROUNDS;

  /** `isBusy`: whether the server is answering a call. The rehearsal pauses then. */
  constructor(policies: OpenPolicies, isBusy: () => boolean) {
    this.#policies = policies;
    this.#isBusy = isBusy;
  }

  /** Begins in the background. Errors are ignored on purpose: a real call meets the same error and reports it. */
  begin(session: Rehearsed, env: Caller['env']): void {
    const rounds = this.#rounds;
    this.#rounds = FEW_ROUNDS;
    void this.#go(session, silentCaller(session.cwd, env), rounds).catch(() => {});
  }

  end(): void {
    this.#isOver = true;
  }

  async #go(session: Rehearsed, caller: Caller, rounds: number): Promise<void> {
    for (let round = 0; round < rounds; round += 1) {
      while (this.#isBusy()) await pause(BUSY_MS);
      if (this.#isOver) return;
      const goesOn = await onBehalfOf(caller, () => this.#once(session, round, caller));
      if (!goesOn) return;
      await pause(PAUSE_MS);
    }
  }

  /** One round. Returns false if no further round is of any use. */
  async #once({ args, session, cwd }: Rehearsed, round: number, around: Caller): Promise<boolean> {
    const wanted = parseHookArguments(args);
    if (wanted === undefined) return false;
    const { hooks } = await agentOf(wanted.agent, wanted.options.mode);
    if (hooks.example === undefined) return false;
    let rewritten: string | undefined;
    const silent = {
      ...hooks,
      decode: (input: unknown) => {
        const event = hooks.decode(input);
        if (event.kind !== 'before-command') return event;
        const withCommand = (line: string, limitMs: number) => {
          rewritten = line;
          return event.withCommand(line, limitMs);
        };
        // If the agent could ask, a pending question would be stored for its answer.
        return { ...event, canAsk: false, withCommand };
      },
    };
    if (round === 0 && !(await this.#openChecker(wanted.options, hooks.projectOf(around.env) ?? cwd, around)))
      return false;
    const command = COMMANDS[round % COMMANDS.length] ?? '';
    const input = Buffer.from(JSON.stringify(hooks.example(command, { session, cwd })));
    await answerHook(silent, input, { ...this.#withoutMemory(wanted.options), around });
    if (rewritten !== undefined) await this.#open(wordsOf(rewritten), around);
    return true;
  }

  /** The options without the parts that store something or ask somebody, and without the words that start this program. */
  #withoutMemory(options: HookOptions): HookOptions {
    return {
      ...options,
      ...{ program: [], client: undefined },
      createChecker: async (wanted, around, parts) => {
        const checker = await this.#policies.checker(wanted, around, {
          ...parts,
          guards: false,
          records: false,
        });
        return { ...checker, ports: async () => checkOnly(await checker.ports()) };
      },
      sessionMemory: (id) => ({ ...WITHOUT.session, id, close: async () => {} }),
    };
  }

  /** Opens the checker that the calls of the session will use. Returns false if a call could not use it. */
  async #openChecker({ mode, sandbox }: HookOptions, workspace: string, around: Caller): Promise<boolean> {
    if (!(await this.#policies.isWorthOpening({ ...sandbox, workspace }, around))) return false;
    const checker = await this.#policies.checker({ ...sandbox, workspace }, around, checkerParts(mode));
    await checker.close();
    // Loads the code that stores a session, without storing anything yet.
    await import('../../run/stateful-parts.ts');
    return true;
  }

  /** Makes the kernel objects for the sandbox of such a command, and nothing else. */
  async #open(args: readonly string[], around: Caller): Promise<void> {
    const wanted = parseRunArguments(args);
    if (wanted === undefined) return;
    using signals = new SignalForwarding();
    await this.#policies.prepare(run.sandboxFor(wanted, signals), around);
  }
}

/** A caller for work without a client: what is printed is dropped. */
export function silentCaller(cwd: string, env: Caller['env']): Caller {
  return {
    ...{ env, cwd: () => cwd, stdio: [-1, -1, -1] },
    write: () => true,
    onSignals: () => ({ [Symbol.dispose]: () => {} }),
    stop: () => {},
  };
}

/** Splits a line that base/shell-quote.ts made into its words. */
function wordsOf(line: string): readonly string[] {
  return line
    .replaceAll("'\\''", '\0')
    .slice(1, -1)
    .split("' '")
    .map((word) => word.replaceAll('\0', "'"));
}
