// A base image without a registry: Debian from the mirror that this host's apt uses, with this host's Node.
import { spawn } from 'node:child_process';
import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  realpathSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, dirname, join } from 'node:path';
import { run, StepError } from './docker.mjs';
import { removeTree } from './remove-tree.mjs';

const IMAGE = 'sandbox-run-test-base';
const CERTIFICATES = 'etc/ssl/certs/ca-certificates.crt';
/** Settings of apt that say how a mirror is reached. */
const ABOUT_MIRRORS = /^Acquire::(https?::|Check-|ForceIPv)/;

/** Makes and imports it, unless it is there from an earlier run with --keep. */
export async function makeDebianImage(docker, mirror, signal) {
  const sources = await aptSources(mirror);
  const { suite, uri } = sources[0];
  const image = `${IMAGE}:${suite}-node${process.versions.node}`;
  const how = `debootstrap ${suite}, Node ${process.versions.node} of this host`;
  const made = { image, how, made: true };
  if ((await docker(['image', 'inspect', image], { fails: true })).status === 0) return made;
  if (process.getuid() !== 0) throw new StepError('debootstrap needs root');
  console.log(`docker-test: debootstrap ${suite}`);
  const place = mkdtempSync(join(tmpdir(), 'sandbox-run-base-'));
  try {
    const root = join(place, 'root');
    await run('debootstrap', ['--variant=minbase', '--include=ca-certificates', suite, root, uri], {
      signal,
    });
    await addHostSettings(root, sources);
    addNode(root);
    const tar = spawn('tar', ['-C', root, '--one-file-system', '-c', '.'], {
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    const tarEnded = new Promise((done) => tar.once('close', done));
    await docker(['import', '-', image], { input: tar.stdout });
    if ((await tarEnded) !== 0) throw new StepError('tar could not read the new base');
  } finally {
    // A debootstrap that was interrupted leaves its mounts.
    removeTree(place);
  }
  return made;
}

/** The Debian archives of the host's own apt, the release itself first. */
async function aptSources(mirror) {
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

/** How this host reaches its mirrors and whom it trusts; no credentials, for images are easily passed on. */
async function addHostSettings(root, sources) {
  const lines = sources.map(({ uri, suite, component }) => `deb ${uri} ${suite} ${component}\n`);
  writeFileSync(join(root, 'etc/apt/sources.list'), lines.join(''));
  const settings = (await run('apt-config', ['dump'], { fails: true })).stdout.split('\n');
  const wanted = settings.filter((line) => ABOUT_MIRRORS.test(line) && !line.includes('@'));
  writeFileSync(join(root, 'etc/apt/apt.conf.d/99host'), `${wanted.join('\n')}\n`);
  if (existsSync(`/${CERTIFICATES}`)) cpSync(`/${CERTIFICATES}`, join(root, CERTIFICATES));
  const npmrc = [`cafile=/${CERTIFICATES}`];
  const registry = (await run('npm', ['config', 'get', 'registry'], { fails: true, cwd: '/' })).stdout.trim();
  if (URL.canParse(registry) && new URL(registry).username === '') npmrc.push(`registry=${registry}`);
  mkdirSync(join(root, 'usr/local/etc'), { recursive: true });
  writeFileSync(join(root, 'usr/local/etc/npmrc'), `${npmrc.join('\n')}\n`);
}

/** node, npm and npx, as the official images have them. */
function addNode(root) {
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
