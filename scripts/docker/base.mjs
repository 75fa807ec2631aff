// The image that Dockerfile.test starts from: one of a registry, or a Debian made here.

import { StepError } from '../step.mjs';
import { makeDebianImage } from './debootstrap.mjs';

const DEFAULT_IMAGE = 'node:22-bookworm';
const PULL_MS = 300_000;

/** `wanted`: an image, 'debootstrap' or 'auto'. Answers with the image, how it came here, and whether to remove it. */
export async function chooseBase(docker, wanted, mirror, signal) {
  if (wanted === 'debootstrap') return makeDebianImage(docker, mirror, signal);
  const image = wanted === 'auto' ? DEFAULT_IMAGE : wanted;
  const missing = await obtain(docker, image);
  if (missing === undefined) return { image, how: `image ${image}`, made: false };
  if (wanted !== 'auto')
    throw new StepError(`${image} is not here and cannot be pulled: ${missing}; try --base debootstrap`);
  console.log(`docker-test: ${image} cannot be pulled (${missing}), so a base is made with debootstrap`);
  return makeDebianImage(docker, mirror, signal);
}

/** Undefined if the image is there now, else why not. */
async function obtain(docker, image) {
  if ((await docker(['image', 'inspect', image], { fails: true })).status === 0) return undefined;
  const pulled = await docker(['pull', '--quiet', image], { fails: true, timeoutMs: PULL_MS });
  return pulled.status === 0
    ? undefined
    : pulled.stderr.trim().split('\n').at(-1) || `no answer within ${PULL_MS / 1000} s`;
}
