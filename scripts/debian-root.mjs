// A Debian in a directory, by debootstrap from the mirror that this host's apt uses, which reaches and trusts what this host does.
import {
  cpSync,
  existsSync,
  mkdirSync,
  readFileSync,
  realpathSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { delimiter, dirname, join } from 'node:path';
import { run, StepError } from './step.mjs';

const CERTIFICATES = 'etc/ssl/certs/ca-certificates.crt';
/** Settings of apt that say how a mirror is reached. */
const ABOUT_MIRRORS = /^Acquire::(https?::|Check-|ForceIPv)/;
/** What is mounted and started goes with the process, however that ends. */
export const ALONE = [
  'setpriv',
  '--pdeathsig',
  'KILL',
  'unshare',
  '--mount',
  '--pid',
  '--fork',
  '--kill-child',
];

/** The least that Debian calls a system, and how this host reaches its mirrors; no credentials, for images are easily passed on. */
export async function makeDebianRoot(root, sources, { include = [], signal } = {}) {
  const [{ suite, uri }] = sources;
  const included = include.length > 0 ? [`--include=${include.join(',')}`] : [];
  const [program, ...before] = ALONE;
  await run(program, [...before, 'debootstrap', '--variant=minbase', ...included, suite, root, uri], {
    signal,
    tree: true,
  });
  const lines = sources.map((source) => `deb ${source.uri} ${source.suite} ${source.component}\n`);
  writeFileSync(join(root, 'etc/apt/sources.list'), lines.join(''));
  const settings = (await run('apt-config', ['dump'], { fails: true })).stdout.split('\n');
  const wanted = settings.filter((line) => ABOUT_MIRRORS.test(line) && !line.includes('@'));
  writeFileSync(join(root, 'etc/apt/apt.conf.d/99host'), `${wanted.join('\n')}\n`);
}

/** The certificates that this host trusts. A package that brings some of its own is installed first. */
export function trustAsHost(root) {
  if (!existsSync(`/${CERTIFICATES}`)) return;
  mkdirSync(dirname(join(root, CERTIFICATES)), { recursive: true });
  cpSync(`/${CERTIFICATES}`, join(root, CERTIFICATES));
}

/** How npm reaches the registry that this host uses. */
export async function npmSettings() {
  const registry = (await run('npm', ['config', 'get', 'registry'], { fails: true, cwd: '/' })).stdout.trim();
  const isPublic = URL.canParse(registry) && new URL(registry).username === '';
  return { cafile: `/${CERTIFICATES}`, ...(isPublic ? { registry } : {}) };
}

/** The Debian archives of the host's own apt, the release itself first. */
export async function aptSources(mirror) {
  if (mirror !== undefined) {
    const [uri, suite] = mirror.split(',');
    if (uri === '' || suite === undefined) throw new StepError('--mirror is URL,SUITE');
    return [{ uri, suite, component: 'main' }];
  }
  const format = '$(ORIGIN) $(REPO_URI) $(RELEASE) $(COMPONENT)';
  const listed = await run('apt-get', ['indextargets', '--format', format, 'Created-By: Packages'], {
    fails: true,
  });
  const debian = listed.stdout
    .split('\n')
    .map((line) => line.split(' '))
    .filter(([origin, , , component]) => origin === 'Debian' && component === 'main')
    .map(([, uri, suite, component]) => ({ uri, suite, component }));
  const release = debian.find(({ suite }) => !suite.includes('-'));
  if (release === undefined)
    throw new StepError('apt of this host knows no Debian archive; name one: --mirror URL,SUITE');
  return [release, ...debian.filter((source) => source !== release)];
}

/** The same archives for another release. */
export function sourcesFor(suite, sources) {
  const [release] = sources;
  return sources.map((source) => ({ ...source, suite: source.suite.replace(release.suite, suite) }));
}

/** node, npm and npx, as the official images have them. */
export function addNode(root) {
  const npm = npmDirectory();
  cpSync(process.execPath, join(root, 'usr/local/bin/node'));
  cpSync(npm, join(root, 'usr/local/lib/node_modules/npm'), { recursive: true, dereference: true });
  for (const name of ['npm', 'npx'])
    symlinkSync(`../lib/node_modules/npm/bin/${name}-cli.js`, join(root, 'usr/local/bin', name));
}

function npmDirectory() {
  for (const directory of (process.env.PATH ?? '').split(delimiter)) {
    const script = join(directory, 'npm');
    if (!existsSync(script)) continue;
    for (let at = dirname(realpathSync(script)); at !== '/'; at = dirname(at)) {
      const manifest = join(at, 'package.json');
      if (existsSync(manifest) && JSON.parse(readFileSync(manifest, 'utf8')).name === 'npm') return at;
    }
  }
  throw new StepError('npm of this host is not to be found, so the base would have none');
}
