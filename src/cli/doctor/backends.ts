import { SandboxError } from '../../errors/sandbox-error.ts';
import type { BackendId } from '../../model/backend.ts';
import type { DoctorReport } from '../../model/doctor-report.ts';
import { BACKEND_IDS } from '../../model/words.ts';
import { closePrepared, prepareSandbox } from '../../run/prepare-sandbox.ts';

type BackendFacts = DoctorReport['backends'][number];

/** Which backends hold the default profile here, as far as they can by their nature, the strongest first: each is tried. */
export async function tryBackends(workspace: string): Promise<readonly BackendFacts[]> {
  const facts: BackendFacts[] = [];
  for (const id of BACKEND_IDS) facts.push({ id, ...(await tryBackend(id, workspace)) });
  return facts;
}

async function tryBackend(backend: BackendId, workspace: string): Promise<Omit<BackendFacts, 'id'>> {
  try {
    const prepared = await prepareSandbox({
      workspace,
      policyFiles: false,
      backend,
      policy: { sandbox: { minimum: backend } },
    });
    closePrepared(prepared);
    return { available: true, reason: null };
  } catch (error) {
    if (!(error instanceof SandboxError)) throw error;
    // Not how to name another.
    const { message } = error.cause instanceof SandboxError ? error.cause : error;
    return { available: false, reason: message };
  }
}
