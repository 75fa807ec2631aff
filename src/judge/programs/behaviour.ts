import type {
  NotUnderstoodCode,
  ObeyedFiles,
  ObeyedState,
  Reach,
  Risk,
  SimpleCommand,
  Word,
} from '../../model/index.ts';

/** What a flag or an operand makes a program do, as far as the policy cares. */
export type Effect =
  | 'harmless'
  | 'produces'
  | 'reads'
  | 'writes'
  | 'removes'
  | 'loads'
  | 'executes'
  | 'network';

/**
 * Options of a program: names separated by blanks, one letter is a short option, more is a long one. What is not listed
 * is unknown, unless the grammar is `open`.
 */
export interface Grammar {
  /** The program and version whose help and manual it was compared with: `npm run programs:compare` says what differs. */
  readonly source?: string;
  /**
   * `gnu`: `-abc`, `-fVALUE`, `--long[=VALUE]`, abbreviated. `single-dash`: `-name[=VALUE]` (Go, Java).
   */
  readonly style?: 'gnu' | 'single-dash';
  /** Options end at the first operand (`env`, `timeout`). Always so before a verb. */
  readonly stopAtOperand?: boolean;
  /** `-20` is a count. */
  readonly numeric?: boolean;
  /** Long options are not abbreviated: `--run` is not `--runner`. */
  readonly exact?: boolean;
  /** The table is not complete; unknown options are not reported. */
  readonly open?: boolean;
  /** Without a value, harmless. */
  readonly flags?: string;
  /** With a value that means nothing to the policy. */
  readonly values?: string;
  /** With a value that can only be attached. */
  readonly optionals?: string;
  /** The value is a path that is read. */
  readonly reads?: string;
  /** The value is a path that is written. */
  readonly writes?: string;
  /** The value is a path of what the program makes anyway (logs, caches, build folders): written, and no risk of its own. */
  readonly produces?: string;
  /** Like `produces`, but the value can only be attached. */
  readonly producesAttached?: string;
  /** Flags that make the program write something: files of the operands, or others. `i?` may have a value attached. */
  readonly writing?: string;
  /** Flags that make it delete something; `?` as in `writing`. */
  readonly removing?: string;
  /** The value is a file of code that the program runs, like a script given as an operand. */
  readonly loads?: string;
  /** The value is a program, or code, or settings that name one. */
  readonly executes?: string;
  /** Flags that make it run something; `?` as in `writing`. */
  readonly executing?: string;
  /** Values that name a host. */
  readonly network?: string;
  /** Flags that make it use the network; `?` as in `writing`. */
  readonly networking?: string;
}

/** What the operands of a program are. */
type Operands =
  /** Words, patterns, names: not paths. */
  | 'none'
  | 'reads'
  | 'writes'
  | 'removes'
  /** All but the last are read, the last is written (`cp`). */
  | 'reads-then-writes'
  /** All but the last are moved away, the last is written (`mv`). */
  | 'moves-then-writes'
  /** The first is a pattern or a script, unless an option gave it (`Behaviour.scriptOptions`); the rest is read. */
  | 'script-then-reads'
  /** Revisions, and paths only behind `--` (`git log`). */
  | 'revisions'
  /** Unknown: what looks like a path is taken for one. */
  | 'guess';

/** Where in its arguments a program has the command that it runs (`env`, `timeout`). */
interface Launches {
  /** How many operands stand before the command; default 0. */
  readonly operands?: number;
  /** Options whose value is the directory of the command. */
  readonly directory?: string;
  /** Options may also stand behind those operands. */
  readonly optionsBehind?: boolean;
  /** Options with which the program does not run the command. */
  readonly inert?: string;
  /** The directory in which the command runs is unknown. */
  readonly elsewhere?: boolean;
}

/** Something that a program runs. */
export type Run =
  | {
      readonly kind: 'argv';
      readonly words: readonly Word[];
      /** The shell itself looks the name up: builtins and not only programs. */
      readonly inShell?: boolean;
      readonly directory?: Word | 'unknown';
    }
  | {
      readonly kind: 'text';
      /** Joined by blanks. */
      readonly text: readonly Word[];
      readonly dialect: Dialect;
      /** The text runs in the shell that reads the command, as with eval. */
      readonly sameShell?: boolean;
      readonly directory?: Word | 'unknown';
    };

/** The shell that reads an inner text; `posix`: any `sh`, or one that is not known. */
export type Dialect = 'bash' | 'posix' | 'zsh';

/** A call of a program that runs others. */
export interface Call {
  /** Name without folder. */
  readonly name: string;
  readonly words: readonly Word[];
  /** What stands behind the program, or behind the verb that runs something. */
  readonly args: readonly Word[];
  /** The grammar of the program, or of the verb. */
  readonly grammar: Grammar;
  /** The options before the verb. */
  readonly outer: readonly OptionUse[];
  /** The text on its standard input, where it is known. */
  readonly input: Word | undefined;
}

/** What a call runs (nothing at all is an empty list), or why its words are not understood. */
export type Runs =
  | { readonly runs: readonly Run[] }
  | {
      /** The parts of it that are recognised nevertheless. */
      readonly runs?: readonly Run[];
      readonly refusal: {
        readonly code: NotUnderstoodCode;
        readonly message: string;
        readonly word?: Word;
      };
    };

/** Says what a call runs. */
type Runner = (call: Call) => Runs;

/** What one program, or one verb of it, does. What is missing is inherited from the level above. */
export interface Behaviour {
  readonly risk?: Risk;
  readonly reach?: Reach;
  /** Its options: the name of an entry of `grammars/` (`grammarOf` reads it), or one that is written out. */
  readonly grammar?: string | Grammar;
  /** Where neither a verb nor its program says so: `guess`. */
  readonly operands?: Operands;
  /** Options that stand in for the first operand of `script-then-reads`. */
  readonly scriptOptions?: string;
  /** `-t DIR` of cp and its kin: with it, every operand is read. */
  readonly targetOptions?: string;
  readonly verbs?: Readonly<Record<string, Behaviour>>;
  /** It runs the command that stands behind its options: `nice -n 5 COMMAND`, `uv run COMMAND`. */
  readonly launches?: Launches;
  /** What else it runs, by the words of a call: `sh -c TEXT`, `find -exec`. */
  readonly runs?: Runner;
  /** Its options may stand behind the verb too, where the verb has none of its own (`npm`). */
  readonly optionsAnywhere?: boolean;
  /** Looks at what options alone do not tell: scripts of sed, keys of `git -c`. */
  readonly inspect?: (use: Use) => readonly Finding[];
  /** Which operands are paths, where `operands` is not enough. */
  readonly paths?: (use: Use) => readonly PathUse[];
  /** Paths besides those of options and operands: in a script, in a part of a value. */
  readonly morePaths?: (use: Use) => readonly PathUse[];
  /** True where it only reads or prints, whatever the risk of the program is otherwise; false where it may write at low risk. */
  readonly onlyReads?: (use: Use) => boolean | undefined;
  /** Further demands under an allow-list. */
  readonly strict?: (use: Use) => readonly Finding[];
  /** True where it goes through directories and follows the symbolic links that it meets there. */
  readonly followsLinks?: (use: Use, isDirectory: (argument: Argument) => boolean) => boolean;
  /**
   * It gives its operands a name that leads to them, by what they say where it runs (`here`) or where the name lies (`there`);
   * `copies`: only where a link is among them.
   */
  readonly makesLinks?: (use: Use) => 'here' | 'there' | 'copies' | undefined;
  /** What it can do nothing without. */
  readonly needs?: Need;
  /** It signals processes, which may not be its own. */
  readonly signals?: boolean;
  /** The words that say whom it talks to: URLs, hosts, addresses. */
  readonly hosts?: (use: Use) => readonly Argument[];
  /** How it connects, for the entry of a policy that would list the host. */
  readonly connects?: Connects;
  /** What it changes elsewhere, where it reaches the network: completes "NAME …". A function where its words decide. */
  readonly outward?: string | ((use: Use) => string | undefined);
  /** True where that takes nothing away there: it sends commits or data, and overwrites, deletes and publishes nothing. */
  readonly onlySends?: (use: Use) => boolean;
  /**
   * It runs nothing and reaches nothing, but for what its settings say, and those are out of the reach of commands: its
   * reach is unknown only where the settings are not held.
   */
  readonly runsNothing?: boolean;
  /**
   * True where its words say that it does not use the network, whatever it could do: `curl http://localhost`. Holds only where
   * no variable says something else, and says nothing of code that it runs.
   */
  readonly staysLocal?: (use: Use) => boolean;
  /** Whether it only downloads: it contacts the servers in its settings, and sends them nothing but the query. */
  readonly onlyFetches?: boolean;
  /** Its words may be code of a language, or commands of an editor: what runs in those is not listed. */
  readonly code?: 'language' | 'editor';
  /** It pushes, pulls or merges, as `git push` does: what the git guard leaves to a person. */
  readonly movesCommits?: boolean;
  /** What it takes away that version control would not bring back. */
  readonly loses?: (use: Use) => Loss | undefined;
  /** All that its output names is new, or what tools make anew: nothing is lost with that. */
  readonly namesNew?: (use: Use) => boolean;
  /**
   * It prints lines of its input, all or some, or hands them to what it runs, and nothing else, where it is given no file and
   * no options but these: separated by blanks, and with `=VALUE` only with that value.
   */
  readonly passesOn?: string;
  /** What it hands to a shell and reads from a file of the directory: a recipe of make, a script of npm. */
  readonly recipes?: (use: Use) => Recipes | undefined;
  /** What it prints, as far as its words and its standard input tell. */
  readonly prints?: (words: readonly Word[], input: Word | undefined) => Word | undefined;
  /** True where nothing is lost with what it removes: it only says what it would, or refuses what is not kept elsewhere. */
  readonly keeps?: (use: Use) => boolean;
  /** The words that set variables, for what it runs or for the shell. */
  readonly assigns?: (use: Use) => readonly Word[];
  /** Options whose value is the number of a descriptor that it reads. */
  readonly descriptors?: string;
  /** What IFS says before it is in force for it alone: how it splits its input. */
  readonly splitsInput?: boolean;
  /**
   * It runs code of a file: of the script that it is given, or else of its input; `shell`: such code is text for a shell;
   * `input`: always of its input.
   */
  readonly interprets?: 'script' | 'shell' | 'input';
  /** A first operand that is no verb of its own is an alias of its settings, as `alias.NAME` is of git's. */
  readonly hasAliases?: boolean;
  /** It prints what version control has: `files` as they were, or what was changed in them since. */
  readonly printsVersions?: (use: Use) => 'files' | PrintedChanges | undefined;
  /** Whether it unpacks an archive, which it reads, into the current directory. */
  readonly unpacks?: (use: Use) => boolean;
  /** It applies the differences that it reads, in the direction in which they stand or in `reverse`. */
  readonly patches?: (use: Use) => 'forward' | 'reverse' | undefined;
  /** True where it reads all that is beneath the directory in which it runs. */
  readonly searchesAll?: (use: Use) => boolean;
  /** What its words do that no autonomy level permits. `isDirectory`: it is known to be one, and there already. */
  readonly dangers?: (use: Use, isDirectory: (argument: Argument) => boolean) => readonly Finding[];
  /** What it may do only to files that commands may write: completes "NAME would …". */
  readonly onlyInside?: string;
  /** Where it looks for a repository whose settings it obeys. */
  readonly repository?: (use: Use) => RepositoryWanted;
  /** Why no directory may be among its operands, the last aside; completes "NAME …". */
  readonly wantsFiles?: (use: Use) => string | undefined;
  /** Why it is not run where nothing is piped into it; completes "NAME …". It would wait for what nobody sends. */
  readonly wantsInput?: (use: Use) => string | undefined;
  /** An allow-list lets it change the files that it is given: where they are is judged on its own. */
  readonly editsListed?: boolean;
}

/** `itself`: the directory is the repository, with no `.git` in it. Else where it goes first, if anywhere. */
export interface RepositoryWanted {
  readonly itself: boolean;
  readonly moves: readonly Argument[];
  /** What is named as the repository, or as its working tree. */
  readonly named: readonly Argument[];
}

/**
 * What the application backend lets through of a program: nothing holds it there, so that its words have to say all that
 * it does. What is said here holds there instead of what the row says.
 */
export interface Application extends Pick<Behaviour, 'grammar' | 'inspect' | 'paths' | 'morePaths'> {
  /** Only under these names of the row, separated by blanks. */
  readonly names?: string;
  /**
   * `any`: they name no files, and are not looked at. `expression`: they are a language, read by `paths` and `objection`.
   * Else options of a closed grammar.
   */
  readonly words?: 'any' | 'expression';
  /** Options that are not let through: they take lists of files, follow links or run programs, or are not needed. */
  readonly without?: string;
  /** What else speaks against a call: completes "`program` …"; `undefined`: nothing. */
  readonly objection?: (use: Use, isDirectory: (argument: Argument) => boolean) => string | undefined;
  /** Whether it can rename symbolic links, so that later commands cannot be checked beforehand. */
  readonly movesLinks?: (use: Use) => boolean;
  /** Whether it can change what a path in another command means. */
  readonly changesEntries?: boolean;
  /** Settings in the workspace by which it runs other programs. Without a sandbox they are read before it may start. */
  readonly obeys?: (use: Use) => ObeyedFiles | undefined;
  /** The words that are started in place of its own, so that it obeys nothing else. */
  readonly started?: (words: readonly string[], obeyed: Exclude<ObeyedState, string>) => readonly string[];
  /** What its line gets in place of all variables whose names match. */
  readonly environment?: {
    readonly without: RegExp;
    readonly variables: Readonly<Record<string, string>>;
  };
  /** Where a shell reads the line in an environment that is not of our making, it says what is in that, or obeys it. */
  readonly obeysEnvironment?: (use: Use) => boolean;
}

/** `network`: a server outside; `system`: the right to change what is installed on the machine. */
export type Need = 'network' | 'system' | 'nothing';

/**
 * `changes`: what is not committed, in the paths or everywhere; `unstaged`: of that, what is not staged; `staged`: what is
 * staged; `stopped`: what was staged, or done about a conflict, since git came to a stop in the middle of something;
 * `stopped-changes`: with all other changes since; `untracked`: files that are not tracked, in the paths or in the directory;
 * `always`: whatever is there.
 */
export interface Loss {
  readonly what: 'changes' | 'unstaged' | 'staged' | 'stopped' | 'stopped-changes' | 'untracked' | 'always';
  /** Completes "NAME …". */
  readonly message: string;
  readonly paths?: readonly Argument[];
  /**
   * What a git command changes besides files of its working tree. `nowhere`: nothing. `index`: the index. `history`: references,
   * reflogs, objects or an unfinished merge. Missing: the command is not about a git repository.
   */
  readonly repository?: 'nowhere' | 'index' | 'history';
  /** Nothing is lost but what lies beneath the paths that it names, or where it runs. */
  readonly staysBeneath?: true;
}

/** Lines for a shell that a command takes from a file. */
export interface Recipes {
  /** Where it goes first, each from the one before. */
  readonly directories: readonly Argument[];
  /** Names, of which the first that is there counts. */
  readonly files: readonly string[];
  /** A directory around counts where there is none. */
  readonly isUpwards?: boolean;
  /** The lines that surely run. `exists`: whether a name of the directory is there. */
  readonly linesIn: (text: string, exists: (name: string) => boolean) => readonly string[];
}

/** Uncommitted changes that a program prints as a patch: applying that in reverse loses them. */
export interface PrintedChanges {
  readonly what: Loss['what'];
  /** The patch is printed in reverse (`-R`), so applying it as it is loses them. */
  readonly isReverse: boolean;
}

/** How a program reaches a host. */
export interface Connects {
  /** Where its words name none; `web`: the ports of browsers, which an entry need not name. */
  readonly port?: number | 'web';
  /** It signs in by ssh, unless a URL says otherwise. */
  readonly ssh?: true;
  /** The policy entry for the hosts that it always contacts. */
  readonly entry?: string;
}

/** A path that a command names, and what happens to it. */
export interface PathUse {
  readonly argument: Argument;
  readonly effect: 'reads' | 'writes' | 'removes';
  /** It only looks like a path: too little is known about the program's arguments. */
  readonly guessed?: true;
  /** The file is replaced by another, so its parent directory is written too. */
  readonly replaced?: true;
  /** The source's word: if this path is a directory, an entry with the source's name is made in it. */
  readonly receives?: Argument;
  /** A directory that is made or written in: a missing path would have to become one. */
  readonly directory?: true;
  /** The value of an option that is a starting directory (`make -C ..`), not an operand. */
  readonly byOption?: true;
}

/** Why a program is refused in every autonomy level. */
export type Danger = 'privilege' | 'device' | 'system' | 'container' | 'power' | 'kernel';

/** A program that is known by name. */
export interface Program extends Behaviour {
  readonly name: string;
  readonly risk: Risk;
  readonly reach: Reach;
  readonly danger?: Danger;
  /** What it runs is the shell's own doing (`exec`): the program of that name, if any, runs nothing. */
  readonly builtin?: boolean;
  /** The short option that asks for its version and nothing else. */
  readonly versionOption?: string;
  /** Not in the tables. */
  readonly unlisted?: boolean;
  /** Missing: the application backend does not run it. */
  readonly application?: Application;
}

/** Something that a program would do with these words. */
export interface Finding {
  readonly effect: Exclude<Effect, 'harmless' | 'produces'> | 'invalid';
  /** Stable, `snake_case`. */
  readonly code: string;
  /** Completes "`program` …": what it does. */
  readonly message: string;
  readonly words: readonly string[];
}

/** Programs that behave alike: one row of the tables. */
export interface ProgramRow {
  /** Separated by blanks. */
  readonly names: string;
  readonly risk: Risk;
  readonly reach: Reach;
  /** What else is known of them. Made when one of them is asked for: a command calls few of all programs. */
  readonly behaviour: () => Omit<Program, 'name' | 'risk' | 'reach'>;
  /** Further names that they go by: the group is the name that they stand for, if not the first one. */
  readonly alsoCalled: RegExp | undefined;
}

/** A row for programs that behave alike, ready to be spread into a table. */
export function programs(
  names: string,
  risk: Risk,
  reach: Reach,
  behaviour: ProgramRow['behaviour'] = () => ({}),
  alsoCalled?: RegExp,
): readonly ProgramRow[] {
  return [{ names, risk, reach, behaviour, alsoCalled }];
}

/** `python3.12`, `gcc-13`, `mkfs.ext4`: names with a version or a kind behind them. */
export function withVersion(names: string): RegExp {
  const escaped = names.replaceAll('+', '\\+').replaceAll(' ', '|');
  return new RegExp(`^(${escaped})(?:[-.]?[\\d.]+|\\.[a-z][a-z\\d]*)$`);
}

/** Verbs that behave alike: `verbs('log show', { risk: 'low' })`. */
export function verbs(names: string, behaviour: Behaviour): Readonly<Record<string, Behaviour>> {
  return Object.fromEntries(names.split(' ').map((name) => [name, behaviour]));
}

/** Makes a finding. */
export function finding(
  effect: Finding['effect'],
  code: string,
  message: string,
  ...words: readonly string[]
): Finding {
  return { effect, code, message, words };
}

/** A word of a command, or the part of it after an option's name. */
export interface Argument {
  readonly word: Word;
  /** Where it begins in the literal text of the word. */
  readonly start: number;
  /** The text that is known: all of it, or what stands before the first expansion. */
  readonly text: string;
  /** False if an expansion follows. */
  readonly complete: boolean;
}

/** An option that was recognised. */
export interface OptionUse {
  /** As in the table, without dashes. */
  readonly name: string;
  readonly effect: Effect;
  readonly value: Argument | undefined;
  /** It changes the files of the operands; its value is no path. */
  readonly inPlace: boolean;
  readonly word: Word;
}

/** What a command means to its program: verb, options, operands. */
export interface Use {
  readonly command: SimpleCommand;
  readonly program: Program;
  /** The verbs found, outermost first: `['stash', 'drop']`. */
  readonly verbs: readonly string[];
  readonly risk: Risk;
  readonly reach: Reach;
  readonly options: readonly OptionUse[];
  readonly operands: readonly Argument[];
  /** Index in `operands` of the first one behind `--`. */
  readonly afterDashes: number;
  /** Words that look like options and are not in the table. */
  readonly unknown: readonly Word[];
  /** Dynamic words that may turn out to be options. */
  readonly openEnded: readonly Word[];
}

/** Innermost first: the verb's own rule, or what a level above says. */
export function inherited<Key extends keyof Behaviour>(use: Use, key: Key): Behaviour[Key] | undefined {
  // Most programs have no verbs, and this is asked often.
  if (use.verbs.length === 0) return use.program[key];
  return levelsOf(use).findLast((level) => level[key] !== undefined)?.[key];
}

/** The program, and the verbs of it that the command has, outermost first. */
export function levelsOf({ program, verbs }: Use): readonly Behaviour[] {
  const levels: Behaviour[] = [program];
  for (const verb of verbs) {
    const inner = levels.at(-1)?.verbs?.[verb];
    if (inner !== undefined) levels.push(inner);
  }
  return levels;
}
