import { dirname, resolve } from 'node:path';
import { SandboxError } from '../../errors/sandbox-error.ts';
import { describeShortage } from '../../errors/shortage.ts';
import { onBehalfOf, serveOthersOnly } from '../../host/caller.ts';
import { ensureStateDirectory } from '../../host/user-directories.ts';
import { loadAddon } from '../../native/load.ts';
import type { OpenSandbox } from '../../run/sandbox.ts';
import { type Call, listenForCalls, type Work } from '../../serve/warm/calls.ts';
import { answerCall, parseHookArguments } from '../hook/answer.ts';
import { parseRunArguments, type RunArguments } from '../run/options.ts';
import { runIn, sandboxFor, statusForModel } from '../run/run.ts';
import { printError } from '../shared/print.ts';
import { aborted, SignalForwarding, untilEnded } from '../shared/signals.ts';
import { SandboxPool } from './pool.ts';

/** Without a call for so long it is of no use to anybody. */
const UNUSED_MS = 1_800_000;

/**
 * Internal, started by `hook` and by `--warm`: serves calls of this user that native/client hands over on a socket. Each is
 * done as a process of its own would do it, with the caller's environment, directory and streams; what such a process would
 * do otherwise here (a terminal, a question on one, help) is left to it.
 */
export async function warm([path = '']: readonly string[]): Promise<number> {
  ensureStateDirectory(dirname(path));
  return untilEnded(async ({ signal }) => {
    const addon = loadAddon();
    const pool = new SandboxPool();
    const listener = await listenForCalls({
      ...{ path, addon, unusedTimeout: UNUSED_MS },
      take: (call) => takeCall(call, pool),
    });
    serveOthersOnly();
    await Promise.race([listener.ended, aborted(signal)]);
    await listener.close('the server is stopping');
    await pool.close();
    return 0;
  });
}

/** What is to be done for a call; `undefined`: the client does it. */
async function takeCall({ args, caller, hasTerminal }: Call, pool: SandboxPool): Promise<Work | undefined> {
  const [first = '', ...rest] = args;
  if (first === 'hook') {
    const wanted = quietly(caller, () => parseHookArguments(rest));
    return wanted && { do: () => answerCall(wanted), [Symbol.dispose]: () => {} };
  }
  const wanted = quietly(caller, () => parseRunArguments(args));
  if (wanted === undefined || wanted.tty || wanted.dryRun === true || wanted.approval !== undefined)
    return undefined;
  return takeRun(atHome(wanted, caller.cwd()), hasTerminal, pool);
}

/** What is said of an option is said by the client itself, and to it. */
function quietly<T>(caller: Call['caller'], parse: () => T): T | undefined {
  try {
    return onBehalfOf({ ...caller, write: () => false }, parse);
  } catch (error) {
    if (error instanceof SandboxError) return undefined;
    throw error;
  }
}

/** With paths that are relative for the caller, and would mean others here. */
function atHome(wanted: RunArguments, cwd: string): RunArguments {
  const { workspace, policy } = wanted.sandbox;
  return {
    ...wanted,
    sandbox: {
      ...wanted.sandbox,
      ...(workspace === undefined ? {} : { workspace: resolve(cwd, workspace) }),
      ...(typeof policy === 'string' ? { policy: resolve(cwd, policy) } : {}),
    },
  };
}

async function takeRun(
  wanted: RunArguments,
  hasTerminal: boolean,
  pool: SandboxPool,
): Promise<Work | undefined> {
  const signals = new SignalForwarding();
  const lease = await pool.lease(sandboxFor(wanted, signals)).catch(() => undefined);
  const giveUp = () => {
    signals[Symbol.dispose]();
    lease?.[Symbol.dispose]();
  };
  if (lease === undefined || (await isAskedThere(lease.sandbox, wanted, hasTerminal))) {
    giveUp();
    return undefined;
  }
  return {
    do: async () => {
      try {
        return await runIn(lease.sandbox, wanted, signals, []);
      } catch (error) {
        return statusOf(error, wanted);
      }
    },
    [Symbol.dispose]: giveUp,
  };
}

/** Whether its user would be asked on the caller's terminal, where only the caller can. */
async function isAskedThere(
  sandbox: OpenSandbox,
  { command, taints, approved }: RunArguments,
  hasTerminal: boolean,
): Promise<boolean> {
  if (!hasTerminal || approved === true || sandbox.policy.approval.ask !== 'terminal') return false;
  const { decision } = await sandbox.check(command, { taints });
  return decision?.verdict === 'ask';
}

function statusOf(error: unknown, wanted: RunArguments): number {
  if (error instanceof SandboxError) {
    if (wanted.forModel === true) return statusForModel(error);
    printError(error.problem, error.remedy);
    return error.exitStatus;
  }
  const ours = error instanceof Error ? (error.stack ?? error.message) : String(error);
  printError(describeShortage(error) ?? ours);
  return 125;
}
