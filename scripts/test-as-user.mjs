// Runs tests as an ordinary user, in a copy of the checkout that everybody can read.
//   node scripts/test-as-user.mjs [--user NAME] [FILE OR DIRECTORY ...] [-- OPTION OF VITEST ...]
// NAME: `nobody`; Debian's Firejail refuses that one, so test/backends wants another, made with useradd. Without files, those
// that depend on who runs them. Started by an ordinary user it does nothing: the first run was such a run.
import { spawnSync } from 'node:child_process';
import { chmodSync, chownSync, cpSync, mkdirSync, mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { AS_BOTH, AS_USER } from './test-projects.mjs';

const NOT_COPIED = new Set(['.git', 'build-tests-san', 'coverage']);
const root = fileURLToPath(new URL('..', import.meta.url));

/** A copy of the checkout and a home for an ordinary user, which vanish with this process. */
export function makeUsersCopy(name = 'nobody') {
  const user = idsOf(name);
  if (!(user.uid > 0)) throw new Error(`${name} is not an ordinary user of this machine`);
  const place = mkdtempSync(join(tmpdir(), 'sandbox-run-test-'));
  const remove = () => rmSync(place, { recursive: true, force: true });
  process.on('exit', remove);
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.on(signal, () => process.exit(130));

  chmodSync(place, 0o755);
  const [copy, home] = [join(place, 'checkout'), join(place, 'home')];
  mkdirSync(copy);
  mkdirSync(home);
  chownSync(home, user.uid, user.gid);
  for (const entry of readdirSync(root)) {
    if (!NOT_COPIED.has(entry))
      cpSync(join(root, entry), join(copy, entry), { recursive: true, verbatimSymlinks: true });
  }
  // A umask of the caller or of npm may have left files that only root can read.
  spawnSync('chmod', ['-R', 'go+rX', copy]);
  // What a run of vitest writes there.
  for (const cache of ['.vite', '.vite-temp', '.sandbox-run-sources']) {
    const directory = join(copy, 'node_modules', cache);
    mkdirSync(directory, { recursive: true });
    spawnSync('chown', ['-R', `${user.uid}:${user.gid}`, directory]);
  }
  const env = {
    HOME: home,
    USER: name,
    LOGNAME: name,
    npm_config_cache: join(home, '.npm'),
    // npm names the settings of its caller, which nobody else can read.
    npm_config_userconfig: join(home, '.npmrc'),
  };
  return { directory: copy, home, remove, spawn: { cwd: copy, uid: user.uid, gid: user.gid, env } };
}

function idsOf(who) {
  const id = (flag) => Number(spawnSync('id', [flag, who], { encoding: 'utf8' }).stdout);
  return { uid: id('-u'), gid: id('-g') };
}

function main() {
  const { values, positionals } = parseArgs({
    options: { user: { type: 'string', default: 'nobody' } },
    allowPositionals: true,
  });
  if (process.getuid?.() !== 0) {
    console.log('test-as-user: this already is an ordinary user, the tests have run as one');
    return 0;
  }
  const isOption = (word) => word.startsWith('-');
  const named = positionals.filter((word) => !isOption(word));
  try {
    const copy = makeUsersCopy(values.user);
    const vitest = join(copy.directory, 'node_modules/vitest/vitest.mjs');
    const words = [
      vitest,
      'run',
      ...(named.length > 0 ? named : [...AS_BOTH, ...AS_USER]),
      ...positionals.filter(isOption),
    ];
    const { env, ...how } = copy.spawn;
    const ran = spawnSync(process.execPath, words, {
      ...how,
      env: { ...process.env, ...env },
      stdio: 'inherit',
    });
    return ran.status ?? 1;
  } catch (error) {
    console.error(`test-as-user: ${error.message}`);
    return 1;
  }
}

if (process.argv[1] === fileURLToPath(import.meta.url)) process.exitCode = main();
