import type { Dialect } from '../programs/behaviour.ts';

/** What bash reads differently from a POSIX shell, or what such a shell does not have. */
const NOT_POSIX =
  /\$['"[]|&>|\|&|[0-9]{2,}[<>]|\(\(|\[\[|<<<|[<>]\(|\+=|=\(|\{[^}\s]*(?:,|\.\.)|;;?&|\$\{[!#]?\w+[/:^,@[](?![-=?+])|\$\{!|>&(?![\d-])|\*\*/;
const NOT_POSIX_WORDS =
  /(?:^|[\s;&|(!])(?:time|coproc|select|function|source|let|declare|typeset|shopt)(?=\s)/;

/** Plain words, quoted text, and pipes and lists between them: what every shell reads in the same way. */
const PLAIN_EVERYWHERE =
  /^(?:[A-Za-z0-9_.,/:@+\n -]|(?<=[A-Za-z0-9_])=(?=[A-Za-z0-9_./])|&&|\|\|?|;|'[^'\\!]*'|"[A-Za-z0-9_.,/:@+= -]*")*$/;
/** Words that zsh takes as something else than a program. */
const ZSH_WORDS =
  /(?:^|[\s;&|])(?:-|repeat|noglob|nocorrect|foreach|end|select|time|coproc|function|autoload|zmodload|emulate|sched|functions|vared|zle|zcompile|print|bindkey|ztcp|zpty|zf_\w+|sysopen|zsystem|where|whence|rehash|setopt|unsetopt|fc|r|zparseopts|zstyle|zformat|alias|if|then|for|while|until|case|do|done)(?=[\s;&|]|$)/;

/** Why a text for another shell than bash is not certain to mean what bash would make of it. */
export function plainProblem(text: string, dialect: Dialect): string | undefined {
  switch (dialect) {
    case 'bash':
      return undefined;
    case 'posix':
      if (!NOT_POSIX.test(text) && !NOT_POSIX_WORDS.test(text)) return undefined;
      return 'The text for sh uses what only bash has or reads differently: run it with bash -c.';
    case 'zsh':
      if (PLAIN_EVERYWHERE.test(text) && !ZSH_WORDS.test(text)) return undefined;
      return 'The text for zsh is not plain words: run it with bash -c.';
  }
}
