import { beforeAll, describe, expect, it } from 'vitest';
import { makeArena } from '../support/arena.ts';
import { isAlive, startBystander } from '../support/bystander.ts';
import { bundleLauncher } from '../support/launcher.ts';
import { compile, confined, PROGRAMS, unconfined } from '../support/sandboxee.ts';
import { patience } from '../support/slow-host.ts';
import { HOST, HOST_TIERS, stateOf } from '../support/tiers.ts';

/** Ends everything that it may. Only ever run in a process namespace of its own, or confined. */
const killer = compile(
  'kill-everything',
  `
  int main() {
    // The answer of kill(-1) says nothing: it is success even if every single process was out of reach.
    kill(-1, SIGKILL);
    kill(0, 0);
    SAY("killer", "lives");
    return 0;
  }`,
);

/** Bystanders, then the command given by its arguments, then who is left of the bystanders. */
const SCENE = `
sleep 300 & one=$!
setsid sleep 300 & two=$!
"$@"
echo "status=$?"
sleep 0.3
# A zombie still takes signals: only its state tells.
for pid in $one $two; do grep -qs '^State:.*[SRD] (' /proc/$pid/status && echo "bystander=lives"; done
kill -9 $one $two 2>/dev/null
`;

const OWN_PROCESSES = [
  '/usr/bin/unshare',
  ...(HOST.root ? [] : ['--user', '--map-root-user']),
  ...['--pid', '--fork', '--mount-proc', '/bin/bash', '-c', SCENE, 'scene'],
] as const;

describe('killing every process at once', () => {
  const arena = makeArena();
  let launcher = '';
  beforeAll(async () => {
    launcher = await bundleLauncher();
  });
  const inOwnProcesses = (...argv: string[]) => unconfined(['/usr/bin/env', ...OWN_PROCESSES, ...argv]);
  const launch = (task: object) => inOwnProcesses(process.execPath, launcher, JSON.stringify(task));

  it.skipIf(!HOST.namespaces)(
    'works without a sandbox, in a process namespace of its own (needs namespaces)',
    async () => {
      const trace = await inOwnProcesses(killer);
      expect(trace.stdout).toContain('killer=lives');
      expect(trace.stdout).not.toContain('bystander=lives');
    },
  );

  describe.each(HOST_TIERS)('$name', (tier) => {
    const task = { tier: tier.name, options: { workspace: arena.workspace, readable: [PROGRAMS] } };

    it.skipIf(!HOST.namespaces)(
      'by the command: bystanders and launcher live on, or the report says that they may not (needs namespaces)',
      async () => {
        const sandbox = await arena.sandbox(tier);
        if (stateOf(sandbox, 'signals') !== 'enforced') {
          expect(HOST.landlockAbi).toBeLessThan(6);
          return;
        }
        const trace = await launch({ ...task, argv: [killer] });
        expect(trace.stdout.match(/bystander=lives/g)).toHaveLength(2);
        expect(trace.stdout).toContain('"status":"exited"');
        expect(trace.stdout).toContain('killer=lives');
        expect(trace.results.status).toBe('E0');
      },
    );

    it.skipIf(!HOST.namespaces)(
      'by the launcher, when it ends the tree of a command: bystanders live on, and the tree does not (needs namespaces)',
      async () => {
        const trace = await launch({
          ...task,
          argv: ['/bin/bash', '-c', 'setsid sleep 50 & setsid sleep 50 & echo $!; exec sleep 50'],
          run: { timeout: patience(300) },
        });
        expect(trace.stdout.match(/bystander=lives/g)).toHaveLength(2);
        expect(trace.stdout).toContain('"status":"timed-out"');
        if (HOST.signalScope) expect(trace.stdout).toContain('"treeEnded":true');
      },
    );

    it.skipIf(!HOST.namespaces)(
      'by a command that runs launchers of its own: they end nothing but what is theirs (needs namespaces)',
      async () => {
        // The inner launcher runs inside a sandbox; whatever it can set up there, its ending must stay there.
        const inner = {
          tier: 'without namespaces',
          options: { workspace: arena.workspace },
          argv: ['/bin/true'],
        };
        const trace = await launch({
          ...task,
          options: { ...task.options, readable: [PROGRAMS, process.cwd()] },
          argv: [
            '/bin/bash',
            '-c',
            'sleep 300 & "$@" > inner.out 2>&1; grep -qs "^State:.*[SRD] (" /proc/$!/status && echo "sibling:lives"; cat inner.out',
            'x',
            process.execPath,
            launcher,
            JSON.stringify(inner),
          ],
        });
        expect(trace.stdout.match(/bystander=lives/g)).toHaveLength(2);
        expect(trace.stdout, trace.stderr).toContain('sibling:lives');
        expect(trace.stdout).toContain('exited');
      },
    );

    it('by the command on the host: its killer can only reach itself', async () => {
      const sandbox = await arena.sandbox(tier);
      // Without the scope nothing is tried on the host.
      if (stateOf(sandbox, 'signals') !== 'enforced') return;
      // Proven above, but not without a process namespace: there by one that a single signal may hit.
      const bystander = await startBystander(['/bin/bash', '-c', 'echo ready; exec sleep 300']);
      await confined(sandbox, ['/bin/bash', '-c', `kill -9 ${bystander.pid}`]);
      expect(isAlive(bystander.pid)).toBe(true);
      const trace = await confined(sandbox, [killer]);
      expect(trace.results.killer).toBe('lives');
      expect(isAlive(bystander.pid)).toBe(true);
    });
  });
});
