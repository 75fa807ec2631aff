import type { SandboxOptions } from '../../model/index.ts';
import type { createChecker } from '../../run/index.ts';
import type { Surroundings } from '../../workspace/index.ts';
import type { AgentMemory } from './session-memory.ts';

/** What is done with a command that the policy allows. */
export const HOOK_MODES = ['decide', 'rewrite'] as const;
export type HookMode = (typeof HOOK_MODES)[number];

/** What an agent's settings tell us of after it happened, each with those before it: of tools that show what others wrote, and of those that show files. */
export const AFTER_SCOPES = ['nothing', 'outside', 'looks'] as const;
export type AfterScope = (typeof AFTER_SCOPES)[number];

/** What an agent's settings tell us of when it is over. */
export interface ToldAfterwards {
  /** `undefined`: of everything. */
  readonly after?: AfterScope;
  /** How commands ended that the agent ran itself. */
  readonly ends?: boolean;
}

/** What the operator wrote behind `hook AGENT`. */
export interface HookOptions extends ToldAfterwards {
  /** `decide`: the agent runs it itself, confined by nothing; `rewrite`: it runs through this program. */
  readonly mode: HookMode;
  readonly sandbox: Pick<SandboxOptions, 'profile' | 'policy' | 'backend' | 'autonomy' | 'timeout' | 'audit'>;
  /** Makes what decides; without it `createChecker`. */
  readonly createChecker?: typeof createChecker;
  /** Remembers sessions; without it the state of this user. */
  readonly sessionMemory?: (id: string) => AgentMemory;
  /** Called with what an agent runs in place of a command, behind the words that start this program, if it need not ask first. */
  readonly onRewritten?: (words: readonly string[]) => void;
  /** How this program was started. */
  readonly program: readonly string[];
  /** The program that hands calls of it over to a warm server; `undefined`: it is not installed. */
  readonly client?: string | undefined;
}

/** The same for one call of a hook. */
export interface HookCall extends HookOptions {
  /** Variables, directory and streams of the hook's process, which an agent starts as it starts commands. */
  readonly around: Surroundings;
}

/** A command that an agent wants to run. */
export interface BeforeCommand {
  readonly kind: 'before-command';
  /** The agent's own id of its session. */
  readonly session: string;
  /** Id of the call; the record of its end has it too. */
  readonly call: string | undefined;
  /** What the agent calls the tool. */
  readonly tool: string;
  readonly command: string;
  /** Where it would start, absolute; `undefined`: where the hook does. */
  readonly cwd: string | undefined;
  /** What the agent asks for, in milliseconds; `undefined`: nothing. */
  readonly timeoutMs: number | undefined;
  /** The agent does not wait for its end. */
  readonly isBackground: boolean;
  /**
   * The agent shows a question to its user and runs nothing before a yes. One that does not gets no `ask`: the run of ours
   * asks in the policy's own way, or refuses.
   */
  readonly canAsk: boolean;
  /**
   * The agent's answer form: the tool's input with another command, and everything else as it was. `limitMs`: when that
   * command is ended by itself, which an agent has to leave it the time for; 0: never.
   */
  readonly withCommand: (command: string, limitMs: number) => unknown;
}

/** A command of the agent has ended, or runs on in the background. */
export interface AfterCommand {
  readonly kind: 'after-command';
  readonly session: string;
  readonly call: string | undefined;
  readonly command: string;
  readonly cwd: string | undefined;
  /** `undefined`: not known. */
  readonly exitCode: number | undefined;
  readonly durationMs: number;
}

/** The agent has seen something with another tool. */
export interface AfterLook {
  readonly kind: 'after-look';
  readonly session: string;
  /** Name of the tool. */
  readonly tool: string;
  readonly cwd: string | undefined;
  /** Files or directories that were read, absolute or relative to `cwd`; `outside`: content that somebody else wrote. */
  readonly saw: { readonly paths: readonly string[] } | 'outside';
}

/** A session of the agent begins, or goes on with a shorter memory: the model is told what holds for its commands. */
export interface SessionStart {
  readonly kind: 'session-start';
  readonly session: string;
  /** The program had another session before, as with `/clear`. */
  readonly agentGoesOn: boolean;
}

/** The agent's session has ended. */
export interface SessionEnd {
  readonly kind: 'session-end';
  readonly session: string;
  /** The agent keeps running with another session, as after `/clear`, and so do its background commands. */
  readonly agentGoesOn: boolean;
}

/** Nothing that a decision is needed for. */
interface OtherEvent {
  readonly kind: 'other';
}

export type HookEvent = BeforeCommand | AfterCommand | AfterLook | SessionStart | SessionEnd | OtherEvent;

/**
 * What an agent is told. `none`: the policy has no objection, but grants nothing either, so the agent's own rules decide;
 * `stop`: the agent must not go on.
 */
export type HookAnswer =
  | { readonly verdict: 'none' }
  /** The answer to the start of a session. `text` is for the model. */
  | { readonly verdict: 'tell'; readonly text: string }
  /** The answer to the end of a session. `text` is for the user. */
  | { readonly verdict: 'inform'; readonly text: string }
  | {
      readonly verdict: 'allow' | 'ask';
      /** For a person. */
      readonly reason: string;
      /** What takes the place of the tool's input. */
      readonly input?: unknown;
    }
  /** `reason`: for a model. */
  | { readonly verdict: 'deny'; readonly reason: string }
  | { readonly verdict: 'stop'; readonly reason: string };

/** What one agent speaks. All of it comes from the agent: nothing in it may grant anything. */
export interface HookAdapter {
  /** The name of the agent on the command line. */
  readonly agent: string;
  /** The hook modes that the agent supports. */
  readonly modes: readonly HookMode[];
  /** The agent's project, which no model chooses; `undefined`: the current directory. */
  readonly projectOf: (env: Readonly<Record<string, string | undefined>>) => string | undefined;
  /**
   * Reads what the agent wrote.
   * @throws {SandboxError} `usage.invalid` for what is not an event in every respect.
   */
  readonly decode: (input: unknown) => HookEvent;
  /** An example of the agent's hook input before a command; missing: a warm server does not prepare for its calls. */
  readonly example?: (command: string, about: { readonly session: string; readonly cwd: string }) => unknown;
  /** The other agent that the input is from, as on the command line: it would not take this one's answers for what they are. */
  readonly sentBy?: (input: unknown) => string | undefined;
  /** What an event about which nothing else is known is answered with: it happens before something, or after. */
  readonly isAfter: (input: unknown) => boolean;
  /** The text for standard output; empty: nothing is said. */
  readonly encode: (answer: HookAnswer) => string;
}
