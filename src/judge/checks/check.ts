import type {
  Autonomy,
  CommandRule,
  Effect,
  GatePorts,
  LookAtObeyed,
  Parsed,
  PathSearch,
  Reach,
  Reason,
  Risk,
  ShellFacts,
  SimpleCommand,
  StepsOrNot,
  Taint,
  Verdict,
  Versions,
} from '../../model/index.ts';

/** What keeps a command in while it runs, by the enforcement report: a question about it would be asked for nothing. */
interface Held {
  /** It changes and reads only what the policy gives it. */
  readonly files: boolean;
  /** Nothing outside can be reached: no network, no socket of the host. */
  readonly network: boolean;
  /** Only hosts that the operator listed can be reached, and no socket of the host. */
  readonly listedNetwork?: boolean;
  /** It signals only processes of its own. */
  readonly signals: boolean;
}

/** The part of the effective policy that the checks look at. Paths are absolute and canonical. */
export interface RulesOfCommands {
  /** Canonical path of the workspace. */
  readonly workspace: string;
  /** Where the command may write besides the workspace: temporary directory, `filesystem.write`. */
  readonly writable: readonly string[];
  /**
   * Beneath one of `writable` or `readable`, and yet not there for the command: the surroundings of a workspace that lies in the
   * host's temporary directory, whose place a private one takes, and what of /etc may hold secrets.
   */
  readonly hidden: readonly string[];
  /** Paths of `hidden` that commands can read nevertheless, because the policy grants a directory around them. */
  readonly shown?: readonly string[];
  /** Where commands may read, beside `writable`. */
  readonly readable: readonly string[];
  /** Paths that must not be written, even inside the workspace. */
  readonly protected: readonly string[];
  /** What `~` and `$HOME` are for the command; of a private one a name of which nothing exists on the host. */
  readonly home: string;
  /** Where such a home lies for the command, canonical, if that is where its user's lies; `undefined`: at a path of its own. */
  readonly homeShown?: string | undefined;
  /** Places of tools in a private home, relative to it. */
  readonly privatePlaces?: readonly string[];
  /** The user's own home, which a command may name by its path. */
  readonly userHome: string;
  /** `commands.allow`; `undefined`: every program may run. */
  readonly allow: readonly string[] | undefined;
  /** `commands.permit_dangerous`. */
  readonly permitDangerous: readonly string[];
  /** `commands.rules`. */
  readonly own: readonly CommandRule[];
  /** `security.max_actions_per_hour`; `undefined`: no limit. */
  readonly maxActionsPerHour: number | undefined;
  /** Milliseconds that a reviewer may take. */
  readonly reviewerTimeoutMs: number;
  readonly held: Held;
  /** The part of the policy that lets commands reach outside; `undefined`: none does, or another program runs them. */
  readonly opened: string | undefined;
  /** A socket of the host can be reached: the server behind it reads with its own rights. */
  readonly asksServers?: boolean;
  /** Writable places outside the workspace that the policy granted: of `writable`, what is not private to a command. */
  readonly granted: readonly string[];
  /** The git directory outside of the workspace to which its repository belongs; it is one of `granted`. */
  readonly gitOutside?: string | undefined;
  /** Variables that it may get with its environment, with a `*` at the end for any rest; `undefined`: any. */
  readonly environment?: readonly string[] | undefined;
  /** Changes of the workspace can be held back here. */
  readonly previews?: boolean;
  /** The workspace is a copy, which goes with its sandbox. */
  readonly isCopy?: boolean | undefined;
  /** What commands change in the workspace with the effect `undoable` can be taken back, whatever it is. */
  readonly undoes?: boolean;
  /** The decision is all that keeps a command in (backend `application`). */
  readonly onlyChecks?: boolean;
}

/**
 * The level that is in force: `contained` counts on the sandbox, and is `supervised` where that holds too little. A way
 * out that the policy opened is no reason for it: what uses the way is asked about.
 */
export function autonomyInForce(
  asked: Autonomy,
  { held, opened }: Pick<RulesOfCommands, 'held' | 'opened'>,
): Autonomy {
  const holds = held.files && (held.network || held.listedNetwork === true || opened !== undefined);
  return asked === 'contained' && !holds ? 'supervised' : asked;
}

/** Port: texts that a command runs and that do not stand in its words. */
export interface InnerTexts {
  readonly parse: (text: string) => Parsed;
  /** A file by its canonical path; `undefined`: it cannot be read, is no text, or is too long. */
  readonly read: (path: string) => string | undefined;
  /** The aliases that git would know in a directory. */
  readonly aliasesIn: (directory: string) => Promise<readonly (readonly [name: string, value: string])[]>;
}

/** Everything that a check may look at. Values and ports; a check does no input or output of its own. */
export interface CheckContext {
  readonly parsed: Parsed;
  /** The request as text, for people, reviewers and hooks: the shell string, or the words of an argument vector. */
  readonly text: string;
  /** Risk and reach of the whole line, computed once from the tables in `programs/`. */
  readonly risk: Risk;
  readonly reach: Reach;
  readonly autonomy: Autonomy;
  /** Where its changes of the workspace go; `losses`: at once into it, and what would be asked about as a loss is undoable. */
  readonly effect: Effect | 'losses';
  readonly approved: boolean;
  readonly taints: ReadonlySet<Taint>;
  /** Canonical directory in which the line starts. */
  readonly cwd: string;
  readonly rules: RulesOfCommands;
  readonly paths: PathSearch;
  /**
   * Canonical path of the executable that a name stands for with the child's PATH; a name with a slash is a path from
   * `cwd`. `undefined`: none was found.
   */
  readonly findExecutable: (name: string, cwd: string) => string | undefined;
  readonly gate: GatePorts;
  /** The shell that the line is for, if it is one that has run others; `undefined`: a new one. */
  readonly shell?: ShellFacts | undefined;
  /** Variables that the request sets (`undefined`: takes away) for the command. */
  readonly variables?: Readonly<Record<string, string | undefined>> | undefined;
  /** What the version control of the workspace has; `undefined`: there is none. */
  readonly versions?: Versions | undefined;
  /** `undefined`: such texts are not looked at. */
  readonly inner?: InnerTexts | undefined;
  /**
   * What bash says of a text that it would not run because of its syntax; `undefined`: nothing. For texts that are not
   * understood.
   */
  readonly syntaxError?: ((text: string) => Promise<string | undefined>) | undefined;
  /** `undefined`: nothing can be looked at, so that what obeys such files is refused. */
  readonly obeyed?: LookAtObeyed | undefined;
  /** The shell string as programs that need no shell, where none is run. */
  readonly steps?: StepsOrNot | undefined;
}

/** One check of the registry. It has no opinion if it returns nothing. */
export interface Check {
  readonly name: string;
  /** One sentence for `policy show`. */
  readonly summary: string;
  /** It asks somebody else, and that only about what no other check refuses. */
  readonly isLast?: true;
  judge(context: CheckContext): readonly Reason[] | Promise<readonly Reason[]>;
}

/** Makes the reasons of one check. */
export function reasonFor(
  check: string,
): (verdict: Verdict | undefined, code: string, message: string, ...words: readonly string[]) => Reason {
  return (verdict, code, message, ...words) => ({ check, verdict, code, message, words });
}

/** What there is to judge: every command, or those that were recognised in a line that was not understood. */
export function commandsOf(parsed: Parsed): readonly SimpleCommand[] {
  return parsed.understood ? parsed.line.commands : parsed.problem.recognized;
}

/** Code that cannot be seen beforehand is no reason to ask: it is contained. */
export function holdsUnseenCode({ autonomy, rules }: Pick<CheckContext, 'autonomy' | 'rules'>): boolean {
  const { network, listedNetwork } = rules.held;
  return autonomy === 'contained' && (network || listedNetwork === true) && rules.opened === undefined;
}
