import { SandboxError } from '../../errors/sandbox-error.ts';
import { programBesideAddon } from '../../native/load.ts';
import type { Backend } from '../backend.ts';
import { confinementSpec } from '../confinement-spec.ts';
import { encodeSteps } from './encode-steps.ts';

const STEPS = 'sandbox-run-steps';

/**
 * No shell: programs that are on a list, with arguments that are understood and paths that lead into the workspace. What is
 * started is a program of our own, which runs a list of argument vectors and opens the files of redirects beneath the
 * workspace. Nothing holds what runs, except that seccomp is used where the kernel has it.
 */
export const application: Backend = {
  id: 'application',
  summary: 'no shell, only words and paths that are understood; nothing holds what runs',
  probe(features) {
    try {
      programBesideAddon(STEPS);
      return { usable: true, features };
    } catch (error) {
      if (!(error instanceof SandboxError)) throw error;
      return { usable: false, reason: error.message };
    }
  },
  confinement: (plan, { architecture }) => confinementSpec(plan, architecture),
  steps: ({ workspace }, steps) => {
    const program = programBesideAddon(STEPS);
    return { program, argv: [program, workspace, ...encodeSteps(steps)] };
  },
};
