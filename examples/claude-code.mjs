#!/usr/bin/env node
// What Claude Code does with the hook of `sandbox-run install claude-code --mode rewrite`, without Claude Code: it hands a
// call of its Bash tool to the hook, and runs what comes back. To try it: node examples/claude-code.mjs 'id; ls ~'
// prints: Seccomp:…2
import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

// SANDBOX_RUN is for a program that is not in PATH.
const program = process.env.SANDBOX_RUN ?? 'sandbox-run';
const project = mkdtempSync(join(tmpdir(), 'claude-code-example-'));
const [command = 'echo "hello from the sandbox"; grep Seccomp: /proc/self/status'] = process.argv.slice(2);

const call = {
  session_id: 'example',
  cwd: project,
  hook_event_name: 'PreToolUse',
  tool_name: 'Bash',
  tool_input: { command, description: 'An example' },
  tool_use_id: 'toolu_example',
};

try {
  const hook = spawnSync(program, ['hook', 'claude-code', '--mode', 'rewrite'], {
    input: JSON.stringify(call),
    encoding: 'utf8',
    env: { ...process.env, CLAUDE_PROJECT_DIR: project },
  });
  if (hook.error !== undefined)
    throw new Error(
      `${program} cannot be started (${hook.error.code}): npm install -g sandbox-run, or set SANDBOX_RUN to its path`,
    );
  if (hook.status !== 0) throw new Error(`the hook stops the call: ${hook.stderr}`);
  const { permissionDecision, permissionDecisionReason, updatedInput } = JSON.parse(
    hook.stdout,
  ).hookSpecificOutput;
  console.log(`decision: ${permissionDecision}\nreason:   ${permissionDecisionReason}`);
  if (permissionDecision === 'allow') {
    console.log(`runs:     ${updatedInput.command}`);
    const run = spawnSync('bash', ['-c', updatedInput.command], { cwd: project, encoding: 'utf8' });
    console.log(`status:   ${run.status}\noutput:   ${run.stdout.trimEnd()}${run.stderr}`);
  }
} catch (error) {
  console.error(error.message);
  process.exitCode = 1;
} finally {
  rmSync(project, { recursive: true, force: true });
}
