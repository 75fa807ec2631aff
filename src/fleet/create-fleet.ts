// What `sandbox-run/fleet` exports.
import type { Fleet, FleetOptions } from './fleet-api.ts';

export type { FleetPriority, FleetResult, FleetRun, FleetRunOptions, FleetStatus } from '../model/fleet.ts';
export type { Downloaded, Fleet, FleetJob, FleetOptions, HeldChanges } from './fleet-api.ts';

/**
 * Connects with a fleet. What that needs is loaded then: most programs have none.
 * @throws {SandboxError} `usage.invalid` for an option that is none; `fleet.uninstalled`, `fleet.invalid`, `fleet.unreachable`
 * or `fleet.refused`.
 */
export async function createFleet(options: FleetOptions): Promise<Fleet> {
  const { openFleet } = await import('./fleet.ts');
  return openFleet(options);
}
