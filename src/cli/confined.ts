import { accessSync, constants, opendirSync, readFileSync, statfsSync } from 'node:fs';
import { errnoOf } from '../base/errno-of.ts';
import { isInsideOwnView, PROC_MAGIC } from './sh/inside.ts';
import { createProgram, parseArguments } from './shared/parse.ts';
import { printOut } from './shared/print.ts';

/** No sandbox, or none that can be told to be ours. */
const STATUS_NOT_CONFINED = 1;

const HELP_AFTER = `
Let an agent run it, and read what its tool printed (not what the model says about it): it tells whether the
commands of that agent are confined. Nothing that a variable, an argument or a file says counts, only what the
kernel says of the process. Name it by its absolute path if the project may have put a program of that name into PATH.

The same without this program, 1 is confined:
  grep -c ' / / ro.* - tmpfs sandbox-run ' /proc/self/mountinfo

Exit status: 0 confined by sandbox-run; 1 not, or it cannot be told.`;

/** `sandbox-run confined`: whether the process that runs it is in a sandbox of ours. */
export async function confined(args: readonly string[]): Promise<number> {
  const program = createProgram(
    'sandbox-run confined',
    'Tells whether this very process is confined by sandbox-run.',
    HELP_AFTER,
  );
  if (parseArguments(program, args) === undefined) return 0;
  const { isConfined, why } = confinementHere();
  printOut(`confined: ${isConfined ? 'yes' : 'NO'} (${why})\n`);
  return isConfined ? 0 : STATUS_NOT_CONFINED;
}

/** What the kernel says of this very process. */
export function confinementHere(): { readonly isConfined: boolean; readonly why: string } {
  if (isInsideOwnView())
    return { isConfined: true, why: 'by sandbox-run, with its own view of the file system' };
  const held = heldBy();
  // Where there are no namespaces, sandboxes of ours are made of these, and refuse to list the root.
  if (held.seccomp && held.noNewPrivileges && held.landlock)
    return {
      isConfined: true,
      why: 'by Landlock and seccomp, as by sandbox-run where there are no namespaces; whose they are cannot be seen from inside',
    };
  const others = [held.seccomp ? 'a seccomp filter' : '', held.landlock ? 'a rule about files' : ''].filter(
    Boolean,
  );
  if (others.length === 0) return { isConfined: false, why: 'nothing holds this process' };
  return { isConfined: false, why: `${others.join(' and ')} of another sandbox, and nothing of sandbox-run` };
}

/** What the kernel says, and does, to this process. */
function heldBy(): {
  readonly seccomp: boolean;
  readonly noNewPrivileges: boolean;
  readonly landlock: boolean;
} {
  let status = '';
  try {
    if (statfsSync('/proc').type === PROC_MAGIC) status = readFileSync('/proc/self/status', 'latin1');
  } catch {
    // Without it nothing is known, and so nothing is claimed.
  }
  return {
    seccomp: /^Seccomp:\t2$/m.test(status),
    noNewPrivileges: /^NoNewPrivs:\t1$/m.test(status),
    landlock: isRootRefused(),
  };
}

/** Permission bits let everybody list the root; Landlock does not change what they say. */
function isRootRefused(): boolean {
  try {
    accessSync('/', constants.R_OK | constants.X_OK);
  } catch {
    return false;
  }
  try {
    opendirSync('/').closeSync();
    return false;
  } catch (error) {
    return errnoOf(error) === 'EACCES';
  }
}
