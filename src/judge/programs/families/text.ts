import { leadingText } from '../../../model/index.ts';
import {
  type Argument,
  type Finding,
  finding,
  type PathUse,
  type ProgramRow,
  programs,
  type Use,
  withVersion,
} from '../behaviour.ts';
import { argumentOf, hasOption, pathInside, plainPaths, takesNamesFrom, writtenAt } from '../options.ts';

/** `+!id`, `+:q`: a command of the editor may run a program. */
function inspectEditor({ command }: Use): readonly Finding[] {
  return command.words
    .slice(1)
    .flatMap(({ value, source }) =>
      value !== undefined && /^\+(?!\d*$)/.test(value)
        ? [finding('executes', 'editor_command', 'runs a command of the editor', source)]
        : [],
    );
}

/** Editors, which run commands and write any file they are asked to. */
const EDITORS: readonly ProgramRow[] = [
  ...programs('vi vim nvim view ex vimdiff gvim rvim rview', 'medium', 'unknown', {
    alsoCalled: withVersion('vim'),
    grammar: {
      source: 'vim 9.0',
      open: true,
      exact: true,
      flags:
        'v e E s d y R Z m M b l C N D n r L A H F p o O q x h not-a-term ttyfail noplugin clean help version es remote remote-silent remote-wait remote-wait-silent remote-tab serverlist headless embed',
      values: 'T t servername socketid remote-send listen',
      optionals: 'V',
      executes: 'c cmd remote-expr',
      loads: 'S u U i',
      writes: 'w W startuptime log',
    },
    operands: 'writes',
    code: 'editor',
    inspect: inspectEditor,
  }),
  ...programs('ed red', 'medium', 'unknown', {
    grammar: {
      source: 'ed 1.19',
      open: true,
      flags:
        'h V E G l q r s v help version extended-regexp traditional loose-exit-status quiet silent restricted script verbose strip-trailing-cr',
      values: 'p prompt',
    },
    operands: 'writes',
    code: 'editor',
    inspect: ({ operands }) =>
      operands
        .filter(({ text }) => text.startsWith('!'))
        .map(({ word: { source } }) =>
          finding('executes', 'editor_command', 'runs a command of the editor', source),
        ),
  }),
  ...programs('emacs', 'medium', 'unknown', {
    grammar: {
      source: 'doc/man/emacs.1 of emacs, commit 110b3d08d73b',
      open: true,
      style: 'single-dash',
      flags:
        'q no-init-file nl no-shared-memory no-site-file nsl no-site-lisp no-desktop Q quick no-splash debug-init version help batch kill no-x-resources r rv reverse-video vb vertical-scroll-bars fh fullheight fs fullscreen fw fullwidth mm maximized nbi no-bitmap-icon iconic nbc no-blinking-cursor nw no-window-system D basic-display',
      values:
        't terminal name T title fn font xrm bw border-width ib internal-border g geometry lsp line-spacing fg foreground-color bg background-color bd border-color cr cursor-color ms mouse-color d display parent-id',
      optionals: 'daemon bg-daemon fg-daemon color',
      reads: 'insert chdir',
      writes: 'file find-file visit',
      loads: 'l load script L directory u user init-directory',
      executes: 'eval execute f funcall',
    },
    operands: 'writes',
    code: 'editor',
  }),
  ...programs('nano', 'medium', 'unknown', {
    grammar: {
      source: 'nano 7.2',
      open: true,
      flags:
        'A smarthome B backup D boldtext E tabstospaces F multibuffer G locking H historylog I ignorercfiles K rawsequences L nonewlines M trimblanks N noconvert O bookstyle P positionlog R restricted S softwrap U quickblank V version W wordbounds Z zap a atblanks b breaklonglines c constantshow d rebinddelete e emptyline g showcursor h help i autoindent j jumpyscrolling k cutfromcursor l linenumbers m mouse n noread p preserve q indicator t saveonexit u unix v view w nowrap x nohelp y afterends ! magic % stateflags _ minibar 0 zero',
      values: 'J guidestripe Q quotestr T tabsize X wordchars Y syntax r fill',
      reads: 'o operatingdir',
      writes: 'C backupdir',
      loads: 'f rcfile',
      executes: 's speller',
    },
    operands: 'writes',
    code: 'editor',
  }),
  ...programs('micro', 'medium', 'unknown', {
    grammar: {
      // Each of its settings is an option too.
      source: 'micro 2.0.11',
      open: true,
      style: 'single-dash',
      flags: 'clean options debug version help',
      // Plugins are found there as well.
      writes: 'config-dir',
    },
    operands: 'writes',
    code: 'editor',
  }),
  ...programs('kak', 'medium', 'unknown', {
    grammar: {
      source: 'kakoune 2022.10.31',
      open: true,
      style: 'single-dash',
      flags: 'help version n l d q clear ro',
      values: 'i p c s ui',
      executes: 'e E f',
    },
    operands: 'writes',
    code: 'editor',
  }),
  ...programs('hx helix', 'medium', 'unknown', {
    grammar: {
      source: 'helix-term of helix, commit 079a789e8cb0',
      open: true,
      exact: true,
      flags: 'h help strict tutor v V version vsplit hsplit',
      optionals: 'health',
      reads: 'w working-dir',
      writes: 'log',
      loads: 'c config',
      // It fetches or builds them.
      executes: 'g grammar',
    },
    operands: 'writes',
    code: 'editor',
  }),
  ...programs('emacsclient pico joe jed mcedit', 'medium', 'unknown', {
    grammar: {
      open: true,
      flags: 'Q nw batch q s',
      executes: 'eval execute e s speller',
      loads: 'l load script rcfile f funcall',
    },
    operands: 'writes',
    code: 'editor',
  }),
];

/** Programs that turn text into other text, and editors. */
export const TEXT: readonly ProgramRow[] = [
  ...EDITORS,
  ...programs('sort', 'low', 'local', {
    strict: takesNamesFrom('files0-from'),
    grammar: {
      source: 'coreutils 9.1',
      flags:
        'b ignore-leading-blanks d dictionary-order f ignore-case g general-numeric-sort h human-numeric-sort i ignore-nonprinting M month-sort n numeric-sort R random-sort r reverse V version-sort c C m merge s stable u unique z zero-terminated debug help version',
      values: 'k key t field-separator S buffer-size parallel batch-size sort',
      optionals: 'check',
      reads: 'files0-from random-source',
      writes: 'o output T temporary-directory',
      executes: 'compress-program',
    },
    operands: 'reads',
    passesOn:
      'b ignore-leading-blanks d dictionary-order f ignore-case g general-numeric-sort h human-numeric-sort i ignore-nonprinting M month-sort n numeric-sort R random-sort r reverse V version-sort s stable u unique z zero-terminated k key t field-separator sort',
    application: { without: 'files0-from T temporary-directory' },
  }),
  ...programs('uniq', 'low', 'local', {
    grammar: {
      source: 'coreutils 9.1',
      flags: 'c count d repeated D i ignore-case u unique z zero-terminated',
      values: 'f skip-fields s skip-chars w check-chars',
      optionals: 'all-repeated group',
    },
    paths: ({ operands }) => writtenAt(operands, 1),
    operands: 'reads',
    passesOn:
      'd repeated D i ignore-case u unique z zero-terminated f skip-fields s skip-chars w check-chars',
    // The second file of uniq is its output.
    inspect: ({ operands }) =>
      operands[1] === undefined
        ? []
        : [finding('writes', 'writes_output', 'writes its second file', operands[1].word.source)],
    application: {},
  }),
  ...programs('shuf', 'low', 'local', {
    grammar: {
      source: 'coreutils 9.1',
      flags: 'e echo r repeat z zero-terminated',
      values: 'i input-range n head-count',
      reads: 'random-source',
      writes: 'o output',
    },
    operands: 'reads',
    application: {},
  }),
  ...programs('cut', 'low', 'local', {
    grammar: {
      source: 'coreutils 9.1',
      flags: 's n z complement only-delimited zero-terminated help version',
      values: 'd f c b delimiter fields characters bytes output-delimiter',
    },
    operands: 'reads',
    application: {},
  }),
  ...programs('paste', 'low', 'local', {
    grammar: {
      source: 'coreutils 9.1',
      flags: 's z serial zero-terminated help version',
      values: 'd delimiters',
    },
    operands: 'reads',
    application: {},
  }),
  ...programs('join', 'low', 'local', {
    grammar: {
      source: 'coreutils 9.1',
      flags: 'i ignore-case z zero-terminated header check-order nocheck-order help version',
      values: 't j 1 2 v a e o',
    },
    operands: 'reads',
    application: {},
  }),
  ...programs('column', 'low', 'local', {
    grammar: {
      source: 'util-linux 2.38.1',
      open: true,
      flags:
        't table x fillrows d table-noheadings e table-header-repeat J json L keep-empty-lines h help V version',
      values:
        's separator o output-separator c output-width n table-name N table-columns O table-order l table-columns-limit E table-noextreme H table-hide R table-right T table-truncate W table-wrap r tree i tree-id p tree-parent',
    },
    operands: 'reads',
  }),
  ...programs('nl', 'low', 'local', {
    grammar: {
      source: 'coreutils 9.1',
      flags: 'p no-renumber help version',
      values:
        'b body-numbering d section-delimiter f footer-numbering h header-numbering i line-increment l join-blank-lines n number-format s number-separator v starting-line-number w number-width',
    },
    operands: 'reads',
    application: {},
  }),
  ...programs('fold', 'low', 'local', {
    grammar: {
      source: 'coreutils 9.1',
      numeric: true,
      flags: 'b bytes s spaces help version',
      values: 'w width',
    },
    operands: 'reads',
    application: {},
  }),
  ...programs('fmt', 'low', 'local', {
    grammar: {
      source: 'coreutils 9.1',
      open: true,
      numeric: true,
      flags: 'c crown-margin s split-only t tagged-paragraph u uniform-spacing help version',
      values: 'p prefix w width g goal',
    },
    operands: 'reads',
  }),
  ...programs('expand unexpand', 'low', 'local', {
    grammar: {
      source: 'coreutils 9.1',
      open: true,
      numeric: true,
      flags: 'i initial a all first-only help version',
      values: 't tabs',
    },
    operands: 'reads',
  }),
  ...programs('rev', 'low', 'local', {
    grammar: { source: 'util-linux 2.38.1', flags: 'h help V version' },
    operands: 'reads',
    application: {},
  }),
  ...programs('pr', 'low', 'local', {
    grammar: {
      source: 'coreutils 9.1',
      open: true,
      numeric: true,
      flags:
        'a across c show-control-chars d double-space F f form-feed J join-lines m merge r no-file-warnings t omit-header T omit-pagination v show-nonprinting help version',
      values:
        'pages columns D date-format h header l length N first-line-number o indent w width W page-width',
      optionals: 'e expand-tabs i output-tabs n number-lines s separator S sep-string',
    },
    operands: 'reads',
  }),
  ...programs('look', 'low', 'local', {
    grammar: {
      source: 'util-linux 2.38.1',
      open: true,
      flags: 'a alternative d alphanum f ignore-case h help V version',
      values: 't terminate',
    },
    operands: 'reads',
  }),
  ...programs('tsort', 'low', 'local', {
    grammar: { source: 'coreutils 9.1', open: true, flags: 'help version' },
    operands: 'reads',
  }),
  ...programs('iconv', 'low', 'local', {
    grammar: {
      source: 'glibc 2.36',
      flags: 'c l list s verbose',
      values: 'f t from-code to-code',
      writes: 'o output',
    },
    operands: 'reads',
  }),
  ...programs('dos2unix unix2dos ptx', 'medium', 'local', { operands: 'writes' }),
  ...programs('envsubst', 'low', 'local', { operands: 'none' }),
  ...programs('tr', 'low', 'local', { operands: 'none', application: { words: 'any' } }),
  ...programs('jq gojq jaq', 'low', 'local', {
    grammar: {
      source: 'jq 1.6',
      flags:
        'r raw-output R raw-input s slurp n null-input c compact-output C color-output M monochrome-output a ascii-output S sort-keys j join-output e exit-status seq stream tab unbuffered h help V version args jsonargs stream-errors raw-output0',
      // -f takes no value: the first operand is a file then.
      values: 'indent arg argjson slurpfile rawfile argfile',
      reads: 'f from-file L library-path',
    },
    paths: pathsOfJq,
    application: {
      names: 'jq',
      without: 'seq stream unbuffered jsonargs stream-errors raw-output0 argfile f from-file L library-path',
      // `env` and `$ENV`, wherever in its program.
      obeysEnvironment: ({ command }) => command.words.some(({ value }) => /env/i.test(value ?? 'env')),
      objection: ({ command }) =>
        command.words.every(({ value }) => isPlainJq(value ?? '')) ? undefined : 'takes no modules here',
    },
  }),
  ...programs('yq', 'low', 'local', {
    grammar: {
      // Not the wrapper of jq that has the same name: there -f names a file.
      source: 'cmd/root.go of yq 4, commit c14f44638294',
      open: true,
      flags:
        'r y Y n P C M e j N V c 0 verbose debug-node-info tojson raw-output unwrapScalar prettyPrint null-input exit-status no-doc colors no-colors nul-output version xml-strict-mode xml-keep-namespace xml-raw-token xml-skip-proc-inst xml-skip-directives csv-auto-parse tsv-auto-parse lua-unquoted lua-globals ini-preserve-quotes properties-array-brackets string-interpolation header-preprocess yaml-fix-merge-anchor-to-spec yaml-compact-seq-indent security-disable-env-ops security-disable-file-ops',
      values:
        'o p output-format input-format I indent arg expression front-matter xml-attribute-prefix xml-content-name xml-proc-inst-prefix xml-directive-name csv-separator lua-prefix lua-suffix properties-separator shell-key-separator',
      reads: 'from-file split-exp-file',
      // One file per document with -s, whose value is an expression.
      writing: 'i inplace in-place s? split-exp?',
      // An expression may run programs then.
      executing: 'security-enable-system-operator',
    },
    paths: pathsOfYq,
    morePaths: filesOfYq,
  }),
  ...programs('xmllint', 'low', 'local', {
    grammar: {
      source: 'libxml2 2.9.14',
      open: true,
      flags:
        'version debug debugent copy recover huge noent noenc noout load-trace nonet nocompact htmlout nowrap valid postvalid quiet timing repeat insert compress html xmlout nodefdtd push pushsmall memory nowarning noblanks nocdata format dropdtd c14n c14n11 exc-c14n nsclean testIO catalogs nocatalogs auto xinclude noxincludenode nofixup-base-uris loaddtd dtdattr stream walker chkregister sax1 sax oldxml10',
      values: 'xpath encode maxmem pretty pattern dtdvalidfpi',
      reads: 'schema dtdvalid relaxng schematron path',
      writes: 'o output',
      // Its shell saves files by what stands on the standard input.
      writing: 'shell',
      style: 'single-dash',
    },
    operands: 'reads',
    inspect: inspectXml,
  }),
  ...programs('base64 base32 basenc', 'low', 'local', {
    grammar: { source: 'coreutils 9.1', flags: 'd D decode i ignore-garbage', values: 'w wrap' },
    operands: 'reads',
    application: { names: 'base64 base32' },
  }),
  ...programs('pandoc', 'medium', 'local', {
    grammar: {
      source: 'pandoc 2.17.1.1',
      open: true,
      flags:
        'bash-completion verbose quiet fail-if-warnings list-input-formats list-output-formats list-highlight-languages list-highlight-styles v version h help strip-empty-paragraphs file-scope p preserve-tabs trace s standalone sandbox toc table-of-contents strip-comments no-highlight no-check-certificate html-q-tags ascii reference-links atx-headers N number-sections listings i incremental section-divs C citeproc natbib biblatex mathml gladtex dump-args ignore-args',
      values:
        'f from r read t to w write shift-heading-level-by base-header-level indented-code-classes default-image-extension M metadata tab-stop track-changes V variable D print-default-template eol dpi wrap columns toc-depth highlight-style print-highlight-style request-header reference-location markdown-headings top-level-division number-offset slide-level email-obfuscation id-prefix T title-prefix c css epub-chapter-level epub-subdirectory ipynb-output',
      optionals: 'list-extensions mathjax webtex katex',
      reads:
        'metadata-file print-default-data-file syntax-definition H include-in-header B include-before-body A include-after-body epub-cover-image epub-metadata epub-embed-font bibliography citation-abbreviations',
      // Templates, styles and documents to refer to may be names, or URLs: left to be guessed.
      writes: 'o output extract-media log',
      // Defaults may name filters, and a folder of data holds them.
      loads: 'd defaults data-dir',
      executes: 'F filter L lua-filter pdf-engine pdf-engine-opt',
      networking: 'self-contained? embed-resources?',
    },
    inspect: (use) => [...fetches(use), ...loadsFormat(use)],
  }),
  ...programs('csvcut csvlook csvgrep csvstat', 'medium', 'local', {
    grammar: {
      source: 'csvkit 1.0.7',
      open: true,
      flags:
        'h help t tabs b no-doublequote S skipinitialspace H no-header-row v verbose l linenumbers zero V version n names x delete-empty-rows i invert-match a any-match blanks I no-inference csv type nulls unique min max sum mean median stdev len freq count',
      values:
        'd delimiter q quotechar u quoting p escapechar z maxfieldsize e encoding K skip-lines c columns C not-columns m match r regex L locale date-format datetime-format max-rows max-columns max-column-width y snifflimit freq-count',
      reads: 'f file',
    },
  }),
  ...programs('mlr miller', 'medium', 'local', {
    code: 'language',
    grammar: {
      source: 'miller 6.6.0',
      open: true,
      style: 'single-dash',
      // Verbs have options of their own.
      stopAtOperand: true,
      flags: 'n N S A O c t j p T x icsv ocsv ijson ojson json jsonl csv tsv version',
      values:
        'i o io fs ofs ifs ps ops ips rs ors irs ifs-regex ips-regex ofmt flatsep jflatsep nr-progress-mod records-per-batch seed tz pass-comments-with skip-comments-with gen-field-name gen-start gen-step gen-stop',
      reads: 'from mfrom s',
      loads: 'load mload',
      writing: 'I',
      executes: 'prepipe prepipex',
    },
  }),
  ...programs('xsv fx gron dasel tomlq hjson', 'medium', 'local', {
    grammar: {
      open: true,
      values: 'f t from to c d',
      writes: 'o output',
      executes: 'F filter L lua-filter pdf-engine',
    },
  }),
];

/** The first operand of yq is an expression, or a file where that is left out. */
function pathsOfYq(use: Use): readonly PathUse[] {
  const [first, ...rest] = /^(?:e|ea|eval|eval-all)$/.test(use.operands[0]?.text ?? '')
    ? use.operands.slice(1)
    : use.operands;
  const isFile =
    hasOption(use, 'from-file expression') ||
    /^(?:[/~]|\.\.?\/)|^[^.\s()[\]|][^\s()[\]|]*\.(?:ya?ml|json|xml|toml|csv|tsv|ini|hcl|lua|properties)$/.test(
      first?.text ?? '',
    );
  return plainPaths(
    isFile ? [first, ...rest] : rest,
    use.options.some(({ inPlace }) => inPlace) ? 'writes' : 'reads',
  );
}

/** Readers and writers of pandoc may be scripts: `-t ./mine.lua`. */
function loadsFormat({ options }: Use): readonly Finding[] {
  return options
    .filter(
      ({ name, value }) =>
        /^(?:[ftrw]|from|to|read|write)$/.test(name) &&
        value !== undefined &&
        (!value.complete || /\.lua\b|\//.test(value.text)),
    )
    .map(({ word }) =>
      finding('loads', 'loads_by_option', 'runs code from a file through its format', word.source),
    );
}

/** `load("file")` and its kin in an expression of yq. */
function filesOfYq({ operands }: Use): readonly PathUse[] {
  return operands.flatMap((operand) =>
    [...operand.text.matchAll(/\bload(?:_\w+)?\(\s*"([^"\\]+)"/g)].map(([, path = '']) => ({
      argument: pathInside(operand, path),
      effect: 'reads' as const,
    })),
  );
}

/** A URL among the words, which the program fetches. */
function fetches({ command }: Use): readonly Finding[] {
  return command.words
    .slice(1)
    .filter((word) => /^(?:--?[\w-]+=)?(?:https?|ftp):\/\//i.test(leadingText(word)))
    .map(({ source }) => finding('network', 'fetches', 'fetches what is at a URL', source));
}

/** Documents name others, which are fetched with these options. */
function inspectXml(use: Use): readonly Finding[] {
  const { words } = use.command;
  const follows = words.filter(({ value }) =>
    /^--?(?:noent|valid|postvalid|loaddtd|dtdattr|xinclude|noxincludenode)$/.test(value ?? ''),
  );
  const isKept = words.some(({ value }) => /^--?nonet$/.test(value ?? ''));
  return [
    ...fetches(use),
    ...(isKept ? [] : follows).map(({ source }) =>
      finding('network', 'follows', 'fetches what a document names', source),
    ),
  ];
}

/** Options of jq that take a name and a text, or a name and a file: the tables know one value only. */
const NAMES_TEXT: ReadonlySet<string> = new Set(['--arg', '--argjson']);
const NAMES_FILE: ReadonlySet<string> = new Set(['--rawfile', '--slurpfile', '--argfile']);
const ONE_VALUE: ReadonlySet<string> = new Set(['--indent', '-L', '--library-path']);

/** The files that jq reads: behind names, with -f the program, and the operands behind the program. */
function pathsOfJq({ command }: Use): readonly PathUse[] {
  const files: Argument[] = [];
  const operands: Argument[] = [];
  let fromFile = false;
  let options = true;
  let texts = false;
  for (let index = 1; index < command.words.length; index++) {
    const word = command.words[index];
    if (word === undefined) break;
    const text = leadingText(word);
    if (!options || text[0] !== '-') {
      if (!texts || operands.length === 0) operands.push(argumentOf(word));
    } else if (text === '--') options = false;
    else if (NAMES_TEXT.has(text)) index += 2;
    else if (ONE_VALUE.has(text)) index++;
    else if (NAMES_FILE.has(text)) {
      const file = command.words[index + 2];
      if (file !== undefined) files.push(argumentOf(file));
      index += 2;
    } else if (/^(?:-[A-Za-z]*f|--from-file)/.test(text)) fromFile = true;
    // The operands behind --args are texts, but for the program.
    else if (text === '--args' || text === '--jsonargs') texts = true;
  }
  return plainPaths([...files, ...(fromFile ? operands : operands.slice(1))], 'reads');
}

/** True for a program of jq that takes no modules. */
export function isPlainJq(program: string): boolean {
  return !/\b(?:import|include|modulemeta|get_search_list)\b/.test(program);
}
