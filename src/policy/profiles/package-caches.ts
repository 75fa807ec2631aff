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
    env: { GOPROXY: 'file://{home}/go/pkg/mod/cache/download' },
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
