// Makes the packages that are published: one with the addon for each kind of host, and the main one, which names them
// as optional dependencies of exactly its own version. Nothing is downloaded at installation, and no script runs then.
//   node scripts/pack.mjs DIRECTORY [--target linux-x64-gnu]... [--local]
// --local takes the addon as it lies in build/Release, for the host's own target; without it the addons are built to load on
// old hosts too (scripts/toolchains/), and the targets are all of them unless some are named.
import {
  chmodSync,
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { elfFacts } from './elf-facts.mjs';
import { mustRun } from './must-run.mjs';
import { NATIVE_ARTIFACTS, ownTarget, SQLITE, sqliteFor, TARGETS, targetNamed } from './native-artifacts.mjs';
import { buildPortable } from './toolchains/portable-build.mjs';
import { missingFor } from './toolchains/runtime.mjs';

/** The newest C library that an addon may ask for. */
const NEWEST_GLIBC = [2, 31];
const SQLITE_LICENCE = 'LICENSE.sqlite';

const { values, positionals } = parseArgs({
  options: {
    target: { type: 'string', multiple: true },
    local: { type: 'boolean', default: false },
    refuse: { type: 'boolean', default: false },
  },
  allowPositionals: true,
});
// What `npm pack` and `npm publish` of the checkout itself come to.
if (values.refuse) {
  console.error(
    'pack: this would lack the native part; npm run pack:here makes packages that run on this host, npm run pack:all those for all hosts',
  );
  process.exit(1);
}
if (positionals[0] === undefined) {
  console.error('pack: the directory for the packages is missing');
  process.exit(2);
}
const root = fileURLToPath(new URL('..', import.meta.url));
const output = resolve(positionals[0]);
const manifest = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));
const place = mkdtempSync(join(tmpdir(), 'sandbox-run-pack-'));
process.on('exit', () => rmSync(place, { recursive: true, force: true }));

try {
  const targets = values.target?.map(targetNamed) ?? (values.local ? [ownTarget()] : TARGETS);
  checkReady(targets);
  mkdirSync(output, { recursive: true });
  const rows = targets.map(packTarget);
  const main = packMain(targets);
  console.table(Object.fromEntries(rows.map(({ target, ...row }) => [target, row])));
  console.log(
    `pack: ${main} and ${rows.length} platform packages of version ${manifest.version} in ${output}`,
  );
} catch (error) {
  console.error(`pack: ${error.message}`);
  process.exitCode = 1;
}

/** Throws, with what is to be done, if something is missing that the packages are made of or with. */
function checkReady(targets) {
  const made = [
    'dist/cli.cjs',
    ...(values.local ? NATIVE_ARTIFACTS : []).map(({ file }) => `build/Release/${file}`),
  ];
  const unmade = made.find((file) => !existsSync(join(root, file)));
  if (unmade !== undefined) throw new Error(`${unmade} is missing: npm run build`);
  if (values.local) return;
  const missing = targets.flatMap(missingFor);
  if (missing.length === 0) return;
  const list = (key) => [...new Set(missing.map((each) => each[key]))];
  throw new Error(
    `missing: ${list('what').join(', ')}; on Debian 12: apt-get install ${list('packaged').join(' ')}; packages for this host alone need none of it: npm run pack:here`,
  );
}

function packTarget(target) {
  const built = values.local ? join(root, 'build/Release') : buildPortable(target, join(place, target.id));
  const staged = join(place, `package-${target.id}`);
  mkdirSync(staged);
  const facts = NATIVE_ARTIFACTS.map((artifact) => {
    const file = join(staged, artifact.file);
    cpSync(join(built, artifact.file), file);
    chmodSync(file, 0o755);
    return check(target, artifact, file);
  });
  addSqlite(target, staged);
  const { name, description, keywords, os, ...rest } = manifest;
  const { version, license, engines } = rest;
  writeManifest(staged, {
    name: target.package,
    version,
    description: `The native part of ${name} for ${target.id}`,
    license,
    engines,
    os,
    cpu: [target.architecture],
    libc: [target.libc === 'gnu' ? 'glibc' : 'musl'],
    files: [...NATIVE_ARTIFACTS.map(({ file }) => file), SQLITE.file, SQLITE_LICENCE],
  });
  cpSync(join(root, 'LICENSE'), join(staged, 'LICENSE'));
  writeFileSync(
    join(staged, 'README.md'),
    `The native part of ${name} for ${target.id}; ${name} installs it.\n`,
  );
  const packed = pack(staged, [
    'LICENSE',
    'README.md',
    'package.json',
    ...NATIVE_ARTIFACTS.map((a) => a.file),
    SQLITE.file,
    SQLITE_LICENCE,
  ]);
  const addon = facts[0];
  return {
    target: target.id,
    addon: statSync(join(staged, NATIVE_ARTIFACTS[0].file)).size,
    tarball: packed.size,
    libraries: addon.needed.join(' '),
    'newest glibc': addon.glibc.join('.') || '-',
  };
}

/** Throws unless a file is for the target's processor and needs nothing that the target's hosts may lack. */
function check(target, artifact, file) {
  const facts = elfFacts(file);
  const refuse = (why) => {
    throw new Error(`${artifact.file} for ${target.id} ${why}`);
  };
  if (facts.machine !== target.machine) refuse(`is for ${facts.machine}`);
  if (artifact.isProgram && (facts.needed.length > 0 || facts.interpreter)) refuse('is not static');
  if (!artifact.isProgram && !facts.needed.some((library) => library.startsWith('libc.')))
    refuse('holds a C library');
  const foreign = facts.needed.filter((library) => !target.allowedLibraries.test(library));
  if (foreign.length > 0) refuse(`needs ${foreign.join(' ')}`);
  // As it is, from build/Release: for this host.
  if (isTooNew(facts) && !values.local) refuse(`needs glibc ${facts.glibc.join('.')}`);
  return facts;
}

function isTooNew({ glibc: [major = 0, minor = 0] }) {
  return major > NEWEST_GLIBC[0] || (major === NEWEST_GLIBC[0] && minor > NEWEST_GLIBC[1]);
}

/** Its libraries are those of Node itself, the C++ runtime among them. */
function addSqlite(target, staged) {
  const from = join(root, 'node_modules', SQLITE.package);
  const file = join(staged, SQLITE.file);
  cpSync(join(from, sqliteFor(target)), file);
  cpSync(join(from, 'LICENSE'), join(staged, SQLITE_LICENCE));
  const facts = elfFacts(file);
  if (facts.machine !== target.machine || isTooNew(facts))
    throw new Error(`${SQLITE.package} has nothing that loads on ${target.id}`);
}

function packMain(targets) {
  const staged = join(place, 'package-main');
  mkdirSync(staged);
  // What is left out of those (`!`), npm leaves out.
  for (const name of [...manifest.files.filter((each) => !each.startsWith('!')), 'LICENSE', 'README.md']) {
    cpSync(join(root, name), join(staged, name), { recursive: true });
  }
  const { devDependencies, overrides, allowScripts, scripts, binary, ...published } = manifest;
  writeManifest(staged, {
    ...published,
    // For hosts that no package is made for; nothing runs at installation.
    scripts: { 'build:native': scripts['build:native'] },
    binary,
    optionalDependencies: Object.fromEntries(targets.map((target) => [target.package, manifest.version])),
  });
  return pack(staged, [
    'dist/cli.cjs',
    'dist/index.js',
    'dist/openai.js',
    'dist/ai.js',
    'dist/fleet.js',
    'dist/confine.js',
    'dist/grammars/git.options.json',
    'dist/types/index.d.ts',
    'CMakeLists.txt',
    'LICENSE',
  ]).filename;
}

function writeManifest(directory, content) {
  writeFileSync(join(directory, 'package.json'), `${JSON.stringify(content, null, 2)}\n`);
}

/** Packs a staged package and throws if something that has to be in it is not, or something that must not be is. */
function pack(directory, expected) {
  const said = mustRun('npm', ['pack', '--json', '--ignore-scripts', '--pack-destination', output], {
    cwd: directory,
    stdio: ['ignore', 'pipe', 'ignore'],
  });
  const [packed] = JSON.parse(said);
  const paths = packed.files.map(({ path }) => path);
  const missing = expected.filter((path) => !paths.includes(path));
  if (missing.length > 0) throw new Error(`${packed.filename} lacks ${missing.join(' ')}`);
  // Compiled code is for one version of Node.
  const unwanted = paths.filter((path) => /^(test|node_modules|build|bench|\.)|\.code$/.test(path));
  if (unwanted.length > 0) throw new Error(`${packed.filename} holds ${unwanted.join(' ')}`);
  return packed;
}
