import type { ShellFacts } from '../../model/index.ts';

/** What a shell says of itself after a turn. */
export interface ShellState {
  /** Canonical. */
  readonly cwd: string;
  /** As the shell names it, links kept. */
  readonly logicalCwd: string;
  readonly exported: Readonly<Record<string, string>>;
  /** Where it looks for programs, exported or not. */
  readonly path: string;
  readonly functions: readonly string[];
  readonly aliases: readonly string[];
  /** Signals and events that run something; the shell's own one is left out. */
  readonly traps: readonly string[];
  /** Settings that change what words mean, by name, where they are not as usual. */
  readonly unusual: readonly string[];
  readonly searchesDirectories: boolean;
}

/** The trap that the preamble in native/shell/shell_driver.cc sets. */
const OWN_TRAP =
  "trap -- '\\builtin trap - INT; \\builtin kill -INT $$ || \\builtin kill -INT $$ || \\builtin kill -INT $$' SIGURG";
const USUAL_IFS = ' \t\n';
const USUAL_PS4 = '+ ';
const FIELDS = 20;

/** Options that change how the shell reads a command or finds what it names. */
const UNUSUAL_OPTIONS: ReadonlySet<string> = new Set(
  'allexport keyword noexec posix privileged onecmd physical expand_aliases extglob noglob autocd cdable_vars cdspell dirspell dotglob extdebug globstar lastpipe nocaseglob nullglob restricted_shell localvar_inherit'.split(
    ' ',
  ),
);

/** Options that are on unless a command turned them off. */
const USUAL_OPTIONS = ['braceexpand', 'sourcepath'];

/** What bash itself makes read-only. An assignment to anything else that is does nothing, and the script goes on. */
const USUAL_READONLY = /^declare -[a-z]+ (?:BASHOPTS|BASH_VERSINFO|EUID|PPID|SHELLOPTS|UID)=/;

/** Reads a report; `undefined`: it is not one that can be understood. */
export function readShellState(report: Uint8Array | undefined): ShellState | undefined {
  if (report === undefined) return undefined;
  const fields = Buffer.from(report.buffer, report.byteOffset, report.byteLength)
    .toString('utf8')
    .split('\0');
  if (fields.length !== FIELDS) return undefined;
  const [logical = '', physical = '', exports = '', functions = '', aliases = '', traps = '', ...values] =
    fields;
  const [readOnly = '', setOptions = '', shoptOptions = '', path = '', cdPath = '', ifsIsSet = '', ifs = ''] =
    values;
  const options = [...setOptions.split(':'), ...shoptOptions.split(':')];
  const exported = readDeclarations(exports);
  const logicalCwd = directory(logical);
  // A directory that was removed has a name only for the shell.
  const cwd = physical === '' ? logicalCwd : directory(physical);
  if (exported === undefined || logicalCwd === undefined || cwd === undefined) return undefined;
  return {
    cwd,
    logicalCwd,
    exported,
    path,
    functions: lines(functions).map((line) => line.slice(line.lastIndexOf(' ') + 1)),
    aliases: lines(aliases).flatMap((line) => /^(?:alias )?(?:-- )?([^=\s]+)=/.exec(line)?.[1] ?? []),
    traps: lines(traps).filter((line) => line !== OWN_TRAP),
    unusual: [
      ...options.filter((name) => UNUSUAL_OPTIONS.has(name)),
      ...USUAL_OPTIONS.filter((name) => !options.includes(name)).map((name) => `the opposite of ${name}`),
      ...lines(readOnly).flatMap((line) =>
        USUAL_READONLY.test(line) ? [] : `a read-only ${/^\S+ \S+ (\w+)/.exec(line)?.[1] ?? 'variable'}`,
      ),
      ...(ifsIsSet === '' || ifs === USUAL_IFS ? [] : ['IFS']),
      ...[
        'GLOBIGNORE',
        'PROMPT_COMMAND',
        'EXECIGNORE',
        'BASH_COMPAT',
        'MAILCHECK or MAILPATH',
        'a prompt',
      ].filter((_, at) => values[at + 7] !== ''),
      ...(values[13] === '' || values[13] === USUAL_PS4 ? [] : ['PS4']),
    ],
    searchesDirectories: cdPath !== '',
  };
}

function lines(text: string): readonly string[] {
  return text.split('\n').filter((line) => line !== '');
}

/** What `pwd` writes: a path and a line break. */
function directory(text: string): string | undefined {
  return text.startsWith('/') && text.endsWith('\n') ? text.slice(0, -1) : undefined;
}

/**
 * Reads what `export -p` of bash writes: `declare -x NAME="value"` or `export NAME=$'value'`, one after the other.
 * `undefined`: it is something else.
 */
export function readDeclarations(text: string): Readonly<Record<string, string>> | undefined {
  const found: Record<string, string> = {};
  let at = 0;
  while (at < text.length) {
    const head = /^(?:declare -[A-Za-z-]+|export(?: -[A-Za-z]+)?) ([A-Za-z_][A-Za-z0-9_]*)(=?)/.exec(
      text.slice(at, at + 4096),
    );
    if (head === null) return undefined;
    const [whole, name = '', assigned] = head;
    at += whole.length;
    if (assigned === '=') {
      const value = readValue(text, at);
      if (value === undefined) return undefined;
      // Arrays are not passed to programs.
      if (value.text !== undefined) found[name] = value.text;
      at = value.end;
    }
    if (text[at] !== '\n') return undefined;
    at += 1;
  }
  return found;
}

interface Value {
  /** `undefined`: an array. */
  readonly text: string | undefined;
  readonly end: number;
}

function readValue(text: string, start: number): Value | undefined {
  if (text[start] === '(') return readArray(text, start);
  if (text[start] === '"') return readDoubleQuoted(text, start);
  if (text.startsWith("$'", start)) return readAnsiQuoted(text, start);
  return undefined;
}

function readArray(text: string, start: number): Value | undefined {
  for (let at = start + 1; at < text.length; ) {
    if (text[at] === ')') return { text: undefined, end: at + 1 };
    if (text[at] === '"' || text.startsWith("$'", at)) {
      const element = readValue(text, at);
      if (element === undefined) return undefined;
      at = element.end;
    } else at += 1;
  }
  return undefined;
}

function readDoubleQuoted(text: string, start: number): Value | undefined {
  let value = '';
  for (let at = start + 1; at < text.length; at += 1) {
    const character = text[at];
    if (character === '"') return { text: value, end: at + 1 };
    if (character === '\\' && /["\\$`]/.test(text[at + 1] ?? '')) at += 1;
    value += text[at] ?? '';
  }
  return undefined;
}

const ESCAPES: Readonly<Record<string, string>> = {
  a: '\x07',
  b: '\b',
  e: '\x1b',
  E: '\x1b',
  f: '\f',
  n: '\n',
  r: '\r',
  t: '\t',
  v: '\v',
  "'": "'",
  '"': '"',
  '\\': '\\',
  '?': '?',
};

function readAnsiQuoted(text: string, start: number): Value | undefined {
  const bytes: Buffer[] = [];
  for (let at = start + 2; at < text.length; at += 1) {
    const character = text[at] ?? '';
    if (character === "'") return { text: Buffer.concat(bytes).toString('utf8'), end: at + 1 };
    if (character !== '\\') {
      bytes.push(Buffer.from(character, 'utf8'));
      continue;
    }
    const octal = /^[0-7]{1,3}/.exec(text.slice(at + 1, at + 4))?.[0];
    if (octal !== undefined) {
      bytes.push(Buffer.from([Number.parseInt(octal, 8) & 255]));
      at += octal.length;
      continue;
    }
    const plain = ESCAPES[text[at + 1] ?? ''];
    if (plain === undefined) return undefined;
    bytes.push(Buffer.from(plain));
    at += 1;
  }
  return undefined;
}

/** What a decision has to know of a shell. `state`: `undefined` if it does not say. `first`: as it began. */
export function factsOf(
  state: ShellState | undefined,
  first: ShellState | undefined,
  ranUnseenCode: boolean,
): ShellFacts {
  if (state === undefined)
    return {
      names: [],
      doubts: ['the shell did not report its state'],
      places: ['PWD', 'HOME'],
      directoryDoubt: 'so its directory is unknown',
    };
  const doubts = [
    ...(ranUnseenCode
      ? ['code was run that could not be read beforehand, so any word may mean something else']
      : []),
    ...(state.traps.length > 0 ? ['a trap is set, which runs more than the words of a command say'] : []),
    ...state.unusual.map((name) => `${name} is set, which changes what words mean`),
  ];
  return {
    names: [...state.functions, ...state.aliases],
    doubts,
    places: [
      ...(state.exported.PWD === state.logicalCwd ? [] : ['PWD']),
      ...(state.exported.HOME === first?.exported.HOME ? [] : ['HOME']),
    ],
    directoryDoubt: state.searchesDirectories
      ? 'CDPATH is set, so a relative cd may lead anywhere'
      : state.logicalCwd === state.cwd
        ? undefined
        : `the shell came to ${state.cwd} through a link, so a relative cd may lead elsewhere`,
  };
}

/** Names that a shell sets by itself, that mean something for one shell alone, or that are looked at separately. */
const OF_THE_SHELL: ReadonlySet<string> = new Set(['PWD', 'OLDPWD', 'SHLVL', '_', 'PATH']);

/** What the environment of a shell is compared with: what the policy gives every command. */
interface Baseline {
  readonly variables: Readonly<Record<string, string | undefined>>;
  /** HOME and TMPDIR may be known only when the shell has started: they are what it began with. */
  readonly first: ShellState;
}

/** What the environment of a shell is beyond that, as an `env` option; `undefined`: nothing. */
export function changedVariables(
  state: ShellState,
  { variables, first }: Baseline,
): Readonly<Record<string, string | undefined>> | undefined {
  const usual: Readonly<Record<string, string | undefined>> = {
    ...pick(first.exported, ['HOME', 'TMPDIR']),
    ...variables,
  };
  const changed: Record<string, string | undefined> = {};
  for (const [name, value] of Object.entries(state.exported)) {
    if (!OF_THE_SHELL.has(name) && usual[name] !== value) changed[name] = value;
  }
  for (const [name, value] of Object.entries(usual)) {
    if (value !== undefined && !OF_THE_SHELL.has(name) && !Object.hasOwn(state.exported, name))
      changed[name] = undefined;
  }
  // Exported or not, it decides what the shell itself finds.
  if (state.path !== usual.PATH) changed.PATH = state.path;
  return Object.keys(changed).length === 0 ? undefined : changed;
}

function pick(from: Readonly<Record<string, string>>, names: readonly string[]): Record<string, string> {
  return Object.fromEntries(names.flatMap((name) => (from[name] === undefined ? [] : [[name, from[name]]])));
}
