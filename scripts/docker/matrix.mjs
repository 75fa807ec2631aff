// The kernel matrix, run in a privileged container.
import { existsSync, mkdirSync } from 'node:fs';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { privilegedFlags } from './modes.mjs';

/** The image's and the host's directory of kernels: the same as scripts/kernel-matrix uses outside of containers. */
const KERNELS = 'sandbox-run/kernels';

/** `matrix`: true: it has to run; false: it must not; undefined: it runs with the whole suite of the privileged mode. */
export async function runMatrix(docker, { image, root, matrix, modes, tests }) {
  const kernels = process.env.SANDBOX_RUN_KERNELS ?? '1';
  if (matrix === false) return { ok: true, said: 'not run (--no-matrix)' };
  if (matrix !== true && kernels === '0') return { ok: true, said: 'not run (SANDBOX_RUN_KERNELS=0)' };
  if (matrix !== true && tests.length > 0) return { ok: true, said: 'not run (--tests)' };
  if (matrix !== true && !modes.some(({ name }) => name === 'privileged'))
    return { ok: true, said: 'not run (it belongs to the mode privileged)' };
  if (!existsSync(join(root, 'scripts/kernel-matrix')))
    return { ok: matrix !== true, said: 'not run: scripts/kernel-matrix is missing' };
  const cache = join(process.env.XDG_CACHE_HOME ?? join(homedir(), '.cache'), KERNELS);
  mkdirSync(cache, { recursive: true });
  console.log('\n=== kernel matrix');
  const { status } = await docker(
    [
      // The network: kernels are fetched from the mirror, once.
      ...['run', '--rm', '--init', '--network', 'host', '--user', 'root'],
      ...['--volume', `${cache}:/var/cache/${KERNELS}`, '--env', 'XDG_CACHE_HOME=/var/cache'],
      ...[...(await privilegedFlags(docker, image)), image, 'scripts/kernel-matrix'],
      ...(kernels === '0' || kernels === '1' ? [] : ['--kernels', kernels]),
    ],
    { show: true, fails: true },
  );
  return { ok: status === 0, said: status === 0 ? 'passed' : `failed (exit status ${status})` };
}
