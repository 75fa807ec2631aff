// What the README says that a fresh machine needs and does: the script that tries it has no words of its own for that.
import { StepError } from '../step.mjs';

const BLOCK = /^```sh\n(.*)\n```$/gm;

/**
 * @param {string} text of the README
 * @returns {{ packages: string[], fromElsewhere: string[], node: number[], commands: [string, string] }} `packages` with all
 * that Debian brings; `fromElsewhere`: those to be left out where Debian's Node is older than `node`
 */
export function readSteps(text) {
  const blocks = [...text.matchAll(BLOCK)].map(([, line]) => line);
  const install = only(blocks, /^sudo apt-get install --no-install-recommends ([a-z0-9+. -]+)$/, 'installs');
  const setUp = only(blocks, /^(npm [a-z-]+) && (npx sandbox-run -- [^&|;]+)$/, 'sets up and runs a command');
  const packages = install[1].split(' ');
  const node = /checkout needs Node (\d+)\.(\d+)/.exec(text);
  if (node === null) throw new StepError('README.md does not say which Node a checkout needs');
  const elsewhere = /leave out `([a-z ]+)` there/.exec(text);
  const fromElsewhere = elsewhere?.[1].split(' ') ?? [];
  if (fromElsewhere.length === 0 || !fromElsewhere.every((name) => packages.includes(name)))
    throw new StepError('README.md does not say which packages to leave out where Node is too old');
  return { packages, fromElsewhere, node: node.slice(1).map(Number), commands: [setUp[1], setUp[2]] };
}

function only(blocks, shape, what) {
  const found = blocks.map((block) => shape.exec(block)).filter((match) => match !== null);
  if (found.length === 1) return found[0];
  throw new StepError(`README.md has ${found.length} blocks with one line that ${what} (${shape}), not one`);
}
