import { SandboxError } from '../../base/errors/sandbox-error.ts';
import { loadAddon } from '../../confine/native/load.ts';
import { packageVersion } from '../../version.ts';
import { OF_THIS_PROCESS } from '../../workspace/index.ts';
import { closePrepared, prepareOf } from '../resolve/prepare-sandbox.ts';
import { placesOf } from '../resolve/resolve-policy.ts';
import { type OpenSandbox, sandboxOn } from '../sandbox.ts';
import { COUNTS_THERE, type Embedded, holdingOf, optionsThere, portsThere } from './command-line.ts';
import { takeOver } from './handover.ts';

/** What the terminal of this process says of itself, which the other process does not know. */
const OF_TERMINAL = ['TERM', 'COLORTERM', 'NO_COLOR'] as const;

/**
 * Takes what `sandbox.commandLine()` handed over to this process, which has the variables of that from then on: what else its
 * environment says is nothing to the command.
 * @throws {SandboxError} `handover.spent`, `usage.invalid`.
 */
export function takeEmbedded(claim: readonly string[]): Embedded {
  const taken = takeOver(claim, loadAddon()) as Embedded;
  if (taken.version !== packageVersion)
    throw new SandboxError(
      'handover.spent',
      `nothing was run: the command line was made by version ${taken.version} of sandbox-run, and this is ${packageVersion}; make a new one`,
    );
  const terminal = OF_TERMINAL.flatMap((name) => {
    const value = process.env[name];
    return taken.terminal && value !== undefined ? [[name, value] as const] : [];
  });
  for (const name of Object.keys(process.env)) delete process.env[name];
  Object.assign(process.env, taken.env, Object.fromEntries(terminal));
  return taken;
}

/**
 * The sandbox of a command that was handed over: of the same policy, whatever files say by now, and held by the same.
 * @throws {SandboxError} as `createSandbox`; `enforcement.unavailable`: this process has less to hold it with.
 */
export async function openEmbedded({
  resolved,
  options: given,
  isOfSession,
  held,
}: Embedded): Promise<OpenSandbox> {
  const options = optionsThere(given);
  const { policy, workspace } = resolved;
  const parentBesideTmp = placesOf(policy, workspace);
  const whole = { ...resolved, shadow: undefined, around: OF_THIS_PROCESS, parentBesideTmp };
  const prepared = await prepareOf(whole, options, { isOfSession });
  if (holdingOf(prepared.plan) !== held) {
    closePrepared(prepared);
    throw new SandboxError(
      'enforcement.unavailable',
      'nothing was run: what holds commands here is not what held those of the sandbox that made the command line; start it on the same host, outside of other sandboxes and containers',
    );
  }
  return sandboxOn(prepared, options, undefined, portsThere, COUNTS_THERE);
}
