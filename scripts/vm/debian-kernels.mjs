// Debian's kernels for virtual machines: looked up in the archive, fetched, checked, and kept outside the repository.
import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { homedir } from 'node:os';
import { basename, join } from 'node:path';

/** Where Debian has a kernel of each series; the later suites win where several have the same version. */
export const SERIES = {
  '5.10': ['bullseye', 'bullseye-security'],
  6.1: ['bookworm', 'bookworm-security'],
  6.12: ['trixie', 'trixie-security'],
  6.17: ['trixie-backports'],
  7.2: ['sid', 'trixie-backports'],
};

const CACHE = join(process.env.XDG_CACHE_HOME || join(homedir(), '.cache'), 'sandbox-run/kernels');
const FALLBACK = 'http://deb.debian.org/debian';
const KEYRING = '/usr/share/keyrings/debian-archive-keyring.gpg';
const APT_HELPER = '/usr/lib/apt/apt-helper';

/** What is kept of the packages of a kernel: the image, and the modules that list sockets. */
const IMAGE = /\/vmlinuz[^/]*$/;
const MODULE = /\/lib\/modules\/([^/]+)\/.*\/((?:inet_diag|tcp_diag)\.ko)(\.xz)?$/;

/** Landlock's ABI by the kernel that brought it; what is newer than the last row is not known here. */
const ABIS = [
  [5, 13, 1],
  [5, 19, 2],
  [6, 2, 3],
  [6, 7, 4],
  [6, 10, 5],
  [6, 12, 6],
  [6, 15, 7],
  [7, 0, 8],
  [7, 1, 9],
  [7, 2, 10],
  [7, 3, 11],
];

/** The ABI that a kernel must have, by its version; 0 before Landlock. */
export function expectedAbi(version) {
  const [major, minor] = version.split('.').map(Number);
  return ABIS.filter(([a, b]) => major > a || (major === a && minor >= b)).at(-1)?.[2] ?? 0;
}

/**
 * A kernel of a series: {series, version, image, modules, note}. `modules` is a directory with one for each release, as
 * /lib/modules has them; `note` says what is not as it was asked for.
 */
export async function kernelOf(series, say) {
  const suites = SERIES[series];
  if (suites === undefined)
    throw new Error(`no kernel ${series} is known here; there are ${Object.keys(SERIES).join(', ')}`);
  mkdirSync(CACHE, { recursive: true });
  let found;
  try {
    const packages = suites.flatMap((suite) => kernelPackages(suite, say));
    found = newest(packages.filter(({ version }) => version.startsWith(`${series}.`)));
    // A rolling suite drops a series when the next is there: better a newer kernel, and a word, than none.
    const instead = found.length === 0 ? newest(packages.filter((each) => each.suite === suites[0])) : found;
    if (instead.length === 0) throw new Error(`${suites.join(', ')}: no kernel for clouds`);
    const { version } = instead[0];
    const note = found.length === 0 ? `Debian has ${series} no more; ${version} is taken instead` : undefined;
    return { series, version, ...fetched(instead, say), note };
  } catch (error) {
    const kept = cached(series);
    if (kept === undefined) throw error;
    return { ...kept, series, note: `not looked up (${error.message}); taken from the cache` };
  }
}

/** The newest version's packages, those first that are most likely to hold what is wanted. */
function newest(packages) {
  const version = packages
    .map((each) => each.debian)
    .sort(compareVersions)
    .at(-1);
  const kinds = ['linux-binary-', 'linux-image-', 'linux-modules-'];
  const rank = ({ name }) => kinds.findIndex((start) => name.startsWith(start));
  return packages
    .filter((each) => each.debian === version)
    .sort((a, b) => a.name.includes('unsigned') - b.name.includes('unsigned') || rank(a) - rank(b));
}

function compareVersions(a, b) {
  if (a === b) return 0;
  return spawnSync('dpkg', ['--compare-versions', a, 'lt', b]).status === 0 ? -1 : 1;
}

/** The kernels for clouds of one suite, after its Release file's signature and the index's sum were checked. */
function kernelPackages(suite, say) {
  const security = suite.endsWith('-security');
  const mirror = mirrorOf(security);
  const release = join(CACHE, `${suite}.InRelease`);
  download(`${mirror}/dists/${suite}/InRelease`, release);
  checkSignature(release, say);
  const path = 'main/binary-amd64/Packages.xz';
  const sums = readFileSync(release, 'utf8').split(/^SHA256:$/m)[1] ?? '';
  // The archive of security updates calls its component "updates/main" in some suites.
  const sum = /^ ([0-9a-f]{64}) +\d+ (?:updates\/)?main\/binary-amd64\/Packages\.xz$/m.exec(sums)?.[1];
  if (sum === undefined) throw new Error(`${suite}: the Release file does not name ${path}`);
  const index = join(CACHE, `${suite}.Packages.xz`);
  if (!existsSync(index) || sha256(index) !== sum) {
    say(`the packages of ${suite}`);
    download(`${mirror}/dists/${suite}/${path}`, index, sum);
  }
  const text = run('xz', ['-dc', index]).toString();
  return text.split('\n\n').flatMap((paragraph) => {
    const field = (name) => new RegExp(`^${name}: (.*)$`, 'm').exec(paragraph)?.[1] ?? '';
    const name = /^linux-(?:image|binary|binary-unsigned|modules)-(\d[\d.]*).*-cloud-amd64$/.exec(
      field('Package'),
    );
    const debian = field('Version');
    if (name === null) return [];
    // "5.10.0-46" is 5.10.259, as the version of the package says.
    const version = debian.replace(/[-~+].*$/, '');
    const url = `${mirror}/${field('Filename')}`;
    return [{ suite, name: name[0], version, debian, url, sum: field('SHA256') }];
  });
}

/** Image and modules out of the first of these packages that hold them, in a directory of the cache that is there whole. */
function fetched(packages, say) {
  const [{ version, sum }] = packages;
  const kept = join(CACHE, `linux-${version}-${sum.slice(0, 16)}`);
  if (existsSync(kept)) return keptIn(kept);
  const place = mkdtempSync(join(CACHE, '.new-'));
  try {
    const { image, modules } = keptIn(join(place, 'kernel'));
    mkdirSync(modules, { recursive: true });
    for (const each of packages) {
      if (existsSync(image) && readdirSync(modules).length > 0) break;
      say(basename(each.url));
      const file = join(place, 'package.deb');
      download(each.url, file, each.sum);
      unpackKernel(file, image, modules);
    }
    if (!existsSync(image))
      throw new Error(`${packages.map(({ name }) => name).join(', ')}: no vmlinuz in it`);
    renameSync(join(place, 'kernel'), kept);
  } finally {
    rmSync(place, { recursive: true, force: true });
  }
  return keptIn(kept);
}

const keptIn = (place) => ({ image: join(place, 'vmlinuz'), modules: join(place, 'modules') });

/** Writes those of the wanted files that a package holds. */
function unpackKernel(file, image, modules) {
  const paths = run('bash', ['-c', 'dpkg-deb --fsys-tarfile "$1" | tar -t', '-', file])
    .toString()
    .split('\n');
  const content = (path) =>
    run('bash', ['-c', 'dpkg-deb --fsys-tarfile "$1" | tar -xO "$2"', '-', file, path]);
  const imagePath = paths.find((path) => IMAGE.test(path));
  if (imagePath !== undefined && !existsSync(image)) writeFileSync(image, content(imagePath));
  for (const path of paths) {
    const [, release, name, isPacked] = MODULE.exec(path) ?? [];
    if (release === undefined) continue;
    mkdirSync(join(modules, release), { recursive: true });
    const packed = content(path);
    writeFileSync(join(modules, release, name), isPacked ? run('xz', ['-dc'], packed) : packed);
  }
}

function cached(series) {
  const kernels = readdirSync(CACHE).flatMap((name) => {
    const version = /^linux-([\d.]+)-[0-9a-f]{16}$/.exec(name)?.[1];
    return version?.startsWith(`${series}.`) ? [{ version, ...keptIn(join(CACHE, name)) }] : [];
  });
  return kernels.sort((a, b) => compareVersions(a.version, b.version)).at(-1);
}

/** The mirror that this machine's apt is set up with, where that is one of Debian. */
function mirrorOf(security) {
  const wanted = security ? 'Debian-Security' : 'Debian';
  const asked = spawnSync('apt-get', ['indextargets', '--format', '$(LABEL) $(SITE)'], { encoding: 'utf8' });
  const lines = (asked.stdout ?? '').split('\n').map((line) => line.split(' '));
  const site = lines.find(([label]) => label === wanted)?.[1];
  return site ?? (security ? `${FALLBACK}-security` : FALLBACK);
}

function checkSignature(release, say) {
  if (!existsSync(KEYRING) || spawnSync('gpgv', ['--version']).status !== 0) {
    say(`the signature of ${basename(release)} is not checked: no gpgv, or no keyring of Debian`);
    return;
  }
  const checked = spawnSync('gpgv', ['--keyring', KEYRING, release], { encoding: 'utf8' });
  if (checked.status === 0) return;
  rmSync(release, { force: true });
  throw new Error(`${basename(release)}: its signature is not good: ${checked.stderr.trim()}`);
}

/** By apt's own means, which know this machine's proxies; the file is there whole and with this sum, or not at all. */
function download(url, target, sum) {
  const place = mkdtempSync(join(CACHE, '.new-'));
  try {
    const file = join(place, 'file');
    run(APT_HELPER, ['download-file', url, file, ...(sum === undefined ? [] : [`SHA256:${sum}`])]);
    if (sum !== undefined && sha256(file) !== sum) throw new Error(`${url}: not the sum that was announced`);
    renameSync(file, target);
  } finally {
    rmSync(place, { recursive: true, force: true });
  }
}

const sha256 = (path) => createHash('sha256').update(readFileSync(path)).digest('hex');

function run(program, args, input) {
  const done = spawnSync(program, args, { input, maxBuffer: 2 ** 30, timeout: 300_000 });
  if (done.error !== undefined) throw new Error(`${program}: ${done.error.message}`);
  if (done.status !== 0)
    throw new Error(`${program} ${args.slice(0, 2).join(' ')}: ${done.stderr.toString().trim().slice(-300)}`);
  return done.stdout;
}
