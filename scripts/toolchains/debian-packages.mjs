// Packages of another Debian suite or architecture, unpacked beneath a directory: nothing is installed, and the host's
// own package lists stay as they are.
import { mkdirSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { mustRun } from '../must-run.mjs';

const KEYS = '/usr/share/keyrings/debian-archive-keyring.gpg';
const NOT_NEEDED = ['doc', 'man', 'locale', 'info', 'lintian'].map(
  (name) => `--exclude=./usr/share/${name}/*`,
);

/**
 * @param {object} wanted
 * @param {string} wanted.suite of Debian, such as `bullseye`
 * @param {string} wanted.architecture as Debian calls it
 * @param {readonly string[]} wanted.packages
 * @param {boolean} [wanted.dependencies] also everything that they depend on
 * @param {string} wanted.into
 */
export function unpackDebianPackages({ suite, architecture, packages, dependencies = false, into }) {
  const state = `${into}.apt`;
  rmSync(state, { recursive: true, force: true });
  for (const name of ['lists/partial', 'cache/archives/partial'])
    mkdirSync(join(state, name), { recursive: true });
  const mirror = process.env.SANDBOX_RUN_DEBIAN_MIRROR ?? 'http://deb.debian.org/debian';
  writeFileSync(join(state, 'sources.list'), `deb [signed-by=${KEYS}] ${mirror} ${suite} main\n`);
  writeFileSync(
    join(state, 'apt.conf'),
    `Dir::State::Lists "${state}/lists";
Dir::State::Status "/dev/null";
Dir::Cache "${state}/cache";
Dir::Etc::SourceList "${state}/sources.list";
Dir::Etc::SourceParts "/dev/null";
APT::Architecture "${architecture}";
APT::Architectures "${architecture}";
APT::Sandbox::User "root";
Debug::NoLocking "true";
Acquire::Languages "none";
`,
  );
  const env = { ...process.env, APT_CONFIG: join(state, 'apt.conf') };
  const archives = join(state, 'cache/archives');
  mustRun('apt-get', ['update', '-q'], { env });
  if (dependencies) {
    mustRun('apt-get', ['install', '-y', '-q', '--download-only', '--no-install-recommends', ...packages], {
      env,
    });
  } else {
    mustRun('apt-get', ['download', '-q', ...packages], { env, cwd: archives });
  }
  mkdirSync(into, { recursive: true });
  for (const file of readdirSync(archives).filter((name) => name.endsWith('.deb'))) {
    mustRun('sh', [
      '-ec',
      'deb=$1 into=$2; shift 2; dpkg-deb --fsys-tarfile "$deb" | tar x --no-same-owner --keep-directory-symlink -C "$into" "$@"',
      'sh',
      join(archives, file),
      into,
      ...NOT_NEEDED,
    ]);
  }
  rmSync(state, { recursive: true, force: true });
}
