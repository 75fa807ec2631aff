/** Where the shell takes its commands from. */
type ShellSource =
  | { readonly from: 'string'; readonly text: string }
  | { readonly from: 'file'; readonly path: string }
  /** Standard input: a script, or lines that a person types. */
  | { readonly from: 'input' };

/** What the arguments of a shell ask for. */
type ShellInvocation =
  | { readonly kind: 'help' | 'version' }
  /** As bash refuses what it does not know: one line and exit status 2. */
  | { readonly kind: 'refused'; readonly message: string }
  | Wanted;

/** What is to be run, and how. */
export interface Wanted {
  readonly kind: 'run';
  readonly source: ShellSource;
  /** Asked for by `-i`; without it a shell is interactive if it reads from a terminal. */
  readonly interactive: boolean;
  /** For bash, in one form: `['-eu', '-o', 'pipefail']`. */
  readonly options: readonly string[];
  /** `$0`; `undefined`: the shell's own. */
  readonly name: string | undefined;
  /** `$1` and those after it. */
  readonly args: readonly string[];
}

/** Letters that are passed on, by the name that `-o` has for them. All of them are off at first. */
const LETTERS: ReadonlyMap<string, string> = new Map([
  ['allexport', 'a'],
  ['errexit', 'e'],
  ['errtrace', 'E'],
  ['noclobber', 'C'],
  ['noexec', 'n'],
  ['noglob', 'f'],
  ['notify', 'b'],
  ['nounset', 'u'],
  ['verbose', 'v'],
  ['xtrace', 'x'],
]);
/** What is on in every bash: to turn it on says nothing. To turn it off would change what was judged. */
const ALWAYS_ON = ['h', 'B', 'hashall', 'braceexpand'];
/** Long options that say nothing here: start-up files are never read, and lines are not edited by bash. */
const WITHOUT_MEANING = ['login', 'norc', 'noprofile', 'noediting'];
/** Long options that are followed by a file. */
const START_UP_FILES = ['rcfile', 'init-file'];

/** Long options of bash that would change what was judged, or that are not needed here. */
const NOT_TAKEN = [
  'posix',
  'restricted',
  'debugger',
  'dump-strings',
  'dump-po-strings',
  'protected',
  'wordexp',
];

const refused = (message: string): ShellInvocation => ({ kind: 'refused', message });

/** Reads arguments as bash reads its own: long options, then short ones, then the text or the file and its arguments. */
export function parseShellArguments(argv: readonly string[]): ShellInvocation {
  const on = new Set<string>();
  let pipefail = false;
  const found = { text: false, input: false, interactive: false };
  let at = 0;
  const [only, ...others] = argv;
  if (others.length === 0 && (only === '--help' || only === '--version'))
    return { kind: only === '--help' ? 'help' : 'version' };

  // `-norc` is `--norc` to bash.
  for (; at < argv.length; at += 1) {
    const long = /^--?([a-z-]+)$/.exec(argv[at] ?? '')?.[1] ?? '';
    if (WITHOUT_MEANING.includes(long)) continue;
    if (long === 'verbose') on.add('v');
    else if (START_UP_FILES.includes(long))
      return refused(`--${long}: start-up files are not read; put what it does into the command`);
    else if (NOT_TAKEN.includes(long)) return refused(`--${long}: this option of bash is not taken`);
    else if (/^--./.test(argv[at] ?? '')) return refused(`${argv[at]}: invalid option`);
    else break;
  }

  const setByName = (name: string, isOn: boolean): boolean => {
    const letter = LETTERS.get(name);
    if (name === 'pipefail') pipefail = isOn;
    else if (letter !== undefined && isOn) on.add(letter);
    else if (letter !== undefined) on.delete(letter);
    else return isOn && ALWAYS_ON.includes(name);
    return true;
  };

  for (; at < argv.length; at += 1) {
    const word = argv[at] ?? '';
    if (word === '-' || word === '--') {
      at += 1;
      break;
    }
    if (!/^[-+]./.test(word)) break;
    const isOn = word.startsWith('-');
    for (const letter of word.slice(1)) {
      const name = [...LETTERS].find(([, known]) => known === letter)?.[0];
      if (letter === 'c') found.text = true;
      else if (letter === 's') found.input = true;
      else if (letter === 'i') found.interactive = isOn;
      else if (letter === 'l') continue;
      else if (letter === 'o') {
        at += 1;
        const option = argv[at];
        if (option === undefined) return refused(`${word}: option requires an argument`);
        if (!setByName(option, isOn)) return refused(`${word} ${option}: ${unknown('set')}`);
      } else if (letter === 'O') return refused(`${word}: ${unknown('shopt')}`);
      else if (!setByName(name ?? letter, isOn)) {
        const isKnown = 'kmptDHPTrBh'.includes(letter);
        return refused(`${word[0]}${letter}: ${isKnown ? unknown('set') : 'invalid option'}`);
      }
    }
  }

  const letters = [...on].join('');
  const options = [...(letters === '' ? [] : [`-${letters}`]), ...(pipefail ? ['-o', 'pipefail'] : [])];
  const rest = argv.slice(at);
  const given = { kind: 'run', interactive: found.interactive, options } as const;
  if (found.text) {
    const [text, name, ...args] = rest;
    if (text === undefined) return refused('-c: option requires an argument');
    return { ...given, source: { from: 'string', text }, name, args };
  }
  const [path, ...args] = rest;
  if (path !== undefined && !found.input)
    return { ...given, source: { from: 'file', path }, name: path, args };
  return { ...given, source: { from: 'input' }, name: undefined, args: rest };
}

const unknown = (builtin: 'set' | 'shopt') =>
  `this option is not taken from the command line; where it is needed use ${builtin} in the command, which is judged`;
