import { spawn } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { execa } from 'execa';
import { describe, expect, it } from 'vitest';
import { CLI } from '../cli/support.ts';
import { processesWith } from '../support/leftovers.ts';
import { makeAskingConfiguration } from '../support/unjudged-policy.ts';
import { eventually } from './serve-client.ts';
import { makeServeWorld } from './serve-world.ts';

const { place, socket, listening } = makeServeWorld();
/** Where losses are asked about, as nothing brings them back. */
const judged = { XDG_CONFIG_HOME: makeAskingConfiguration(place.root) };
const EXAMPLES = fileURLToPath(new URL('../../examples/python', import.meta.url));
const mark = join(place.root, 'mark');

const env = {
  ...place.env,
  ...judged,
  XDG_STATE_HOME: join(place.root, 'state'),
  PYTHONPATH: EXAMPLES,
  PYTHONDONTWRITEBYTECODE: '1',
  SANDBOX_RUN: `${process.execPath} ${CLI}`,
};
const python = (args: readonly string[], more = {}) =>
  execa('python3', args, { cwd: place.root, env: { ...env, ...more }, extendEnv: false, reject: false });

const SHOWN = [
  /^exited 0 hello from \//,
  /^outside: denied command\.denied$/,
  /^\['got one', 'got two'\]$/,
  /^exited$/,
  /^hi from notes$/,
  /^deny - Not run: "sudo reboot"/,
  /^asked about: rm -r notes$/,
  /^removed: exited$/,
];

function expectShown(stdout: string): void {
  const lines = stdout.split('\n');
  for (const [index, line] of SHOWN.entries()) expect(lines[index]).toMatch(line);
  expect(lines).toHaveLength(SHOWN.length);
}

describe('the client in Python', () => {
  it('starts a server of its own', async () => {
    const { stdout, stderr, exitCode } = await python([join(EXAMPLES, 'demo.py')]);
    expect([stderr, exitCode]).toEqual(['', 0]);
    expectShown(stdout);
  });

  it('connects to one', async () => {
    await listening([], judged);
    const { stdout, stderr, exitCode } = await python([join(EXAMPLES, 'demo.py')], {
      SANDBOX_RUN_SOCKET: socket,
    });
    expect([stderr, exitCode]).toEqual(['', 0]);
    expectShown(stdout);
  });

  it('does many things at once, in threads', async () => {
    await listening([], judged);
    const program = join(place.root, 'many.py');
    writeFileSync(
      program,
      `
import sys
from concurrent.futures import ThreadPoolExecutor
from sandbox_run import SandboxRun, SandboxRunError
with SandboxRun.connect(sys.argv[1]) as box:
    with ThreadPoolExecutor(16) as pool:
        results = list(pool.map(lambda n: box.run(["echo", str(n)])["stdout"], range(1000)))
    assert results == [f"{n}\\n" for n in range(1000)], results
    processes = [box.spawn(f"echo {n}; sleep 0.2; echo {n}") for n in range(20)]
    for n, process in enumerate(processes):
        assert "".join(text for _, text in process) == f"{n}\\n{n}\\n"
        assert process.result["exitCode"] == 0
    killed = box.spawn("sleep 3600")
    assert killed.kill()
    assert killed.wait()["status"] == "canceled"
    assert box.run("sleep 60", timeout=0.1)["status"] == "timed-out"
    try:
        box.run("true", autonomy="autonomous")
        raise AssertionError("there is no such option")
    except SandboxRunError as error:
        assert error.code == "usage.invalid", error.code
    open(sys.argv[2] + "/x", "w").close()
    assert box.run("rm -rf x")["status"] == "denied"
print("good")
`,
    );
    const { stdout, stderr } = await python([program, socket, place.workspace]);
    expect([stdout, stderr]).toEqual(['good', '']);
  });

  it.each(['stdio', 'socket'])('that is killed leaves nothing behind (%s)', async (transport) => {
    if (transport === 'socket') await listening();
    const program = join(place.root, 'dies.py');
    writeFileSync(
      program,
      `
import os, shlex, sys
from sandbox_run import SandboxRun
start = lambda: SandboxRun.start("--workspace", sys.argv[1], program=shlex.split(os.environ["SANDBOX_RUN"]))
box = SandboxRun.connect(sys.argv[2]) if sys.argv[3] == "socket" else start()
box.spawn("bash -c 'sleep 3600; :' ${mark}")
box.run("bash -c 'sleep 3600; :' ${mark}")
`,
    );
    const child = spawn('python3', [program, place.workspace, socket, transport], {
      env: { ...env, ...place.env },
      stdio: 'ignore',
    });
    const ended = new Promise((done) => child.once('close', done));
    await eventually(() => expect(processesWith(mark).length).toBeGreaterThanOrEqual(2));
    child.kill('SIGKILL');
    await ended;
    await eventually(() => expect(processesWith(mark)).toEqual([]));
  });
});
