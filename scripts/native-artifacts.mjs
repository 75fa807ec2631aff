// What a native build makes, and for which hosts: the one list that the build, the platform packages and their check
// share. src/confine/native/addon-locations.ts names the same packages (test/packaging/artifacts.test.ts compares them).

/**
 * @typedef {object} NativeArtifact
 * @property {string} file its name in a build directory and in a platform package
 * @property {boolean} isProgram a program without any library; otherwise it is loaded into Node
 */

/** @type {readonly NativeArtifact[]} */
export const NATIVE_ARTIFACTS = [
  { file: 'sandbox_run.node', isProgram: false },
  { file: 'sandbox-run-warden', isProgram: true },
  { file: 'sandbox-run-attack', isProgram: true },
  { file: 'sandbox-run-begin', isProgram: true },
  { file: 'sandbox-run-steps', isProgram: true },
  { file: 'sandbox-run-client', isProgram: true },
  { file: 'sandbox-run-relay', isProgram: true },
];

/**
 * SQLite for Node, made by others for each kind of host. Their package has all of those and the sources, 29 MB: ours have
 * what their host needs.
 */
export const SQLITE = { file: 'sqlite.node', package: '@photostructure/sqlite' };

/**
 * Where it lies in that package.
 * @param {{ architecture: string, libc: string }} host
 */
export function sqliteFor({ architecture, libc }) {
  return `prebuilds/linux-${architecture}/@photostructure+sqlite.${libc === 'gnu' ? 'glibc' : libc}.node`;
}

/** Libraries that every host of the kind has; the C++ runtime is inside the addon. */
const ALLOWED_LIBRARIES = {
  gnu: /^(lib(c|m|dl|pthread|rt)\.so\.\d+|ld-linux-(x86-64\.so\.2|aarch64\.so\.1))$/,
  musl: /^(libc\.so|libc\.musl-(x86_64|aarch64)\.so\.1)$/,
};

/** @type {readonly { architecture: 'x64' | 'arm64', libc: 'gnu' | 'musl', machine: string }[]} */
const HOSTS = [
  { architecture: 'x64', libc: 'gnu', machine: 'x86_64' },
  { architecture: 'arm64', libc: 'gnu', machine: 'aarch64' },
  { architecture: 'x64', libc: 'musl', machine: 'x86_64' },
  { architecture: 'arm64', libc: 'musl', machine: 'aarch64' },
];

/** The hosts that platform packages are made for. */
export const TARGETS = HOSTS.map((host) => ({
  ...host,
  id: `linux-${host.architecture}-${host.libc}`,
  package: `@sandbox-run/linux-${host.architecture}-${host.libc}`,
  allowedLibraries: ALLOWED_LIBRARIES[host.libc],
}));

/** @param {string} id */
export function targetNamed(id) {
  const target = TARGETS.find((candidate) => candidate.id === id);
  if (target !== undefined) return target;
  throw new Error(`there is no target ${id}, only ${TARGETS.map((candidate) => candidate.id).join(', ')}`);
}

/** The target that this host is. */
export function ownTarget() {
  const libc = process.report.getReport().header.glibcVersionRuntime === undefined ? 'musl' : 'gnu';
  return targetNamed(`linux-${process.arch}-${libc}`);
}
