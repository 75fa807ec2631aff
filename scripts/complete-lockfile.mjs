// Adds the optional platform packages that package-lock.json lacks.
//   node scripts/complete-lockfile.mjs
// npm leaves an optional dependency out of the lock file if the registry in use does not mirror it, and `npm ci` then
// refuses the lock file. The entries say what npm needs to skip them: version, operating system, processor, libc.
// Run it after `npm install` where that happened; on a complete registry it changes nothing.
import { readFileSync, writeFileSync } from 'node:fs';

const FILE = 'package-lock.json';
const lock = JSON.parse(readFileSync(FILE, 'utf8'));
const SYSTEMS = [
  'android',
  'darwin',
  'freebsd',
  'linux',
  'netbsd',
  'openbsd',
  'openharmony',
  'sunos',
  'aix',
  'win32',
];
const PROCESSORS = [
  'arm64',
  'arm',
  'x64',
  'ia32',
  'loong64',
  'mips64el',
  'ppc64',
  'riscv64',
  's390x',
  'wasm32',
];
let added = 0;

for (const [path, entry] of Object.entries(lock.packages)) {
  for (const [name, version] of Object.entries(entry.optionalDependencies ?? {})) {
    const nested = `${path}/node_modules/${name}`;
    if (
      path === '' ||
      lock.packages[`node_modules/${name}`] !== undefined ||
      lock.packages[nested] !== undefined
    )
      continue;
    const parts = name.split(/[/-]/);
    const os = SYSTEMS.filter((system) => parts.includes(system));
    const cpu = PROCESSORS.filter((processor) => parts.includes(processor));
    if (os.length === 0 && cpu.length === 0) continue;
    const musl = parts.some((part) => part.startsWith('musl'));
    const glibc = parts.some((part) => part.startsWith('gnu'));
    lock.packages[`node_modules/${name}`] = {
      version,
      ...(cpu.length > 0 ? { cpu } : {}),
      ...(entry.dev ? { dev: true } : {}),
      ...(os.includes('linux') && musl ? { libc: ['musl'] } : {}),
      ...(os.includes('linux') && glibc ? { libc: ['glibc'] } : {}),
      optional: true,
      ...(os.length > 0 ? { os } : {}),
    };
    added += 1;
  }
}
if (added > 0) {
  lock.packages = Object.fromEntries(
    Object.entries(lock.packages).sort(([a], [b]) => (a < b ? -1 : a > b ? 1 : 0)),
  );
  writeFileSync(FILE, `${JSON.stringify(lock, null, 2)}\n`);
}
console.log(`${added} entries added`);
