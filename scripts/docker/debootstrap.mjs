// A base image without a registry: Debian from the mirror that this host's apt uses, with this host's Node.
import { spawn } from 'node:child_process';
import { mkdirSync, mkdtempSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { addNode, aptSources, makeDebianRoot, npmSettings, trustAsHost } from '../debian-root.mjs';
import { StepError } from '../step.mjs';
import { removeTree } from './remove-tree.mjs';

const IMAGE = 'sandbox-run-test-base';

/** Makes and imports it, unless it is there from an earlier run with --keep. */
export async function makeDebianImage(docker, mirror, signal) {
  const sources = await aptSources(mirror);
  const { suite } = sources[0];
  const image = `${IMAGE}:${suite}-node${process.versions.node}`;
  const how = `debootstrap ${suite}, Node ${process.versions.node} of this host`;
  const made = { image, how, made: true };
  if ((await docker(['image', 'inspect', image], { fails: true })).status === 0) return made;
  if (process.getuid() !== 0) throw new StepError('debootstrap needs root');
  console.log(`docker-test: debootstrap ${suite}`);
  const place = mkdtempSync(join(tmpdir(), 'sandbox-run-base-'));
  try {
    const root = join(place, 'root');
    await makeDebianRoot(root, sources, { include: ['ca-certificates'], signal });
    trustAsHost(root);
    addNpmSettings(root, await npmSettings());
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

function addNpmSettings(root, settings) {
  mkdirSync(join(root, 'usr/local/etc'), { recursive: true });
  const lines = Object.entries(settings).map(([name, value]) => `${name}=${value}\n`);
  writeFileSync(join(root, 'usr/local/etc/npmrc'), lines.join(''));
}
