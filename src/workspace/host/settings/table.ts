/**
 * What commands get of a setting of the user's: its `value`; the same where the network is open (`proxy`); the path of a
 * `certificate` file, which they may read; the content of a `file`; nothing, because it is a `credential`; or nothing. A `choice`
 * is a value if commands can read each absolute path in it; if not, a person is told that they do not get it. `libraries` are the
 * same, and lie where no command can write: every later interpreter would load what a command put there.
 */
export type Handling =
  | 'value'
  | 'proxy'
  | 'certificate'
  | 'choice'
  | 'libraries'
  | 'file'
  | 'credential'
  | 'nothing';

/** A key of a tool's settings, with the words of those that stand for any text as `*`. */
export interface SettingRow {
  readonly key: string;
  readonly as: Handling;
  readonly reason: string;
  /** Only such values; others are left out. */
  readonly values?: RegExp;
}

/** Where a file of settings is. A variable that is set takes the place of `path`. */
export interface SettingsPlace {
  readonly root: 'home' | 'config' | 'cargo' | 'machine';
  readonly path: string;
  readonly variable?: string;
}

export type FormatName = 'npmrc' | 'pip' | 'yarnrc' | 'yaml' | 'toml' | 'assignments';

/** A tool whose settings commands get: those of its files as a file, those of its variables as variables. */
export interface SettingsTool {
  readonly tool: string;
  readonly format: FormatName;
  /** Later ones win. */
  readonly places: readonly SettingsPlace[];
  /** Beneath the private home. */
  readonly into: string;
  readonly rows: readonly SettingRow[];
  /** Its variables, as long as their names follow from the keys: the group is the key. */
  readonly variables?: RegExp;
}

const rows = (as: Handling, reason: string, keys: string): readonly SettingRow[] =>
  keys
    .trim()
    .split(/\s+/)
    .map((key) => ({ key, as, reason }));

const WHERE_FROM = 'where packages come from: without it the public registry is asked for private names';
const TRUST = 'which servers are trusted';
const GUARD = 'keeps the user from what came out lately, runs scripts or is not what was asked for';
const HABIT = 'how the tool works, in plain values';
const PROXY = 'the way to servers; of no use without a network';
const CREDENTIAL = 'who has it is the user';

const NPM: readonly SettingRow[] = [
  ...rows('value', WHERE_FROM, 'registry @*:registry replace-registry-host omit-lockfile-registry-resolved'),
  ...rows('value', TRUST, 'strict-ssl ca'),
  ...rows('certificate', TRUST, 'cafile'),
  ...rows('proxy', PROXY, 'proxy http-proxy https-proxy noproxy no-proxy local-address'),
  ...rows(
    'value',
    GUARD,
    `ignore-scripts before min-release-age min-release-age-exclude minimum-release-age minimum-release-age-exclude allow-git
     allow-remote allow-file allow-directory package-lock engine-strict strict-peer-deps strict-peer-dependencies
     strict-dep-builds audit audit-level trust-policy block-exotic-subdeps ignore-dep-scripts verify-store-integrity`,
  ),
  ...rows(
    'value',
    HABIT,
    `always-auth save save-exact save-prefix save-dev tag legacy-peer-deps omit include optional production dev only fund
     update-notifier progress loglevel color unicode fetch-retries fetch-retry-factor fetch-retry-mintimeout
     fetch-retry-maxtimeout fetch-timeout maxsockets network-concurrency prefer-offline prefer-online offline
     install-links install-strategy legacy-bundling global-style foreground-scripts init-author-name init-author-email
     init-author-url init-license init-version init-private init.author.name init.author.email init.author.url
     init.license init.version git-tag-version commit-hooks sign-git-tag tag-version-prefix yes node-linker hoist
     hoist-pattern public-hoist-pattern shamefully-hoist auto-install-peers dedupe-peer-dependents link-workspace-packages
     save-workspace-protocol resolution-mode prefer-frozen-lockfile lockfile side-effects-cache package-import-method`,
  ),
  ...rows('credential', CREDENTIAL, '_auth _authtoken _password //*:_auth //*:_authtoken //*:_password'),
  ...rows('credential', CREDENTIAL, 'cert key //*:certfile //*:keyfile'),
];

const PIP: readonly SettingRow[] = [
  ...rows('value', WHERE_FROM, 'index-url extra-index-url index find-links no-index'),
  ...rows('value', TRUST, 'trusted-host use-feature'),
  ...rows('certificate', TRUST, 'cert'),
  ...rows('proxy', PROXY, 'proxy'),
  ...rows('value', GUARD, 'require-hashes require-virtualenv only-binary uploaded-prior-to'),
  ...rows(
    'value',
    HABIT,
    `timeout default-timeout retries prefer-binary no-binary pre no-deps no-build-isolation no-cache-dir no-input no-color
     no-compile progress-bar quiet verbose disable-pip-version-check break-system-packages exists-action user use-pep517
     no-warn-script-location no-python-version-warning format`,
  ),
  ...rows('credential', CREDENTIAL, 'client-cert'),
];

const UV_KEYS = `index-url extra-index-url index.name index.url index.default index.explicit index.format index.ignore-error-codes
  index.cache-control index.authenticate find-links no-index index-strategy python-install-mirror pypy-install-mirror`;
const UV_HABITS = `offline prerelease resolution fork-strategy link-mode compile-bytecode python-preference python-downloads
  concurrent-downloads concurrent-builds concurrent-installs no-build-isolation upgrade system break-system-packages`;
const UV_GUARDS =
  'exclude-newer exclude-newer-package.* no-build no-build-package no-binary no-binary-package only-binary require-hashes verify-hashes no-sources';
const under = (prefix: string, keys: string) =>
  keys
    .trim()
    .split(/\s+/)
    .map((key) => `${prefix}${key}`)
    .join(' ');

const UV: readonly SettingRow[] = [
  ...rows('value', WHERE_FROM, `${UV_KEYS} ${under('pip.', UV_KEYS)}`),
  ...rows(
    'value',
    TRUST,
    'allow-insecure-host native-tls system-certs pip.allow-insecure-host pip.native-tls',
  ),
  ...rows('proxy', PROXY, 'http-proxy https-proxy no-proxy'),
  ...rows('value', GUARD, `${UV_GUARDS} ${under('pip.', UV_GUARDS)}`),
  ...rows('value', HABIT, `${UV_HABITS} ${under('pip.', UV_HABITS)}`),
];

const YARN: readonly SettingRow[] = [
  ...rows('value', WHERE_FROM, 'registry @*:registry'),
  ...rows('value', TRUST, 'strict-ssl ca'),
  ...rows('certificate', TRUST, 'cafile'),
  ...rows('proxy', PROXY, 'proxy https-proxy http-proxy noproxy'),
  ...rows('value', GUARD, 'ignore-scripts ignore-optional ignore-engines'),
  ...rows(
    'value',
    HABIT,
    'network-timeout network-concurrency save-prefix version-tag-prefix version-git-tag',
  ),
  ...rows('credential', CREDENTIAL, '_auth _authtoken //*:_auth //*:_authtoken //*:_password'),
];

const YARN_BERRY: readonly SettingRow[] = [
  ...rows(
    'value',
    WHERE_FROM,
    'npmregistryserver npmpublishregistry npmscopes.*.npmregistryserver npmscopes.*.npmpublishregistry',
  ),
  ...rows('value', TRUST, 'enablestrictssl unsafehttpwhitelist'),
  ...rows('certificate', TRUST, 'httpscafilepath cafilepath networksettings.*.httpscafilepath'),
  ...rows('proxy', PROXY, 'httpproxy httpsproxy networksettings.*.httpproxy networksettings.*.httpsproxy'),
  ...rows(
    'value',
    GUARD,
    'enablescripts enablehardenedmode enableimmutableinstalls npmminimalagegate checksumbehavior',
  ),
  ...rows(
    'value',
    HABIT,
    `npmalwaysauth npmscopes.*.npmalwaysauth nodelinker enabletelemetry enablenetwork httptimeout httpretry
     networkconcurrency defaultsemverrangeprefix enableprogressbars enablecolors enableglobalcache`,
  ),
  ...rows('credential', CREDENTIAL, '*npmauthtoken *npmauthident *httpscertfilepath *httpskeyfilepath'),
];

const CARGO: readonly SettingRow[] = [
  ...rows(
    'value',
    WHERE_FROM,
    `registries.*.index registries.*.protocol registry.default registry.index source.*.registry source.*.replace-with
     source.*.local-registry source.*.directory source.*.git source.*.branch source.*.tag source.*.rev`,
  ),
  ...rows('certificate', TRUST, 'http.cainfo http.proxy-cainfo'),
  ...rows('value', TRUST, 'http.check-revoke http.ssl-version http.ssl-version.min http.ssl-version.max'),
  ...rows('proxy', PROXY, 'http.proxy'),
  ...rows(
    'credential',
    CREDENTIAL,
    'registry.token registries.*.token registry.secret-key registries.*.secret-key',
  ),
  ...rows(
    'value',
    HABIT,
    `net.retry net.git-fetch-with-cli net.offline http.timeout http.multiplexing http.low-speed-limit http.user-agent
     build.jobs build.incremental build.target term.* profile.* future-incompat-report.* cargo-new.* alias.* cache.*
     resolver.*`,
  ),
];

const GO_TOOLCHAIN = /^(?:local|auto|path|go[\w.]+(?:\+(?:auto|path))?)$/;
/** Not -toolexec and -exec, which run a program, nor -overlay, -modfile and the flags of compiler and linker. */
const GO_FLAGS =
  /^(?:\s*-(?:mod=\w+|modcacherw|trimpath|buildvcs=\w+|tags=[\w.,]+|v|x|p=\d+|race|count=\d+|timeout=\w+|insecure)\s*)*$/;

const GO: readonly SettingRow[] = [
  ...rows('value', WHERE_FROM, 'GOPROXY GONOPROXY GOPRIVATE'),
  ...rows('value', TRUST, 'GOSUMDB GONOSUMDB GONOSUMCHECK GOINSECURE GOVCS'),
  { key: 'GOTOOLCHAIN', as: 'value', reason: 'which Go may be fetched', values: GO_TOOLCHAIN },
  { key: 'GOFLAGS', as: 'value', reason: HABIT, values: GO_FLAGS },
  ...rows('value', HABIT, 'GO111MODULE GOOS GOARCH GOAMD64 GOARM GOARM64 GOEXPERIMENT CGO_ENABLED'),
];

/** THE table of the tools whose settings commands get. What no row names stays outside: it may run a program. */
export const SETTINGS_TOOLS: readonly SettingsTool[] = [
  {
    tool: 'npm',
    format: 'npmrc',
    places: [
      { root: 'machine', path: '/etc/npmrc', variable: 'npm_config_globalconfig' },
      { root: 'home', path: '.npmrc', variable: 'npm_config_userconfig' },
    ],
    into: '.npmrc',
    rows: NPM,
    variables: /^npm_config_(.+)$/i,
  },
  {
    tool: 'pnpm',
    format: 'npmrc',
    places: [{ root: 'config', path: 'pnpm/rc' }],
    into: '.config/pnpm/rc',
    rows: NPM,
  },
  {
    tool: 'yarn',
    format: 'yarnrc',
    places: [{ root: 'home', path: '.yarnrc' }],
    into: '.yarnrc',
    rows: YARN,
  },
  {
    tool: 'yarn',
    format: 'yaml',
    places: [{ root: 'home', path: '.yarnrc.yml' }],
    into: '.yarnrc.yml',
    rows: YARN_BERRY,
    variables: /^YARN_(.+)$/,
  },
  {
    tool: 'pip',
    format: 'pip',
    places: [
      { root: 'machine', path: '/etc/xdg/pip/pip.conf' },
      { root: 'machine', path: '/etc/pip.conf' },
      { root: 'home', path: '.pip/pip.conf' },
      { root: 'config', path: 'pip/pip.conf' },
      { root: 'machine', path: '', variable: 'PIP_CONFIG_FILE' },
    ],
    // Where pip looks as well: making two directories takes longer than starting a command.
    into: '.pip/pip.conf',
    rows: PIP,
    variables: /^PIP_(.+)$/,
  },
  {
    tool: 'uv',
    format: 'toml',
    places: [
      { root: 'machine', path: '/etc/uv/uv.toml' },
      { root: 'config', path: 'uv/uv.toml', variable: 'UV_CONFIG_FILE' },
    ],
    into: '.config/uv/uv.toml',
    rows: UV,
  },
  {
    tool: 'cargo',
    format: 'toml',
    places: [
      { root: 'cargo', path: 'config.toml' },
      { root: 'cargo', path: 'config' },
    ],
    into: '.cargo/config.toml',
    rows: CARGO,
  },
  {
    tool: 'go',
    format: 'assignments',
    places: [{ root: 'config', path: 'go/env', variable: 'GOENV' }],
    into: '.config/go/env',
    rows: GO,
  },
];

const LANGUAGE = 'language, sort order and formats as outside';
const TOOL_CHAIN = 'which tool chain is used: without it another one builds than for the user';
const TOOL_OPTIONS = 'how tools build: without it the result differs from what the user gets';
const SEARCHED = 'where an interpreter or a build looks for libraries';
/** Words with blanks between them, each of one of these shapes: read in one pass, whatever a value repeats. */
const words = (shapes: string): RegExp => new RegExp(`^\\s*(?:(?:${shapes})(?:\\s+|$))*$`);
/** What sizes a JVM, and nothing that loads code or names a file. */
const JVM_OPTIONS = words('-(?:Xm[nsx]\\d+[kKmMgG]?|Xss\\d+[kKmMgG]?|XX:[+-]?\\w+(?:=\\w+)?|ea|esa|server)');
/** Not the descriptors of a make that is around us: commands do not inherit them. */
const MAKE_FLAGS = words(
  '-[jl]|-[jl]?\\d+|-?[kswir]+|--(?:keep-going|silent|no-print-directory|jobs=\\d+|load-average=\\d+|output-sync(?:=\\w+)?)',
);
/** Not --require, --import and --loader, which load code, nor the options of the debugger. */
const NODE_OPTIONS = words(
  '--(?:(?:max-(?:old-space|semi-space|http-header)-size|stack-trace-limit|unhandled-rejections|dns-result-order|conditions)=[\\w-]+|openssl-legacy-provider|(?:no|trace)-(?:warnings|deprecation)|enable-source-maps|preserve-symlinks|use-(?:openssl|system)-ca|experimental-(?:vm-modules|strip-types|transform-types))',
);

/** Variables that say such things to several tools, or whose names do not follow from keys. */
export const SETTING_VARIABLES: readonly SettingRow[] = [
  ...rows(
    'certificate',
    TRUST,
    `SSL_CERT_FILE SSL_CERT_DIR NODE_EXTRA_CA_CERTS REQUESTS_CA_BUNDLE CURL_CA_BUNDLE GIT_SSL_CAINFO GIT_SSL_CAPATH
     GIT_PROXY_SSL_CAINFO AWS_CA_BUNDLE NIX_SSL_CERT_FILE DENO_CERT HTTPLIB2_CA_CERTS GRPC_DEFAULT_SSL_ROOTS_FILE_PATH
     CARGO_HTTP_CAINFO CARGO_HTTP_PROXY_CAINFO`,
  ),
  ...rows(
    'value',
    TRUST,
    'NODE_USE_SYSTEM_CA UV_NATIVE_TLS UV_SYSTEM_CERTS UV_INSECURE_HOST DENO_TLS_CA_STORE',
  ),
  ...rows(
    'proxy',
    PROXY,
    `http_proxy https_proxy ftp_proxy all_proxy no_proxy HTTP_PROXY HTTPS_PROXY FTP_PROXY ALL_PROXY NO_PROXY
     CARGO_HTTP_PROXY NODE_USE_ENV_PROXY`,
  ),
  ...rows(
    'value',
    WHERE_FROM,
    `UV_INDEX UV_DEFAULT_INDEX UV_INDEX_URL UV_EXTRA_INDEX_URL UV_FIND_LINKS UV_NO_INDEX UV_INDEX_STRATEGY
     UV_PYTHON_INSTALL_MIRROR CARGO_REGISTRIES_*_INDEX CARGO_REGISTRIES_*_PROTOCOL CARGO_REGISTRY_DEFAULT
     CARGO_SOURCE_*_REGISTRY CARGO_SOURCE_*_REPLACE_WITH CARGO_NET_GIT_FETCH_WITH_CLI
     DENO_NPM_REGISTRY COREPACK_NPM_REGISTRY BUN_CONFIG_REGISTRY RUSTUP_DIST_SERVER
     RUSTUP_UPDATE_ROOT`,
  ),
  ...rows('value', GUARD, 'UV_EXCLUDE_NEWER UV_REQUIRE_HASHES UV_NO_BUILD UV_OFFLINE'),
  ...GO,
  ...rows(
    'value',
    LANGUAGE,
    `LANGUAGE LC_ADDRESS LC_COLLATE LC_IDENTIFICATION LC_MEASUREMENT LC_MESSAGES LC_MONETARY LC_NAME LC_NUMERIC
     LC_PAPER LC_TELEPHONE LC_TIME`,
  ),
  // Not CARGO_HOME: cargo writes there, and has a place in the private home. PATH leads to the programs in it.
  ...rows(
    'choice',
    TOOL_CHAIN,
    `JAVA_HOME JDK_HOME GOROOT RUSTUP_HOME RUSTUP_TOOLCHAIN VIRTUAL_ENV CONDA_PREFIX CONDA_DEFAULT_ENV DOTNET_ROOT
     ANDROID_HOME ANDROID_SDK_ROOT PYENV_VERSION RBENV_VERSION NODENV_VERSION CC CXX CPP FC LD AR AS NM RANLIB STRIP OBJCOPY
     OBJDUMP PKG_CONFIG CMAKE_GENERATOR CMAKE_C_COMPILER_LAUNCHER CMAKE_CXX_COMPILER_LAUNCHER CROSS_COMPILE`,
  ),
  ...rows(
    'choice',
    TOOL_OPTIONS,
    `CFLAGS CXXFLAGS CPPFLAGS FFLAGS LDFLAGS LDLIBS CGO_CFLAGS CGO_CPPFLAGS CGO_CXXFLAGS CGO_LDFLAGS RUSTFLAGS RUSTDOCFLAGS
     CMAKE_BUILD_TYPE CMAKE_BUILD_PARALLEL_LEVEL CARGO_BUILD_JOBS CARGO_BUILD_TARGET CARGO_INCREMENTAL SOURCE_DATE_EPOCH`,
  ),
  ...rows('choice', SEARCHED, 'CPATH LIBRARY_PATH PKG_CONFIG_PATH CMAKE_PREFIX_PATH'),
  ...rows('libraries', SEARCHED, 'PYTHONPATH PERL5LIB RUBYLIB'),
  ...rows(
    'value',
    HABIT,
    'PYTHONDONTWRITEBYTECODE PYTHONUNBUFFERED PYTHONHASHSEED PYTHONUTF8 PYTHONIOENCODING',
  ),
  { key: 'MAKEFLAGS', as: 'choice', reason: TOOL_OPTIONS, values: MAKE_FLAGS },
  { key: 'NODE_OPTIONS', as: 'choice', reason: TOOL_OPTIONS, values: NODE_OPTIONS },
  ...['MAVEN_OPTS', 'GRADLE_OPTS', 'SBT_OPTS', 'JAVA_OPTS', '_JAVA_OPTIONS', 'JAVA_TOOL_OPTIONS'].map(
    (key): SettingRow => ({ key, as: 'choice', reason: TOOL_OPTIONS, values: JVM_OPTIONS }),
  ),
];

/** What commands do not get of tools of which no settings are carried: said where they can reach a network. */
export const SETTINGS_LEFT_OUT: readonly {
  readonly path: string;
  readonly tool: string;
  readonly as: 'credential' | 'settings';
}[] = [
  { path: '.netrc', tool: 'git, curl, pip and go', as: 'credential' },
  { path: '.cargo/credentials.toml', tool: 'cargo', as: 'credential' },
  { path: '.git-credentials', tool: 'git', as: 'credential' },
  { path: '.m2/settings.xml', tool: 'maven', as: 'settings' },
  { path: '.gradle/init.gradle', tool: 'gradle', as: 'settings' },
  { path: '.gradle/init.gradle.kts', tool: 'gradle', as: 'settings' },
  { path: '.gradle/init.d', tool: 'gradle', as: 'settings' },
  { path: '.bundle/config', tool: 'bundler', as: 'settings' },
  { path: '.gemrc', tool: 'gem', as: 'settings' },
  { path: '.composer/config.json', tool: 'composer', as: 'settings' },
  { path: '.config/composer/config.json', tool: 'composer', as: 'settings' },
  { path: '.nuget/NuGet/NuGet.Config', tool: 'nuget', as: 'settings' },
  { path: '.condarc', tool: 'conda', as: 'settings' },
  { path: '.bunfig.toml', tool: 'bun', as: 'settings' },
  { path: '.config/pypoetry/config.toml', tool: 'poetry', as: 'settings' },
];
