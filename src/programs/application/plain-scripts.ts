/*
 * Scripts of sed and awk that certainly touch no file and run nothing, however they are read. What inspects scripts
 * elsewhere says what they would do, and the kernel has the last word; here nothing comes after, so that only what is plain
 * in every reading is let through.
 */

const BLANKS = /[ \t\n]*/y;
const BETWEEN = /[ \t\n;]*/y;
const ADDRESS = /\d+(?:~\d+)?|\$|\/(?:[^\\\n/]|\\[^\n/])*\/I?|/y;
const SECOND_ADDRESS = /,[ \t]{0,8}(?:[+~]\d+|\d+|\$|\/(?:[^\\\n/]|\\[^\n/])*\/I?)|/y;
const COMMANDS: readonly RegExp[] = [
  // No line ends, and no delimiter behind a backslash or in brackets, where versions of sed differ.
  /s(?<d>[/|,#:@!%_~=+])(?:(?!\k<d>)[^\\\n]|\\(?!\k<d>)[^\n])*\k<d>(?:(?!\k<d>)[^\\\n]|\\(?!\k<d>)[^\n])*\k<d>[gpiIM\d]*/y,
  /[=dDgGhHnNpPxz]/y,
  /[qQ][ \t]?\d*/y,
  /[:btT][ \t]?\w*/y,
];
/** Behind a command it ends, or a block does. */
const ENDS = /[ \t]*(?:(?=[;}\n])|$)/y;
/** Text up to the end of the line. */
const TEXT = /[aic][ \t]?\\?[^\\\n]*(?=\n|$)/y;
const BRACE = /[{}]/y;

/** True for a script of sed that only prints, deletes and substitutes. */
export function isPlainSed(script: string): boolean {
  let at = 0;
  const skip = (pattern: RegExp): boolean => {
    pattern.lastIndex = at;
    if (!pattern.test(script)) return false;
    at = pattern.lastIndex;
    return true;
  };
  for (;;) {
    skip(BETWEEN);
    if (at >= script.length) return true;
    skip(ADDRESS);
    skip(BLANKS);
    skip(SECOND_ADDRESS);
    skip(BLANKS);
    if (script[at] === '!') at += 1;
    skip(BLANKS);
    const isCommand = COMMANDS.some(skip) ? skip(ENDS) : skip(TEXT) || skip(BRACE);
    if (!isCommand) return false;
  }
}

/** What reaches files, programs, other variables by their names, or the operands, wherever it stands, be it in strings. */
const REACHES =
  /@|\\\n|getline|system|extension|include|load|textdomain|gettext|TEXTDOMAIN|SYMTAB|FUNCTAB|PROCINFO|ENVIRON|ARG(?:V|C|IND)/;
/** Functions of every awk that compute, and words that stand before a parenthesis. */
const COMPUTES: ReadonlySet<string> = new Set(
  'length substr index split sub gsub gensub match sprintf tolower toupper sin cos atan2 exp log sqrt int rand srand and or xor compl lshift rshift strtonum asort asorti patsplit systime strftime mktime typeof isarray print printf if while for switch in return exit else do case delete'.split(
    ' ',
  ),
);
const STRING_OR_PATTERN =
  /"(?:[^"\\\n]|\\[^\n])*"|(?<=(?:^|[~!(,;{}&|\n])[ \t]{0,8})\/(?:[^/\\\n[]|\\[^\n])*\//g;

/**
 * True for a program of awk that reads its operands and prints. It calls nothing but what is known to compute, defines
 * nothing, and does not hold the names of what reaches further: awk makes none at run time but by those.
 */
export function isPlainAwk(program: string): boolean {
  if (REACHES.test(program)) return false;
  // A pipe; `||` is none.
  if (/[|&]/.test(program.replace(/\|\||&&/g, ' '))) return false;
  const code = program.replace(STRING_OR_PATTERN, '""');
  if (/\bfunc(?:tion)?\b/.test(code)) return false;
  for (const [, name = ''] of code.matchAll(/\b([A-Za-z_]\w*)[ \t\n]{0,8}\(/g))
    if (!COMPUTES.has(name)) return false;
  // Before the first brace nothing is printed: there `>` compares. So does `<` everywhere without getline.
  const greater = program.lastIndexOf('>');
  return greater < 0 || !program.slice(0, greater).includes('{');
}

/** True for a program of jq that takes no modules. */
export function isPlainJq(program: string): boolean {
  return !/\b(?:import|include|modulemeta|get_search_list)\b/.test(program);
}
