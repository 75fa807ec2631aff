/**
 * What tools keep in a home for the next time: kept per workspace although the home itself is deleted with each command. Nothing
 * that says what a later command means: no settings, no programs that are found by their names, no credentials.
 */
interface CachePlace {
  /** Of its directory or file among those of a workspace's cache. */
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
