import type { Steps } from './steps.ts';

/** Where something stands in the source: offsets in UTF-16 code units, end exclusive. */
export interface Span {
  readonly start: number;
  readonly end: number;
}

/** A piece of a word, after quote removal. Everything but a literal makes the word dynamic. */
export type WordPart =
  | { readonly kind: 'literal'; readonly text: string }
  /** `*`, `?` and `[…]` outside of quotes. */
  | { readonly kind: 'glob'; readonly text: string }
  /** `~` or `~user` at the beginning; `user` is empty for one's own home. */
  | { readonly kind: 'tilde'; readonly user: string }
  /**
   * `$name` or `${name}`; with any operation (`${name:-x}`, `${#name}`) `plain` is false. `quoted`: it stands in double
   * quotes, so that it is one word whatever it holds (`"$@"` excepted). `single`: so it is with its operation, which
   * brings no other expansion.
   */
  | {
      readonly kind: 'parameter';
      readonly name: string;
      readonly plain: boolean;
      readonly quoted?: true;
      readonly single?: true;
    }
  | { readonly kind: 'brace'; readonly text: string }
  | { readonly kind: 'arithmetic' }
  | { readonly kind: 'command-substitution'; readonly quoted?: true }
  | { readonly kind: 'process-substitution'; readonly direction: 'in' | 'out' }
  /**
   * What a runner adds when it runs: the items of xargs and parallel, the files of find. `path`: it is a path that does
   * not begin with a dash.
   */
  | { readonly kind: 'input'; readonly path?: true };

/** One word of a command. */
export interface Word {
  /** What the command receives, if that is known without running anything; `undefined`: the word is dynamic. */
  readonly value: string | undefined;
  readonly parts: readonly WordPart[];
  /** The word as the command line has it, with its quotes. */
  readonly source: string;
  readonly span: Span;
}

/** `NAME=value` before a command, or alone. */
export interface Assignment {
  readonly name: string;
  /** `NAME+=value`. */
  readonly append: boolean;
  /** For an array, `NAME=(a b)`, a word without a value and with the parts of all elements. */
  readonly value: Word;
  readonly span: Span;
}

/** Operators of redirects, as bash writes them. */
type RedirectOperator = '<' | '>' | '>>' | '>|' | '<>' | '&>' | '&>>' | '>&' | '<&' | '<<' | '<<-' | '<<<';

/** A redirect of a command, or of a compound command around it. */
export interface Redirect {
  readonly operator: RedirectOperator;
  /** The descriptor before the operator; `undefined`: the operator's own default. */
  readonly descriptor: number | undefined;
  /** A file, a descriptor number or `-` (`>&`, `<&`), a here-string, or the delimiter of a here-document. */
  readonly target: Word;
  /** What a here-document holds: a word without a value where that is not known without running anything. */
  readonly body?: Word;
  readonly span: Span;
}

/** A command that could run: a program or builtin with its words, at whatever depth it stands. */
export interface SimpleCommand {
  /** Program or builtin first; empty for an assignment or a redirect alone. */
  readonly words: readonly Word[];
  readonly assignments: readonly Assignment[];
  readonly redirects: readonly Redirect[];
  readonly background: boolean;
  /** Place in the whole source; for a command inside the text of a runner, the place of that text. */
  readonly span: Span;
  /** Index in `CommandLine.commands` of the command that runs this one (`env`, `sh -c`, `find -exec`). */
  readonly runBy: number | undefined;
  /** It calls a function that the same source defines: no program, and the commands of its body are listed too. */
  readonly callsFunction?: true;
  /** It stands in a function or a trap: what comes behind it may have been done when it runs. */
  readonly runsLater?: true;
  /**
   * The `cd`s that may have been made before, each possibility as the list of their targets in order: `[[]]` if there
   * was none, `[[], ['a']]` after `cd a;`, `[['a']]` after `cd a &&`. `undefined`: they cannot be told.
   */
  readonly directories: readonly (readonly Word[])[] | undefined;
}

/** What a request would run. */
export interface CommandLine {
  /** The shell string; `undefined` for an argument vector. */
  readonly source: string | undefined;
  /** In the order of the source; a command stands before those that it runs. */
  readonly commands: readonly SimpleCommand[];
  /** Variables that are set, or unset, by other means than an `Assignment`: loops, `read`, `unset`, `${name:=…}`. */
  readonly variables: readonly string[];
  /** What `for` gives its variables, which are among `variables`. */
  readonly loops: readonly LoopValues[];
}

/** `for name in words`. */
export interface LoopValues {
  readonly name: string;
  readonly words: readonly Word[];
}

/** Stable names of why a command is not understood. */
export type NotUnderstoodCode =
  | 'too_long'
  | 'too_deep'
  | 'too_many_commands'
  | 'bad_character'
  | 'syntax_error'
  | 'construct'
  | 'ambiguous'
  | 'fork_bomb'
  | 'dynamic_command'
  | 'builtin'
  | 'runner'
  | 'inner_text'
  | 'internal';

/** A string that was not understood; never a reason to allow. */
interface NotUnderstood {
  readonly code: NotUnderstoodCode;
  /** One sentence: what, and what would be understood instead. */
  readonly message: string;
  readonly span: Span | undefined;
  /** What was recognised before or besides: it may be incomplete, and may be a reason to ask, but none to allow. */
  readonly recognized: readonly SimpleCommand[];
  /** As in a `CommandLine`, as far as they were recognised. */
  readonly variables: readonly string[];
  readonly loops: readonly LoopValues[];
}

/** Result of parsing. */
export type Parsed =
  | { readonly understood: true; readonly line: CommandLine }
  | { readonly understood: false; readonly problem: NotUnderstood };

/** Why a shell string needs a shell. */
interface NeedsShell {
  /** One sentence: what does, and what to write instead. */
  readonly message: string;
  readonly span: Span | undefined;
}

/** What was made of a shell string. */
export type StepsOrNot =
  | { readonly ok: true; readonly steps: Steps }
  | { readonly ok: false; readonly problem: NeedsShell };
