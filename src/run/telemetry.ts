import { basename } from 'node:path';
import type { Running } from '../confine/running.ts';
import type { ExecutionResult, Facts, Measured, Telemetry } from '../model/index.ts';
import type { Launch } from './launch/launch.ts';
import type { RunningCommand } from './launch/pending-command.ts';

/** Where every copy of @opentelemetry/api 1.x keeps what an application has registered. */
const REGISTERED = Symbol.for('opentelemetry.js.api.1');

/**
 * What measures for the providers of OpenTelemetry that the application has registered by now. `undefined`: there are none,
 * or the package is not installed beside us; nothing was loaded then.
 */
export async function openTelemetry(): Promise<Telemetry | undefined> {
  const registered: unknown = Reflect.get(globalThis, REGISTERED);
  if (typeof registered !== 'object' || registered === null) return undefined;
  if (!('trace' in registered || 'metrics' in registered)) return undefined;
  try {
    const { createTelemetry } = await import('./otel.ts');
    return createTelemetry();
  } catch {
    return undefined;
  }
}

/** Measures a run from its request to its result. */
export function measuredRun(telemetry: Telemetry, begin: () => RunningCommand): RunningCommand {
  const run = telemetry.begin('run');
  return endedWith(run, () => run.within(begin), factsOfResult);
}

/** Measures the time until a command runs, or until it is known that it does not. */
export function measuredLaunch(
  telemetry: Telemetry,
  how: Launch,
  begin: (how: Launch) => RunningCommand,
): RunningCommand {
  const launch = telemetry.begin('launch');
  const onLaunch = (running: Running) => {
    launch.end();
    how.onLaunch?.(running);
  };
  return endedWith(
    launch,
    () => begin({ ...how, onLaunch }),
    ({ status }) => ({ status }),
  );
}

/** Ends a measurement with the result of a command, if nothing has before. */
function endedWith(
  measured: Measured,
  begin: () => RunningCommand,
  facts: (result: ExecutionResult) => Facts,
): RunningCommand {
  let started: RunningCommand;
  try {
    started = begin();
  } catch (error) {
    measured.end({ status: 'failed' });
    throw error;
  }
  const result = started.result.then(
    (ended) => {
      measured.end(facts(ended));
      return ended;
    },
    (error: unknown) => {
      measured.end({ status: 'failed' });
      throw error;
    },
  );
  return { ...started, result };
}

/** Attributes of a result. The first word is left out if it named no program, because it may be anything. */
function factsOfResult({ status, exitCode, argv, report, processTree, error }: ExecutionResult): Facts {
  const wasStarted = status !== 'denied' && status !== 'setup-failed' && status !== 'canceled';
  return {
    ...{ status, 'exit.code': exitCode, backend: report.backend, 'process.tree': processTree.tier },
    'error.type': error?.code,
    program: wasStarted ? basename(argv[0] ?? '') : undefined,
  };
}
