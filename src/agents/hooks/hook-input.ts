import { SandboxError } from '../../base/errors/sandbox-error.ts';
import type { HookAnswer, SessionEnd, SessionStart } from './hook-adapter.ts';

// By hand: loading zod would take longer than everything else that a hook does.

/** The members of a JSON object that an agent wrote. */
export type Fields = Readonly<Record<string, unknown>>;

interface Kinds {
  readonly string: string;
  readonly number: number;
  readonly boolean: boolean;
}

/** Reasons in `SessionEnd`, and sources in `SessionStart`, of Claude Code and Gemini CLI with which the agent changes sessions while it runs. */
const GOES_ON: ReadonlySet<unknown> = new Set(['clear', 'resume']);

/** Whether a value is a JSON object. */
export function isFields(value: unknown): value is Fields {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** Reads what one agent writes. Every method throws `usage.invalid` for what is not as that agent writes it. */
export class HookInput {
  readonly #program: string;

  /** `program`: the agent, for people. */
  constructor(program: string) {
    this.#program = program;
  }

  /** The whole input. */
  all(input: unknown): Fields {
    if (!isFields(input)) throw this.malformed('the input', 'a JSON object');
    return input;
  }

  fields(input: Fields, name: string): Fields {
    const value = input[name];
    if (!isFields(value)) throw this.malformed(`"${name}"`, 'an object');
    return value;
  }

  text(input: Fields, name: string): string {
    const value = input[name];
    if (typeof value !== 'string' || value === '') throw this.malformed(`"${name}"`, 'text');
    return value;
  }

  optional<K extends keyof Kinds>(input: Fields, name: string, kind: K): Kinds[K] | undefined {
    const value = input[name];
    if (value === undefined || value === null) return undefined;
    if (typeof value !== kind) throw this.malformed(`"${name}"`, `a ${kind}`);
    return value as Kinds[K];
  }

  /** A shell string that is exactly what a shell would get. */
  shellText(input: Fields, name = 'command'): string {
    const command = this.text(input, name);
    // Neither can be handed to a program as it is: what was judged would not be what runs.
    if (/\0|\p{Surrogate}/u.test(command))
      throw this.malformed(`"${name}"`, 'text that can be handed to a program');
    return command;
  }

  /** Decodes the start or the end of a session: all agents with these events have the same fields. */
  sessionEvent(input: Fields, isStart: boolean): SessionStart | SessionEnd {
    const session = this.text(input, 'session_id');
    if (isStart) return { kind: 'session-start', session, agentGoesOn: GOES_ON.has(input.source) };
    return { kind: 'session-end', session, agentGoesOn: GOES_ON.has(input.reason) };
  }

  /** An absolute path. */
  directory(input: Fields, name: string): string | undefined {
    const path = this.optional(input, name, 'string');
    if (path?.startsWith('/') === false) throw this.malformed(`"${name}"`, 'an absolute path');
    return path;
  }

  /** Milliseconds. */
  duration(input: Fields, name: string): number | undefined {
    const value = input[name];
    // A model that writes numbers as text is put right by the agent.
    const number = typeof value === 'string' && /^\d{1,12}$/.test(value) ? Number(value) : value;
    if (number === undefined || number === null) return undefined;
    if (typeof number === 'number' && Number.isFinite(number) && number >= 0) return number;
    throw this.malformed(`"${name}"`, 'a number of milliseconds');
  }

  malformed(what: string, expected: string): SandboxError {
    return new SandboxError(
      'usage.invalid',
      `the hook's input is not what ${this.#program} sends: ${what} is not ${expected}`,
    );
  }
}

/** What is said of a call. */
export type DecidedAnswer = Exclude<HookAnswer, { readonly verdict: 'none' | 'tell' | 'inform' | 'stop' }>;

/** An answer as Claude Code takes it, and Codex. */
export function hookOutput(answer: HookAnswer, decision: (answer: DecidedAnswer) => Fields): string {
  const specific = (output: Fields) => `${JSON.stringify({ hookSpecificOutput: output })}\n`;
  switch (answer.verdict) {
    case 'none':
      return '';
    case 'tell':
      return specific({ hookEventName: 'SessionStart', additionalContext: answer.text });
    case 'inform':
      return `${JSON.stringify({ systemMessage: answer.text })}\n`;
    case 'stop':
      return `${JSON.stringify({ continue: false, stopReason: answer.reason })}\n`;
    default:
      return specific({ hookEventName: 'PreToolUse', ...decision(answer) });
  }
}
