import { errorOf } from '../../decide/refusal.ts';
import { SandboxError } from '../../errors/sandbox-error.ts';
import type { ExecutionResult } from '../../model/execution-result.ts';
import type { SpawnOptions } from '../../model/options.ts';
import type { NativeChangedCopy } from '../../native/contract.ts';
import { errorMessage } from '../../util/error-message.ts';
import { readableWord } from '../../util/shell-quote.ts';
import { notRun, type RunContext } from '../launch/classify.ts';
import { type Launch, Launcher, type StartableCommand } from '../launch/launch.ts';
import { neverBegun, type RunningCommand } from '../launch/pending-command.ts';
import { commandOf } from '../output/model-message.ts';
import type { PreparedSandbox } from '../resolve/prepare-sandbox.ts';
import { ChangeSets } from './change-sets.ts';

/** What is shown of a command in a list of change sets. */
const SHOWN = 200;

/**
 * Launches a command on a layer over the workspace; its result says what it changed. With the effect `undoable` that is in
 * the workspace by then.
 */
export async function launchPreview(
  prepared: PreparedSandbox,
  resolved: StartableCommand,
  context: RunContext,
  options: SpawnOptions,
  how: Launch,
): Promise<RunningCommand> {
  const { addon, plan } = prepared;
  const { workspace } = plan;
  const sets = new ChangeSets(addon);
  const isApplied = options.effect === 'undoable';
  const refused = (error: unknown): RunningCommand => {
    if (!(error instanceof SandboxError)) throw error;
    how.release?.();
    return neverBegun(notRun(context, { status: 'setup-failed', error: errorOf(error.code, error.message) }));
  };
  let opened: ReturnType<ChangeSets['open']>;
  try {
    opened = sets.open(workspace, options.on);
  } catch (error) {
    return refused(error);
  }
  let layered: PreparedSandbox;
  let copies: readonly NativeChangedCopy[] = [];
  try {
    layered = await prepared.withLayer(opened.layer);
  } catch (error) {
    await sets.abandon(opened);
    return refused(error);
  }
  const ofLayer: PreparedSandbox = {
    ...layered,
    settle: (effects) => {
      copies = [...copies, ...(effects.copies ?? [])];
      return [];
    },
  };
  const launcher = new Launcher(ofLayer);
  const running = launcher.launch(resolved, { ...context, report: layered.plan.report }, options, how);
  const asked = commandOf(context.argv);
  const command = (typeof asked === 'string' ? asked : asked.map(readableWord).join(' ')).slice(0, SHOWN);
  const finish = async (result: ExecutionResult): Promise<ExecutionResult> => {
    await new Promise<void>((done) => addon.closeConfinement(layered.confinement, done));
    if (result.status === 'setup-failed') {
      await sets.abandon(opened);
      return result;
    }
    try {
      const { on } = options;
      const found = await sets.close(opened, { workspace, command, on }, copies);
      if (found === undefined) return { ...result, changes: isApplied ? undefined : NOTHING_CHANGED(on) };
      if (!isApplied) return { ...result, changes: previewed(found) };
      const { leftBehind, notDone, state } = await sets.applyAll(prepared, found.id);
      const warnings = [
        ...result.warnings,
        ...notDone.map(({ path, why }) => `${path} is not in the workspace: ${why}`),
      ];
      return { ...result, leftBehind, warnings, changes: { ...previewed(found), state } };
    } catch (error) {
      opened[Symbol.dispose]();
      const why = `what the command changed cannot be read, and nothing of it is in the workspace (${errorMessage(error)})`;
      return { ...result, warnings: [...result.warnings, why] };
    }
  };
  return { ...running, result: running.result.then(finish) };
}

type Previewed = NonNullable<ExecutionResult['changes']>;

const NOTHING_CHANGED = (on: string | undefined): Previewed => ({
  ...{ id: undefined, state: 'waiting', on, changes: [], more: 0, notApplied: 0 },
  counts: { created: 0, changed: 0, deleted: 0, renamed: 0 },
});

function previewed({ id, state, on, counts, notApplied, changes, more }: Previewed): Previewed {
  return { id, state, on, counts, notApplied, changes, more };
}
