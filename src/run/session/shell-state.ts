import { readDeclarations } from './declarations.ts';

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

/** Of the preamble in native/process/shell_driver.cc. */
const OWN_TRAP = "trap -- '\\builtin trap - INT; \\builtin kill -INT $$' SIGURG";
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
