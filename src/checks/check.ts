import type { Parsed, SimpleCommand } from '../model/command-line.ts';
import type { Autonomy, Reach, Reason, Risk, Taint, Verdict } from '../model/decision.ts';
import type { GatePorts } from '../model/gate-ports.ts';
import type { PathLookup } from '../model/path-lookup.ts';
import type { ShellFacts } from '../model/shell-facts.ts';
import type { StepsOrNot } from '../model/steps.ts';
import type { Versions } from '../model/versions.ts';
import type { RulesOfCommands } from './rules.ts';

/** Everything that a check may look at. Values and ports; a check does no input or output of its own. */
export interface CheckContext {
  readonly parsed: Parsed;
  /** The request as text, for people, reviewers and hooks: the shell string, or the words of an argument vector. */
  readonly text: string;
  /** Risk and reach of the whole line, computed once from the tables in `programs/`. */
  readonly risk: Risk;
  readonly reach: Reach;
  readonly autonomy: Autonomy;
  readonly approved: boolean;
  readonly taints: ReadonlySet<Taint>;
  /** Canonical directory in which the line starts. */
  readonly cwd: string;
  readonly rules: RulesOfCommands;
  readonly paths: PathLookup;
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
  /**
   * What bash says of a text that it would not run because of its syntax; `undefined`: nothing. For texts that are not
   * understood.
   */
  readonly syntaxError?: ((text: string) => Promise<string | undefined>) | undefined;
  /** The shell string as programs that need no shell, where none is run. */
  readonly steps?: StepsOrNot | undefined;
}

/** One check of the registry. It has no opinion if it returns nothing. */
export interface Check {
  readonly name: string;
  /** One sentence for `policy show`. */
  readonly summary: string;
  judge(context: CheckContext): readonly Reason[] | Promise<readonly Reason[]>;
}

/** Makes the reasons of one check. */
export function reasonFor(
  check: string,
): (verdict: Verdict | undefined, code: string, message: string, words: readonly string[]) => Reason {
  return (verdict, code, message, words) => ({ check, verdict, code, message, words });
}

/** What there is to judge: every command, or those that were recognised in a line that was not understood. */
export function commandsOf(parsed: Parsed): readonly SimpleCommand[] {
  return parsed.understood ? parsed.line.commands : parsed.problem.recognized;
}
