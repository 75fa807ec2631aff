import { type Finding, finding, type PathUse, type ProgramRow, programs, type Use } from '../behaviour.ts';
import { pathInside, scriptsOf } from '../options.ts';

/** A file that a script names. */
interface SedFile {
  readonly path: string;
  readonly effect: 'reads' | 'writes';
}

/** Commands that touch no file and run nothing, with what stands behind them. */
const TAKES: readonly { readonly commands: string; readonly text: RegExp }[] = [
  { commands: '{}=dDgGhHnNpPxzF', text: /(?:)/y },
  { commands: '#', text: /[^\n]*/y },
  { commands: ':', text: /[^\n;]*/y },
  { commands: 'btT', text: /[^\n;}]*/y },
  { commands: 'qQlL', text: /\s*\d*/y },
  { commands: 'aic', text: /(?:\\\n|\\[\s\S]|[^\n\\])*/y },
];

/**
 * What a script of GNU sed would do: `e` runs, `w` and `W` write, `r` and `R` read, `s///e` and `s///w` too. A script
 * that does not parse gives `invalid`. The files that it names are added to `files`.
 */
export function inspectSedScript(script: string, source: string, files: SedFile[] = []): readonly Finding[] {
  return new SedInspection(script, source, files).findings();
}

class SedInspection {
  readonly #script: string;
  readonly #source: string;
  readonly #files: SedFile[];
  readonly #findings: Finding[] = [];
  #at = 0;

  constructor(script: string, source: string, files: SedFile[]) {
    this.#script = script;
    this.#source = source;
    this.#files = files;
  }

  findings(): readonly Finding[] {
    for (;;) {
      this.#skip(/[\s;]+/y);
      if (this.#at >= this.#script.length) return this.#findings;
      if (!this.#addresses() || !this.#command())
        return [
          ...this.#findings,
          finding('invalid', 'sed_script', 'has a script that does not parse', this.#source),
        ];
    }
  }

  #skip(pattern: RegExp): string {
    pattern.lastIndex = this.#at;
    const match = pattern.exec(this.#script);
    if (match === null || match.index !== this.#at) return '';
    this.#at += match[0].length;
    return match[0];
  }

  /** None, one or two; false if they do not parse. */
  #addresses(): boolean {
    if (!this.#address()) return false;
    this.#skip(/\s*/y);
    if (this.#script[this.#at] === ',') {
      this.#at++;
      this.#skip(/\s*/y);
      if (this.#skip(/[+~]\d+/y) === '' && !this.#address()) return false;
    }
    this.#skip(/[\s!]*/y);
    return true;
  }

  #address(): boolean {
    const script = this.#script;
    if (/[/\\]/.test(script[this.#at] ?? '')) {
      const custom = script[this.#at] === '\\';
      const delimiter = script[custom ? this.#at + 1 : this.#at] ?? '';
      const end = behind(script, this.#at + (custom ? 2 : 1), delimiter);
      if (delimiter === '' || end < 0) return false;
      this.#at = end;
      this.#skip(/[IM]*/y);
    } else {
      this.#skip(/\d+(?:~\d+)?|\$/y);
    }
    return true;
  }

  /** False if it does not parse. */
  #command(): boolean {
    const command = this.#script[this.#at] ?? '';
    this.#at++;
    switch (command) {
      case 'e':
        this.#runs('runs a command through its script (e)');
        this.#skip(/[^\n]*/y);
        break;
      case 'w':
      case 'W':
        this.#namesFile('writes', 'its script');
        break;
      case 'r':
      case 'R':
        this.#namesFile('reads', 'its script');
        break;
      case 'y':
      case 's':
        if (!this.#substitution(command)) return false;
        break;
      default: {
        const takes = command === '' ? undefined : TAKES.find(({ commands }) => commands.includes(command));
        if (takes === undefined) return false;
        this.#skip(takes.text);
      }
    }
    const next = this.#script.slice(this.#at, this.#at + 64);
    return command === '{' || command === '}' || /^\s*(?:[;}\n#]|$)/.test(next);
  }

  #substitution(command: 's' | 'y'): boolean {
    const script = this.#script;
    const delimiter = script[this.#at] ?? '';
    if (delimiter === '' || delimiter === '\n' || delimiter === '\\') return false;
    const pattern = command === 's' ? behind : behindPlain;
    const middle = pattern(script, this.#at + 1, delimiter);
    const end = middle < 0 ? -1 : behindPlain(script, middle, delimiter);
    if (end < 0) return false;
    this.#at = end;
    if (command === 'y') return true;
    if (this.#skip(/[gpiIemM\d]*/y).includes('e')) this.#runs('runs what it substitutes (s///e)');
    if (script[this.#at] === 'w') {
      this.#at++;
      this.#namesFile('writes', 's///w');
    }
    return true;
  }

  #runs(what: string): void {
    this.#findings.push(finding('executes', 'sed_executes', what, this.#source));
  }

  /** The rest of the line names a file. */
  #namesFile(effect: SedFile['effect'], through: string): void {
    const path = this.#skip(/[^\n]*/y).trim();
    if (effect === 'reads' ? path === '/dev/stdin' : /^\/dev\/std(?:out|err)$/.test(path)) return;
    this.#files.push({ path, effect });
    const what = `${effect} ${path || 'a file'} through ${through}`;
    this.#findings.push(finding(effect, `sed_${effect}`, what, this.#source));
  }
}

/** Behind the closing delimiter of the pattern that begins at `from`; -1 if there is none. */
function behind(script: string, from: number, delimiter: string): number {
  let bracket = false;
  for (let index = from; index < script.length; index++) {
    const char = script[index];
    if (char === '\\') index++;
    else if (bracket) bracket = char !== ']';
    else if (char === '[' && delimiter !== '[' && script.indexOf(']', index + 2) > 0) {
      // A bracket expression may hold the delimiter; a `]` right behind `[` or `[^` is a member.
      bracket = true;
      if (script[index + 1] === '^') index++;
      if (script[index + 1] === ']') index++;
    } else if (char === delimiter) return index + 1;
  }
  return -1;
}

/** Like `behind`, for the replacement of `s` and the strings of `y`, in which brackets have no meaning. */
function behindPlain(script: string, from: number, delimiter: string): number {
  for (let index = from; index < script.length; index++) {
    if (script[index] === '\\') index++;
    else if (script[index] === delimiter) return index + 1;
  }
  return -1;
}

/*
 * What is plain. What inspects a script above says what it would do, and the kernel has the last word. The application
 * backend has nothing that comes after: only what is plain in every reading is let through there.
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

function inspectSed(use: Use): readonly Finding[] {
  return scriptsOf(use, ['e', 'expression'], ['f', 'file']).flatMap((script) =>
    script.complete
      ? inspectSedScript(script.text, script.word.source)
      : inspectUnknownSed(script.word.source),
  );
}

/** The rest of a script may hold `e` and `w` commands. */
function inspectUnknownSed(source: string): readonly Finding[] {
  return [finding('invalid', 'dynamic_script', 'has a script that is only known when it runs', source)];
}

function strictSed(use: Use): readonly Finding[] {
  return inspectSed(use)
    .filter(({ effect }) => effect === 'reads')
    .map((found) => ({ ...found, effect: 'invalid' }));
}

/** The files that the scripts of sed read and write. */
function filesOfSed(use: Use): readonly PathUse[] {
  return scriptsOf(use, ['e', 'expression'], ['f', 'file']).flatMap((script) => {
    const files: SedFile[] = [];
    if (script.complete) inspectSedScript(script.text, script.word.source, files);
    return files.map(({ path, effect }) => ({ argument: pathInside(script, path), effect }));
  });
}

function objectionToSed(use: Use): string | undefined {
  // The name of a backup is another one than was judged: `sed -ifig p .git/con`.
  const suffix = use.options.some(({ inPlace, value }) => inPlace && value !== undefined);
  if (suffix) return 'may write elsewhere with this option (-i takes no suffix here)';
  const texts = scriptsOf(use, ['e', 'expression'], []).map(({ text }) => text);
  return texts.length > 0 && texts.every(isPlainSed) && isPlainSed(texts.join('\n'))
    ? undefined
    : 'has a script that is not plain: only p, d, q, n, s/…/…/ without e and w, and their like';
}

/** The editor of streams. */
export const SED: readonly ProgramRow[] = [
  ...programs('sed gsed', 'low', 'local', () => ({
    grammar: 'sed',
    operands: 'script-then-reads',
    scriptOptions: 'e expression f file',
    inspect: inspectSed,
    morePaths: filesOfSed,
    strict: strictSed,
    editsListed: true,
    application: {
      names: 'sed',
      without: 'follow-symlinks',
      objection: objectionToSed,
      changesEntries: true,
    },
  })),
];
