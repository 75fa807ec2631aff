// A Docker daemon: the one that runs, or one of our own for the time of a run.
import { spawn } from 'node:child_process';
import { closeSync, existsSync, mkdirSync, mkdtempSync, openSync, readFileSync } from 'node:fs';
import { homedir, tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { StepError } from '../step.mjs';
import { dockerAt } from './docker.mjs';
import { removeTree } from './remove-tree.mjs';

const START_MS = 30_000;
const STOP_MS = 30_000;
/** The second one works where the directory lies on a file system that overlays cannot use. */
const STORAGE_DRIVERS = ['overlay2', 'vfs'];

/** Answers with `docker`, whether the daemon is our own, and `stop`, which leaves nothing of an own one behind. */
export async function useDaemon({ keep, signal }) {
  const running = dockerAt(undefined, signal);
  if (await answers(running)) return { docker: running, own: false, stop: async () => {} };
  if (process.getuid() !== 0)
    throw new StepError('no Docker daemon answers; start one, name it by DOCKER_HOST, or run this as root');
  const why = [];
  for (const driver of STORAGE_DRIVERS) {
    const daemon = await startDaemon(driver, keep, signal);
    if (daemon.problem === undefined) return daemon;
    why.push(`${driver}: ${daemon.problem}`);
  }
  throw new StepError(`no Docker daemon runs here, and none of our own starts:\n${why.join('\n')}`);
}

async function answers(docker) {
  const asked = await docker(['version', '--format', '{{.Server.Version}}'], {
    fails: true,
    timeoutMs: 10_000,
  });
  return asked.status === 0;
}

async function startDaemon(driver, keep, signal) {
  const place = mkdtempSync(join(tmpdir(), 'sandbox-run-docker-'));
  const data = keep ? cacheDirectory() : join(place, 'data');
  mkdirSync(data, { recursive: true, mode: 0o700 });
  const host = `unix://${join(place, 'docker.sock')}`;
  const logFile = join(place, 'log');
  const log = openSync(logFile, 'w');
  // Ends with us even if we are killed. A session of its own: Ctrl-C is for us, the daemon is stopped at the very end.
  const child = spawn(
    'setpriv',
    [
      ...['--pdeathsig', 'TERM', 'dockerd', '--host', host, '--storage-driver', driver],
      ...['--data-root', data, '--exec-root', join(place, 'exec'), '--pidfile', join(place, 'pid')],
      // Nothing of the host's network is changed: containers have none, builds use the host's.
      ...['--bridge=none', '--iptables=false', '--ip6tables=false'],
    ],
    { stdio: ['ignore', log, log], detached: true },
  );
  closeSync(log);
  let ended = false;
  const end = new Promise((done) => {
    child.once('exit', done);
    child.once('error', done);
  }).then(() => {
    ended = true;
  });
  const stop = async () => {
    if (!ended) child.kill('SIGTERM');
    await Promise.race([end, sleep(STOP_MS, undefined, { ref: false })]);
    if (!ended) child.kill('SIGKILL');
    await end;
    removeTree(place);
    if (keep) console.log(`docker-test: images are kept in ${data} for the next run with --keep`);
  };
  const docker = dockerAt(host, signal);
  try {
    for (const start = Date.now(); !ended && Date.now() - start < START_MS; await sleep(200)) {
      if (await answers(docker)) return { docker, own: true, stop };
    }
  } catch (error) {
    await stop();
    throw error;
  }
  const problem = existsSync(logFile)
    ? readFileSync(logFile, 'utf8').trim().split('\n').slice(-3).join('\n')
    : '';
  await stop();
  return { problem: problem || 'dockerd could not be started (package docker.io)' };
}

function cacheDirectory() {
  return join(process.env.XDG_CACHE_HOME ?? join(homedir(), '.cache'), 'sandbox-run', 'docker-test');
}
