/** A family of variables that change what runs. */
interface VariableRule {
  /** Exact names separated by blanks; `*` at the beginning or end of one stands for any rest. */
  readonly names: string;
  /** Completes "NAME …". */
  readonly reason: string;
  /**
   * It only chooses among code and programs that the workspace could run anyway: asked about under supervision, left
   * to the kernel where the agent is autonomous.
   */
  readonly contained?: boolean;
}

/** Variables that change what runs, with a reason per row. The first row that matches counts. */
export const VARIABLES: readonly VariableRule[] = [
  { names: 'PATH EXECIGNORE', reason: 'changes which programs run' },
  { names: 'LD_*', reason: 'loads libraries into every program' },
  { names: 'DYLD_*', reason: 'loads libraries into every program' },
  { names: 'GLIBC_TUNABLES GCONV_PATH LOCPATH NLSPATH', reason: 'changes what the C library loads' },
  { names: 'IFS', reason: 'changes how the shell splits words' },
  { names: 'BASH_ENV ENV ZDOTDIR', reason: 'names a script that a shell runs at its start' },
  { names: 'BASH_FUNC_*', reason: 'defines a function of the shell' },
  { names: 'PROMPT_COMMAND PS0 PS1 PS2 PS4 MAIL MAILPATH MAILCHECK', reason: 'is run by the shell as code' },
  {
    names: 'SHELLOPTS BASHOPTS BASH_COMPAT BASH_XTRACEFD BASH_LOADABLES_PATH POSIXLY_CORRECT',
    reason: 'changes how the shell reads commands',
  },
  { names: 'CDPATH GLOBIGNORE GLOBSORT FIGNORE HISTFILE', reason: 'changes what words of a command mean' },
  {
    names: 'HOME XDG_CONFIG_HOME XDG_CONFIG_DIRS XDG_DATA_HOME',
    reason: 'changes which settings programs obey',
  },
  { names: 'SHELL', reason: 'names a program that others run' },
  { names: 'GIT_*', reason: 'may make git run a program or use another repository' },
  {
    names: 'SSH_ASKPASS SSH_AUTH_SOCK SUDO_ASKPASS RSYNC_RSH CVS_RSH SVN_SSH HGRCPATH HGEDITOR',
    reason: 'names a program that another one runs',
  },
  {
    names: 'LESSOPEN LESSCLOSE LESSKEY LESSKEYIN LESSEDIT LESS MORE BAT_CONFIG_PATH BAT_CONFIG_DIR BAT_OPTS',
    reason: 'may make a pager run a program',
  },
  {
    names:
      'PAGER MANPAGER GH_PAGER BAT_PAGER DELTA_PAGER AWS_PAGER SYSTEMD_PAGER PSQL_PAGER ACK_PAGER ACK_PAGER_COLOR MANOPT MANROFFOPT',
    reason: 'names the pager that programs run',
  },
  {
    names: 'EDITOR VISUAL FCEDIT SUDO_EDITOR KUBE_EDITOR SYSTEMD_EDITOR',
    reason: 'names the editor that programs run',
  },
  { names: 'BROWSER', reason: 'names the browser that programs run' },
  {
    names: 'RIPGREP_CONFIG_PATH ACKRC FZF_DEFAULT_COMMAND FZF_DEFAULT_OPTS',
    reason: 'adds options to a search',
  },
  {
    names:
      'TAR_OPTIONS GREP_OPTIONS ZIPOPT UNZIP RSYNC_* WGETRC CURL_HOME INPUTRC TERMINFO TERMCAP VIMINIT EXINIT GVIMINIT MYVIMRC',
    reason: 'adds options or settings that can run programs',
  },
  {
    names:
      'http_proxy https_proxy all_proxy ftp_proxy HTTP_PROXY HTTPS_PROXY ALL_PROXY FTP_PROXY DEBUGINFOD_URLS',
    reason: 'sends traffic elsewhere',
  },
  {
    names:
      'SSL_CERT_FILE SSL_CERT_DIR CURL_CA_BUNDLE REQUESTS_CA_BUNDLE NODE_EXTRA_CA_CERTS NODE_TLS_REJECT_UNAUTHORIZED OPENSSL_CONF OPENSSL_ENGINES OPENSSL_MODULES',
    reason: 'changes whom connections trust',
  },
  {
    names: 'DOCKER_HOST DOCKER_CONFIG KUBECONFIG AWS_CONFIG_FILE AWS_SHARED_CREDENTIALS_FILE',
    reason: 'changes which service is used',
  },
  { names: 'PYTHON*', reason: 'may make Python load other code', contained: true },
  {
    names: 'NODE_* NPM_CONFIG_* npm_config_* YARN_* PNPM_* DENO_* BUN_*',
    reason: 'may make Node load other code or programs',
    contained: true,
  },
  { names: 'PERL5* PERL_* PERLLIB PERLDB_OPTS', reason: 'may make Perl load other code', contained: true },
  { names: 'RUBY* BUNDLE_* GEM_*', reason: 'may make Ruby load other code', contained: true },
  {
    names:
      'LUA_* PHP_INI_SCAN_DIR PHPRC GOFLAGS GOTOOLCHAIN GOPROXY GONOSUMDB GONOSUMCHECK GOROOT GOTOOLDIR GOENV GOCACHEPROG COMPOSER_HOME DOTNET_STARTUP_HOOKS DOTNET_ADDITIONAL_DEPS CORECLR_* COR_* R_PROFILE* R_ENVIRON*',
    reason: 'may make a language load other code',
    contained: true,
  },
  {
    names: 'CLASSPATH JAVA_HOME JAVA_OPTS JDK_* MAVEN_OPTS MAVEN_ARGS GRADLE_OPTS SBT_OPTS ANT_OPTS ANT_ARGS',
    reason: 'may make Java load other code',
    contained: true,
  },
  { names: '*_OPTIONS', reason: 'adds options that may load code', contained: true },
  {
    names: 'MAKEFLAGS MFLAGS GNUMAKEFLAGS MAKE MAKEFILES MAKEOVERRIDES',
    reason: 'adds options or makefiles to make',
    contained: true,
  },
  {
    names: 'CARGO_* CARGO RUSTC RUSTC_* RUSTFLAGS RUSTDOC RUSTDOCFLAGS RUSTUP_*',
    reason: 'names programs and options of the Rust tools',
    contained: true,
  },
  {
    names:
      'CC CXX CPP LD AR AS NM FC STRIP CFLAGS CXXFLAGS CPPFLAGS LDFLAGS CGO_CFLAGS CGO_CXXFLAGS CGO_CPPFLAGS CGO_LDFLAGS COMPILER_PATH GCC_EXEC_PREFIX CMAKE_* NINJA CCACHE_* PKG_CONFIG PKG_CONFIG_* LIBRARY_PATH CPATH C_INCLUDE_PATH CPLUS_INCLUDE_PATH',
    reason: 'names programs and options of the compiler',
    contained: true,
  },
  {
    names: 'PIP_* UV_* POETRY_* PIPENV_* VIRTUAL_ENV CONDA_*',
    reason: 'changes where packages come from',
    contained: true,
  },
  {
    names: 'PYTEST_* TOX_* COVERAGE_* JEST_* MOCHA_* ESLINT_* TS_NODE_*',
    reason: 'adds options or plug-ins to tests',
    contained: true,
  },
];

/** Variables that only say how to write, with a value that is no path. */
const PLAIN = /^(?:LANG|LC_[A-Z]+|TZ|TERM|NO_COLOR|CI|COLUMNS|LINES)$/;

/** A harmless value of {@link PLAIN}. A locale or a zone may also be a path: absolute ones and those with `..` do not match. */
const PLAIN_VALUE = /^(?!.*\.\.)[\w.@+-]*(?:\/[\w.@+-]+)*$/;

/** Beyond {@link PLAIN}, variables of no family that only change what a program prints. */
const OF_LOOKS =
  /^(?:COLORTERM|FORCE_COLOR|CLICOLOR|CLICOLOR_FORCE|LS_COLORS|GREP_COLORS?|TIME_STYLE|BLOCK_SIZE|QUOTING_STYLE|TABSIZE|DEBUG|VERBOSE)$/;

/** Members of these families that cannot run anything. */
const HARMLESS =
  /^(?:NODE_ENV|NODE_NO_WARNINGS|NODE_DEBUG|NODE_DISABLE_COLORS|NODE_V8_COVERAGE|PYTHON(?:DONTWRITEBYTECODE|UNBUFFERED|IOENCODING|UTF8|HASHSEED|NOUSERSITE|FAULTHANDLER|TRACEMALLOC|DEVMODE|OPTIMIZE|VERBOSE|DEBUG|ASYNCIODEBUG|SAFEPATH|STRICT)|CARGO_(?:TERM_\w+|INCREMENTAL|PROFILE_\w+|NET_OFFLINE|NET_RETRY)|GIT_(?:TERMINAL_PROMPT|OPTIONAL_LOCKS|AUTHOR_\w+|COMMITTER_\w+|MERGE_AUTOEDIT|DISCOVERY_ACROSS_FILESYSTEM|PAGER_IN_USE|FLUSH|LITERAL_PATHSPECS)|RUST_\w+|(?:npm_config|NPM_CONFIG)_(?:loglevel|yes|fund|audit|progress|color|update_notifier|offline|prefer_offline)|YARN_ENABLE_(?:IMMUTABLE_INSTALLS|TELEMETRY|COLORS)|PIP_(?:NO_INPUT|QUIET|DISABLE_PIP_VERSION_CHECK|NO_COLOR|NO_CACHE_DIR|PROGRESS_BAR)|UV_(?:OFFLINE|NO_PROGRESS|LINK_MODE)|PYTEST_(?:DISABLE_PLUGIN_AUTOLOAD|DEBUG)|CMAKE_(?:BUILD_TYPE|BUILD_PARALLEL_LEVEL|EXPORT_COMPILE_COMMANDS|COLOR_DIAGNOSTICS)|JEST_WORKER_ID)$/;

/** Values with which a variable does nothing, or only what is usual. */
const HARMLESS_VALUES: readonly { readonly names: RegExp; readonly values: RegExp }[] = [
  {
    names: /^(?:GIT_|GH_|BAT_|DELTA_|AWS_|SYSTEMD_|MAN|PSQL_|ACK_)?PAGER(?:_COLOR)?$/,
    values: /^(?:cat|less|less -[A-Z]+|more|)$/,
  },
  { names: /^(?:(?:GIT_|GIT_SEQUENCE_|SUDO_|KUBE_|HG)?EDITOR|VISUAL|FCEDIT)$/, values: /^(?:true|:|cat|)$/ },
  { names: /^(?:GIT_|SSH_)ASKPASS$/, values: /^(?:true|\/bin\/true|)$/ },
  { names: /^GIT_(?:TRACE|TRACE_\w+|CURL_VERBOSE)$/, values: /^(?:0|1|2|true|false|)$/ },
  { names: /^GIT_CONFIG_(?:NOSYSTEM|GLOBAL|SYSTEM)$/, values: /^(?:0|1|true|\/dev\/null)$/ },
  { names: /^LESS$/, values: /^-?[A-Za-z]*$/ },
  { names: /^BROWSER$/, values: /^(?:none|true|)$/ },
  { names: /^(?:CC|CXX|CPP|LD)$/, values: /^(?:gcc|g\+\+|cc|c\+\+|clang|clang\+\+|ld|lld|mold)(?:-\d+)?$/ },
  {
    names: /^NODE_OPTIONS$/,
    values:
      /^(?:\s*--(?:max-old-space-size=\d+|no-warnings|enable-source-maps|trace-warnings|unhandled-rejections=\w+|experimental-vm-modules|stack-trace-limit=\d+))*\s*$/,
  },
  { names: /^(?:MAKEFLAGS|MFLAGS)$/, values: /^\s*(?:-j ?\d*)?\s*$/ },
  {
    names: /^(?:CGO_)?C(?:XX|PP)?FLAGS$/,
    values:
      /^(?:\s*-(?:[gO][\w]*|W[\w=-]+|D[\w=]+|std=[\w+]+|f(?:sanitize=[\w,]+|no-[\w-]+|PIC)|I[\w./-]+))*\s*$/,
  },
  { names: /^SHELL$/, values: /^\/bin\/(?:ba)?sh$/ },
  { names: /^POSIXLY_CORRECT$/, values: /^(?!)/ },
];

const EXACT: ReadonlyMap<string, VariableRule> = new Map(
  VARIABLES.flatMap((rule) =>
    rule.names
      .split(' ')
      .filter((name) => !name.includes('*'))
      .map((name) => [name, rule] as const),
  ),
);
const PREFIXES: readonly (readonly [string, VariableRule])[] = VARIABLES.flatMap((rule) =>
  rule.names
    .split(' ')
    .filter((name) => name.endsWith('*'))
    .map((name) => [name.slice(0, -1), rule] as const),
);
const SUFFIXES: readonly (readonly [string, VariableRule])[] = VARIABLES.flatMap((rule) =>
  rule.names
    .split(' ')
    .filter((name) => name.startsWith('*'))
    .map((name) => [name.slice(1), rule] as const),
);

function ruleOf(name: string): VariableRule | undefined {
  return (
    EXACT.get(name) ??
    PREFIXES.find(([prefix]) => name.startsWith(prefix))?.[1] ??
    SUFFIXES.find(([suffix]) => name.endsWith(suffix))?.[1]
  );
}

/** The rule that an assignment falls under; `undefined`: it is harmless. `value` is `undefined` if it is dynamic. */
export function variableRule(name: string, value: string | undefined): VariableRule | undefined {
  if (HARMLESS.test(name)) return undefined;
  const rule = ruleOf(name);
  if (rule === undefined) return undefined;
  const usual =
    value !== undefined &&
    HARMLESS_VALUES.some(({ names, values }) => names.test(name) && values.test(value));
  return usual ? undefined : rule;
}

/** Whether a program that is given this variable only writes otherwise: it reads, loads and runs the same. */
export function isPlainVariable(name: string, value: string): boolean {
  // A zone is beneath a directory of the system's: `Europe/Rome`.
  return (
    PLAIN.test(name) &&
    PLAIN_VALUE.test(value) &&
    !(name === 'TZ' ? value.startsWith('/') : value.includes('/'))
  );
}

/**
 * The rule for a variable that a program is given under an allow-list: what no row knows may be its configuration. `undefined`: it
 * is harmless.
 */
export function variableRuleOfList(name: string, value: string | undefined): VariableRule | undefined {
  if (HARMLESS.test(name) || OF_LOOKS.test(name)) return undefined;
  if (value !== undefined && isPlainVariable(name, value)) return undefined;
  return ruleOf(name) === undefined
    ? { names: name, reason: 'may be read as configuration, and is in no table of harmless ones' }
    : variableRule(name, value);
}

/** Whether a list names a variable: `NAME*` stands for every name that begins with NAME. */
export function isListedVariable(name: string, list: readonly string[]): boolean {
  return list.some((entry) => (entry.endsWith('*') ? name.startsWith(entry.slice(0, -1)) : entry === name));
}
