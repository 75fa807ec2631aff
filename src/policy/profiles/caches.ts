/**
 * What tools keep in a home for the next time: kept per workspace although the home itself is deleted with each command. Nothing
 * that says what a later command means: no settings, no programs that are found by their names, no credentials.
 */
interface CachePlace {
  /** The name of its directory or file in the cache of a workspace. */
  readonly name: string;
  /** Relative to the home of a command. */
  readonly path: string;
  /** An empty file at first, by which processes of a tool keep out of each other's way. */
  readonly kind?: 'lock-file';
  readonly reason: string;
}

export const CACHE_PLACES: readonly CachePlace[] = [
  {
    name: 'cache',
    path: '.cache',
    reason:
      'XDG: go-build, pip, uv, ccache, sccache, yarn, deno, composer, pre-commit, browsers of playwright',
  },
  { name: 'npm', path: '.npm', reason: 'packages of npm and npx; its settings are in ~/.npmrc' },
  { name: 'cargo-registry', path: '.cargo/registry', reason: 'crates and the index' },
  { name: 'cargo-git', path: '.cargo/git', reason: 'crates from git' },
  // Without these, two cargos would write one registry at the same time.
  {
    name: 'cargo-lock',
    path: '.cargo/.package-cache',
    kind: 'lock-file',
    reason: 'by which cargos take turns with the registry',
  },
  {
    name: 'cargo-lock-mutate',
    path: '.cargo/.package-cache-mutate',
    kind: 'lock-file',
    reason: 'the same, for what is removed',
  },
  { name: 'go', path: 'go/pkg', reason: 'modules of go and their checksums; ~/go/bin stays private' },
  { name: 'gradle', path: '.gradle/caches', reason: 'artifacts and build cache; init.d stays private' },
  { name: 'gradle-wrapper', path: '.gradle/wrapper', reason: 'gradles that ./gradlew downloaded' },
  { name: 'maven', path: '.m2/repository', reason: 'artifacts; settings.xml stays private' },
  { name: 'maven-wrapper', path: '.m2/wrapper', reason: 'mavens that ./mvnw downloaded' },
  { name: 'pnpm', path: '.local/share/pnpm/store', reason: 'packages of pnpm, by their content' },
  { name: 'yarn', path: '.yarn/berry', reason: 'packages and metadata of yarn since 2' },
  { name: 'bun', path: '.bun/install/cache', reason: 'packages of bun' },
  { name: 'nuget', path: '.nuget/packages', reason: 'packages of dotnet; NuGet.Config is elsewhere' },
];

/**
 * What package managers downloaded earlier, beneath the user's home: shared read-only while the network is off, so
 * that `npm ci` works offline. Nothing of pip, cargo and gradle, which do not check what is in their caches against the
 * project's own files. With the network open, it would let out what other projects use: then only those packages are taken
 * over that the project's lock file names (seed-npm-cache.ts). Never writable: what one command writes into a cache, a later one outside would run.
 */
interface PackageCache {
  readonly tool: string;
  /** Relative to the home directory. Holds packages only: no settings, no credentials, no logs. */
  readonly path: string;
  readonly reason: string;
  /** Where it is in a view, if the tool writes to the same place beneath the private home. */
  readonly shownAs?: string;
  /** Makes the tool find it although HOME is private; `{home}` stands for the user's home. */
  readonly env: Readonly<Record<string, string>>;
}

export const PACKAGE_CACHES: readonly PackageCache[] = [
  {
    tool: 'npm',
    // Enough for `npm ci` with a usual lock file, which names URL and checksum of each package: npm then reads by
    // checksum. What has to write into the cache fails: lock files without URLs, `npm install ./package.tgz`.
    path: '.npm/_cacache',
    reason: 'packages that npm downloaded earlier; their content is checked against the lock file',
    env: {
      npm_config_cache: '{home}/.npm',
      // Log files would go beside the packages, where nothing can be written.
      npm_config_logs_max: '0',
    },
  },
  {
    // As a proxy of modules, which go reads and never writes: it unpacks them beneath the home of the command.
    tool: 'go',
    path: 'go/pkg/mod/cache/download',
    reason: 'modules that go downloaded earlier; their content is checked against go.sum',
    shownAs: '/.sandbox-go-modules',
    // Go takes from the second what the first does not have: without a view there is only the second.
    env: { GOPROXY: 'file:///.sandbox-go-modules,file://{home}/go/pkg/mod/cache/download' },
  },
];

/**
 * Tells package managers that the network is off: they then use what is there or fail at once, instead of trying
 * again for a minute. Servers on the loopback interface can still be used.
 */
export const OFFLINE_ENVIRONMENT: Readonly<Record<string, string>> = {
  // Takes what is cached however old it is, and does not ask the registry for something newer.
  npm_config_prefer_offline: 'true',
  npm_config_fetch_retries: '0',
  npm_config_update_notifier: 'false',
  npm_config_audit: 'false',
  CARGO_NET_OFFLINE: 'true',
  PIP_RETRIES: '0',
  PIP_DISABLE_PIP_VERSION_CHECK: '1',
};
