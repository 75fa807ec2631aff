// Runs the tests that depend on who runs them a second time, as an ordinary user.
//   node scripts/test-as-user.mjs [--user NAME] [FILE OR DIRECTORY ...] [-- OPTION OF VITEST ...]
// NAME: `nobody`; Debian's Firejail refuses that one, so test/backends wants another, made with useradd.
// Started as root, it takes that user and a copy of the checkout that everybody can read. Started by
// anybody else there is nothing left to do: the first run was such a run.
import { spawnSync } from 'node:child_process';
import { chmodSync, chownSync, cpSync, mkdirSync, mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';

// test/real-work changes to an ordinary user by itself.
const DEFAULT_TESTS = [
  'test/enforcement',
  'test/left-behind',
  'test/changes',
  'test/library',
  'test/hosts',
  'test/conformance',
  'test/application',
];
const NOT_COPIED = new Set(['.git', 'build-tests', 'build-tests-san', 'coverage']);

const { values, positionals } = parseArgs({
  options: { user: { type: 'string', default: 'nobody' } },
  allowPositionals: true,
});
const name = values.user;

if (process.getuid?.() !== 0) {
  console.log('test-as-user: this already is an ordinary user, the tests have run as one');
  process.exit(0);
}

const root = fileURLToPath(new URL('..', import.meta.url));
const user = idsOf(name);
if (!(user.uid > 0)) {
  console.error(`test-as-user: ${name} is no ordinary user of this machine`);
  process.exit(1);
}
const place = mkdtempSync(join(tmpdir(), 'sandbox-run-test-'));
const stop = () => rmSync(place, { recursive: true, force: true });
process.on('exit', stop);
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.on(signal, () => process.exit(130));

chmodSync(place, 0o755);
const copy = join(place, 'checkout');
const home = join(place, 'home');
mkdirSync(copy);
mkdirSync(home);
chownSync(home, user.uid, user.gid);
for (const entry of readdirSync(root)) {
  if (!NOT_COPIED.has(entry))
    cpSync(join(root, entry), join(copy, entry), { recursive: true, verbatimSymlinks: true });
}
// A umask of the caller or of npm may have left files that only root can read.
spawnSync('chmod', ['-R', 'go+rX', copy]);
// vitest keeps its caches there.
for (const cache of ['node_modules/.vite', 'node_modules/.vite-temp']) {
  mkdirSync(join(copy, cache), { recursive: true });
  spawnSync('chown', ['-R', `${user.uid}:${user.gid}`, join(copy, cache)]);
}

const isOption = (word) => word.startsWith('-');
const named = positionals.filter((word) => !isOption(word));
const tests = named.length > 0 ? named : DEFAULT_TESTS;
const vitest = join(copy, 'node_modules/vitest/vitest.mjs');
const result = spawnSync(process.execPath, [vitest, 'run', ...tests, ...positionals.filter(isOption)], {
  cwd: copy,
  stdio: 'inherit',
  uid: user.uid,
  gid: user.gid,
  env: {
    ...process.env,
    HOME: home,
    USER: name,
    LOGNAME: name,
    npm_config_cache: join(home, '.npm'),
    // npm names the settings of whoever runs it, which nobody else can read.
    npm_config_userconfig: join(home, '.npmrc'),
  },
});
process.exitCode = result.status ?? 1;

function idsOf(who) {
  const id = (flag) => Number(spawnSync('id', [flag, who], { encoding: 'utf8' }).stdout);
  return { uid: id('-u'), gid: id('-g') };
}
