import { type Finding, finding, type Loss, type PathUse, type ProgramRow, programs } from '../behaviour.ts';
import { isRegenerableName } from '../regenerable.ts';
import { argumentOf, leadingText, type Use } from '../use.ts';

/** Words of find that take an operand which is not a path. */
const FIND_TESTS: ReadonlySet<string> = new Set(
  '-name -iname -path -ipath -wholename -iwholename -regex -iregex -lname -ilname -type -xtype -size -mtime -atime -ctime -mmin -amin -cmin -user -group -uid -gid -perm -links -inum -maxdepth -mindepth -fstype -used -printf -regextype -context -D'.split(
    ' ',
  ),
);
const FIND_FILES: ReadonlySet<string> = new Set(
  '-newer -anewer -cnewer -samefile -files0-from -newermm -newerac -newercc'.split(' '),
);
const FIND_FLAGS: ReadonlySet<string> = new Set(
  '-H -L -P -daystart -depth -d -follow -help -ignore_readdir_race -noignore_readdir_race -mount -xdev -noleaf -warn -nowarn -empty -executable -readable -writable -false -true -nouser -nogroup -print -print0 -ls -prune -quit -not -a -and -o -or -O0 -O1 -O2 -O3 --version --help -version'.split(
    ' ',
  ),
);

/** The expression of find, which is no option syntax but a language. */
function inspectFind({ command }: Use): readonly Finding[] {
  const findings: Finding[] = [];
  const { words } = command;
  for (let index = 1; index < words.length; index++) {
    const text = words[index]?.value;
    const source = words[index]?.source ?? '';
    if (text === undefined || text[0] !== '-') continue;
    if (text === '-exec' || text === '-execdir' || text === '-ok' || text === '-okdir') {
      // What it runs is listed as a command of its own; its words end at `;` or `+`.
      while (index + 1 < words.length && !/^(?:;|\+)$/.test(words[index + 1]?.value ?? '')) index++;
      index++;
      findings.push(finding('reads', 'runs_listed', 'runs a program for each file', source));
    } else if (text === '-delete') {
      findings.push(finding('removes', 'deletes', 'deletes what it finds', source));
    } else if (/^-(?:fls|fprint0?|fprintf)$/.test(text)) {
      findings.push(finding('writes', 'writes_by_option', `writes a file through ${text}`, source));
      index += text === '-fprintf' ? 2 : 1;
    } else if (FIND_TESTS.has(text) || FIND_FILES.has(text) || /^-newer[aBcm][aBcmt]$/.test(text)) {
      index++;
    } else if (!FIND_FLAGS.has(text)) {
      findings.push(finding('invalid', 'unknown_option', 'has no such test or action in the tables', source));
    }
  }
  return findings;
}

/** `-delete` without a name, or with a name that any file may have. */
function lossOfFind({ command: { words } }: Use): Loss | undefined {
  if (!words.some(({ value }) => value === '-delete')) return undefined;
  const names = words.flatMap(({ value }, index) =>
    value === '-name' || value === '-iname' ? [words[index + 1]?.value ?? ''] : [],
  );
  return names.length > 0 && names.every(isRegenerableName)
    ? undefined
    : { what: 'always', message: 'would delete what it finds, and version control may not have it' };
}

/** Where it starts, and the files that its expression names. */
function pathsOfFind({ command }: Use): readonly PathUse[] {
  const found: PathUse[] = [];
  let expression = false;
  for (let index = 1; index < command.words.length; index++) {
    const word = command.words[index];
    const next = command.words[index + 1];
    if (word === undefined) break;
    const text = leadingText(word);
    if (/^-[HLPDO]/.test(text) && !expression) continue;
    expression ||= /^(?:-.|[(!,]$)/.test(text);
    if (!expression) found.push({ argument: argumentOf(word), effect: 'reads' });
    else if (next === undefined) break;
    else if (FIND_FILES.has(text)) found.push({ argument: argumentOf(next), effect: 'reads' });
    else if (/^-(?:fls|fprint0?|fprintf)$/.test(text))
      found.push({ argument: argumentOf(next), effect: 'writes' });
  }
  return found;
}

const GREP_FLAGS =
  'E extended-regexp F fixed-strings G basic-regexp P perl-regexp i ignore-case y no-ignore-case v invert-match w word-regexp x line-regexp z null-data s no-messages b byte-offset n line-number line-buffered H with-filename h no-filename o only-matching q quiet silent a text I r recursive R dereference-recursive L files-without-match l files-with-matches c count T initial-tab Z null U binary V version help';

/** Programs that search. */
export const SEARCH: readonly ProgramRow[] = [
  ...programs('grep egrep fgrep zgrep rgrep pcregrep ugrep', 'low', 'local', {
    grammar: {
      numeric: true,
      flags: GREP_FLAGS,
      values:
        'e regexp m max-count A after-context B before-context C context d directories D devices include exclude exclude-dir label binary-files group-separator',
      optionals: 'color colour no-group-separator',
      reads: 'f file exclude-from',
    },
    operands: 'script-then-reads',
    scriptOptions: 'e regexp f file',
  }),
  ...programs('rg', 'low', 'local', {
    grammar: {
      flags:
        's case-sensitive count-matches c count column no-column crlf debug stats E F fixed-strings L follow no-follow hidden . i ignore-case v invert-match n line-number N no-line-number x line-regexp w word-regexp l files-with-matches files-without-match files U multiline multiline-dotall no-config no-ignore no-ignore-vcs no-ignore-parent no-ignore-dot no-ignore-global no-ignore-files no-messages no-heading heading H with-filename I no-filename no-hidden 0 null null-data o only-matching P pcre2 p pretty q quiet json S smart-case sort-files text a trim u unrestricted vimgrep passthru passthrough b byte-offset one-file-system no-unicode auto-hybrid-regex type-list block-buffered line-buffered include-zero no-mmap mmap stop-on-nonmatch binary no-binary version V help h trace no-require-git no-pcre2 no-json glob-case-insensitive no-context-separator pcre2-version no-multiline no-stats no-trim no-text no-sort-files ignore no-pre no-search-zip',
      values:
        'e regexp A after-context B before-context C context color colors context-separator d max-depth maxdepth dfa-size-limit encoding engine g glob iglob m max-count max-columns M max-filesize path-separator r replace regex-size-limit sort sortr t type T type-not type-add type-clear j threads field-context-separator field-match-separator hyperlink-format generate',
      optionals: 'max-columns-preview',
      reads: 'f file ignore-file',
      executes: 'pre pre-glob hostname-bin',
      // Runs gzip, xz and others from PATH.
      executing: 'z search-zip',
    },
    operands: 'script-then-reads',
    scriptOptions: 'e regexp f file files type-list',
  }),
  ...programs('ag ack', 'low', 'local', {
    grammar: {
      open: true,
      flags: 'i l n w c v Q s S a u t f L H',
      values: 'A B C m G ignore ignore-dir depth color',
      executes: 'pager',
    },
    operands: 'script-then-reads',
  }),
  ...programs('find', 'low', 'local', {
    // Its words are read by `inspectFind`.
    grammar: { open: true, style: 'single-dash' },
    operands: 'guess',
    paths: pathsOfFind,
    inspect: inspectFind,
    loses: lossOfFind,
  }),
  ...programs('fd fdfind', 'low', 'local', {
    grammar: {
      flags:
        'H hidden I no-ignore u unrestricted no-ignore-vcs no-ignore-parent s case-sensitive i ignore-case g glob regex F fixed-strings and a absolute-path l list-details L follow p full-path 0 print0 prune 1 q quiet show-errors one-file-system h help V version strip-cwd-prefix no-require-git',
      values:
        'd max-depth min-depth exact-depth t type e extension E exclude S size changed-within changed-before newer older c color j threads max-results max-buffer-time path-separator search-path C base-directory o owner batch-size format',
      reads: 'ignore-file',
      // What they run is listed as a command of its own.
      optionals: 'x exec X exec-batch',
    },
    operands: 'guess',
  }),
  ...programs('fzf sk', 'medium', 'local', { operands: 'none' }),
  ...programs('ast-grep semgrep tokei cloc scc ctags etags cscope', 'medium', 'local', { operands: 'guess' }),
];
