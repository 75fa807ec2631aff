// node attack.mjs INPUT-JSON: makes a sandbox on the host that this process finds itself on, runs one command in it that
// tries what must not work, and prints one line of JSON about it (see world.ts). With `unconfined`, without a sandbox.
import { spawnSync } from 'node:child_process';
import { existsSync, readlinkSync } from 'node:fs';

const input = JSON.parse(process.argv[2]);
// Without /proc nobody can tell, the command neither.
const namespaceOf = (name) =>
  existsSync('/proc/self/ns') ? readlinkSync(`/proc/self/ns/${name}`) : 'unknown';
const answer = {};
const script = `
  echo started
  cat '${input.secret}' >/dev/null 2>&1 && echo READ
  [ -e '${input.secret}' ] && echo SEEN
  [ -e '${input.secret}' ] && touch -c -d @1 '${input.secret}' 2>/dev/null && echo CHANGED
  [ -d .git/hooks ] && (echo x > .git/hooks/made) 2>/dev/null && echo HOOK && rm .git/hooks/made
  [ -n "$NOT_FOR_COMMANDS" ] && echo ENVIRONMENT
  [ "$(readlink /proc/self/ns/net)" = '${namespaceOf('net')}' ] && echo HOSTNET
  [ "$(readlink /proc/self/ns/ipc)" = '${namespaceOf('ipc')}' ] && echo HOSTIPC
  (echo x > '${input.outside}/made') 2>/dev/null && echo WROTE
  kill -0 ${process.pid} 2>/dev/null && echo SIGNAL
  (exec 5<>/dev/tcp/127.0.0.1/${input.port}) 2>/dev/null && echo NETWORK
  [ -r /proc/self/status ] && {
    grep -q 'NoNewPrivs:.1' /proc/self/status || echo PRIVS
    grep -q 'Seccomp:.2' /proc/self/status || echo SYSCALLS
    grep -q 'CapEff:.0*$' /proc/self/status || echo CAPS
    ls -l /proc/self/fd | grep -q secret && echo DESCRIPTOR
  }
  (setsid sleep ${input.mark} >/dev/null 2>&1 &)
  mkdir d-${input.mark} && cd d-${input.mark} && echo hi > file && cat file && mkdir -p one two && echo 1 > one/x && mv one/x two/x && echo WORKED
  ${input.more ?? ''}
  echo end
`;
if (input.unconfined) {
  answer.stdout = spawnSync('/bin/bash', ['-c', script], {
    cwd: input.workspace,
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'pipe', 3],
  }).stdout;
} else {
  try {
    const { createSandbox } = await import(input.dist);
    // To fault-tracer.cc; a host may refuse signals.
    if (process.env.FAULT_TRACER) process.kill(process.pid, 'SIGWINCH');
    if (input.before !== undefined)
      spawnSync(
        input.before[0],
        input.before.slice(1).map((word) => word.replace('PID', process.pid)),
      );
    const sandbox = await createSandbox({
      workspace: input.workspace,
      ...input.options,
      policy: { unsafe: { unjudged_commands: true }, ...input.options?.policy },
    });
    const { report } = sandbox.plan;
    Object.assign(answer, {
      backend: report.backend,
      tier: report.processTree,
      passedOver: report.passedOver,
    });
    answer.states = Object.fromEntries(report.controls.map(({ id, state }) => [id, state]));
    answer.reasons = Object.fromEntries(report.controls.map(({ id, reason }) => [id, reason]));
    const run = () =>
      sandbox.run(input.argv ?? ['/bin/bash', '-c', script], {
        timeout: 60_000,
        ...(input.cwd && { cwd: input.cwd }),
      });
    const results = await Promise.all(Array.from({ length: input.times ?? 1 }, run));
    const [{ exitCode, signal, stdout, stderr, error, warnings }] = results;
    Object.assign(answer, {
      exitCode,
      signal,
      stdout,
      stderr,
      warnings,
      error: error && { code: error.code, message: error.message },
    });
    answer.treeEnded = results.every(({ treeEnded }) => treeEnded);
    answer.all = results.map((one) => one.error?.code ?? one.exitCode ?? one.signal);
    await sandbox.close();
  } catch (error) {
    answer.refused = { code: error.code, message: error.message, ours: error.name === 'SandboxError' };
  }
}
process.stdout.write(`${JSON.stringify(answer)}\n`);
