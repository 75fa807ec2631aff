import type { Parsed } from '../../model/command-line.ts';
import type { Autonomy, Reach, Reason, Risk, Taint } from '../../model/decision.ts';
import type { PathLookup } from '../../model/path-lookup.ts';
import type { RulesOfCommands } from './rules.ts';

/** Everything that a check may look at. Values and ports; a check does no input or output of its own. */
export interface CheckContext {
  readonly parsed: Parsed;
  /** Risk and reach of the whole line, computed once from the tables in `policy/commands/`. */
  readonly risk: Risk;
  readonly reach: Reach;
  readonly autonomy: Autonomy;
  readonly approved: boolean;
  readonly taints: ReadonlySet<Taint>;
  /** Canonical directory in which the line starts. */
  readonly cwd: string;
  readonly rules: RulesOfCommands;
  readonly paths: PathLookup;
  /** The executable that a name stands for with the child's PATH; `undefined`: none was found. */
  readonly findExecutable: (name: string, cwd: string) => string | undefined;
}

/** One check of the registry. It has no opinion if it returns nothing. */
export interface Check {
  readonly name: string;
  /** One sentence for `policy show`. */
  readonly summary: string;
  judge(context: CheckContext): readonly Reason[] | Promise<readonly Reason[]>;
}
