// Run inside the virtual machine of scripts/vm-limits.mjs, there as /cases.mjs: WHO MEANS WORKSPACE
import { readdirSync, readFileSync } from 'node:fs';
import { createSandbox } from '/app/dist/index.js';

const [who, means, workspace] = process.argv.slice(2);
process.chdir(workspace);
// Where nothing but looking holds a fork bomb, and the machine is this slow, the user's own limit has to be the last resort.
const user = means === 'sampling' ? { user_processes: 300 } : {};
const policy = (limits) => ({
  unsafe: { unjudged_commands: true },
  limits: { timeout_seconds: 60, ...user, ...limits },
});
const open = (limits) => createSandbox({ workspace, policyFiles: false, policy: policy(limits) });

function say(good, what, more) {
  console.log(`${good ? 'ok  ' : 'FAIL'} ${who}: ${what} ${JSON.stringify(more)}`);
}

async function attempt(what, limits, command, wanted) {
  try {
    const sandbox = await open(limits);
    const result = await sandbox.run(command);
    await sandbox.close();
    const { status, limit, usage, treeEnded, durationMs, error } = result;
    const good =
      status === 'limit-exceeded' &&
      limit.name === wanted.name &&
      limit.by === (wanted.by ?? means) &&
      treeEnded;
    say(good, what, {
      status,
      limit,
      usage,
      ms: Math.round(durationMs),
      ...(good ? {} : { error, treeEnded }),
    });
  } catch (error) {
    say(false, what, String(error));
  }
}

const sandbox = await open({});
const control = sandbox.plan.report.controls.find(({ id }) => id === 'resource-limits');
say(control.state === (means === 'cgroup' ? 'enforced' : 'degraded'), 'report', control.reason);
const plain = await sandbox.run('head -c 20000000 /dev/zero > /dev/shm/x; echo done');
say(plain.status === 'exited' && plain.stdout === 'done\n', 'a plain command', plain.usage);
const times = [];
for (let i = 0; i < 20; i++) times.push((await sandbox.run(['/bin/sleep', '0'])).durationMs);
console.log(`note ${who}: a run takes ${times.sort((a, b) => a - b)[10].toFixed(2)} ms`);

await attempt('fork bomb', { processes: 100 }, ['/bin/fork-bomb'], { name: 'processes' });
await attempt('fork bomb of bash', { processes: 100 }, 'b() { b | b & }; b; sleep 60', { name: 'processes' });
await attempt('memory bomb', { memory: 200_000_000 }, ['/bin/memory-bomb'], { name: 'memory' });
await attempt(
  'memory bomb in many',
  { memory: 200_000_000 },
  'for i in 1 2 3 4; do memory-bomb & done; wait; sleep 60',
  { name: 'memory' },
);
await attempt('memory in files', { memory: 200_000_000 }, 'cat /dev/zero > $TMPDIR/x; sleep 60', {
  name: 'memory',
});
await attempt('processor time', { cpu_seconds: 1 }, ['/bin/spin'], { name: 'cpu' });
await attempt('silence', { idle_timeout_seconds: 1 }, 'echo a; sleep 60', { name: 'idle', by: 'clock' });

const [other, bomb] = await Promise.all([
  sandbox.run('for i in 1 2 3 4 5; do sleep 0.3; echo $i; done'),
  open({ memory: 200_000_000 }).then(async (second) => {
    const result = await second.run(['/bin/memory-bomb']);
    await second.close();
    return result;
  }),
]);
say(other.status === 'exited' && bomb.status === 'limit-exceeded', 'another run beside a bomb', [
  other.status,
  bomb.status,
]);
await sandbox.close();
const left = readdirSync('/proc')
  .filter((pid) => /^\d+$/.test(pid))
  .filter((pid) => {
    try {
      return (
        /bomb|spin/.test(readFileSync(`/proc/${pid}/comm`, 'utf8')) &&
        !/^State:\s+Z/m.test(readFileSync(`/proc/${pid}/status`, 'utf8'))
      );
    } catch {
      return false;
    }
  });
say(left.length === 0, 'nothing is left', left);
