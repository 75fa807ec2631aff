// The docker command line for one daemon.
import { run } from '../step.mjs';

/** Docker commands for one daemon. `host`: its socket, or undefined for the one that the environment names. */
export function dockerAt(host, signal) {
  const env = host === undefined ? {} : { DOCKER_HOST: host, DOCKER_CONTEXT: '' };
  return (args, options = {}) => run('docker', args, { env, signal, ...options });
}
