// What has a state, used once: V8 keeps the compiled code of the functions that are called here.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** Counts an action, remembers a session, asks somebody, writes a record. */
export async function useStatefulParts({ openState, openAudit, createApprovalDesk }) {
  const directory = mkdtempSync(join(tmpdir(), 'sandbox-run-build-'));
  try {
    const state = await openState(directory);
    const reservation = await state.budget.reserve('p', 10);
    reservation.commit();
    state.budget.used('p');
    state.sessions.use('s', 'p');
    state.sessions.taints('s', 'p');
    const decision = { verdict: 'ask', risk: 'medium', reach: 'local', reasons: [] };
    const desk = createApprovalDesk({
      store: () => state.approvals,
      approver: { ask: async () => ({ approved: true, scope: 'once', by: 'build' }) },
      timeoutMs: 1000,
    });
    const request = { fingerprint: '0', principal: 'p', command: 'ls', cwd: '/', decision, parts: [] };
    const approval = await desk.decide({ ...request, environment: [], profile: '', confinement: [] });
    state.close();
    // Nobody else writes there.
    const trail = openAudit(directory, { lock: { tryLock: () => true, unlock: () => {} } });
    const about = { request: 'r', principal: 'p', session: 's' };
    const report = { backend: 'landlock', passedOver: [], landlockAbi: 0, controls: [] };
    await trail.append({
      ...{ type: 'decision', ...about, command: 'ls -la', cwd: '/', decision, approval, outcome: 'launch' },
      ...{ files: { writes: [], executes: [] }, profile: '', backend: 'landlock', report },
    });
    await trail.append({
      ...{ type: 'result', ...about, status: 'exited', exitCode: 0, durationMs: 1 },
      outputBytes: { stdout: 0, stderr: 0 },
    });
    await trail.close();
  } finally {
    rmSync(directory, { recursive: true, force: true });
  }
}
