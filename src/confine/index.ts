/**
 * Containment without judging: turns a grant into kernel restrictions, reports what they enforce, and starts commands under
 * them. docs/confine.md describes the interface on one page.
 */
export type { Backend } from './backends/backend.ts';
export type { Confinement, ConfineOptions, Confiner, Preparation, Unenforceable } from './confine.ts';
export { confine, isUnenforceable } from './confine.ts';
export type { NativeEvent, NativeOutcome } from './native/contract.ts';
export type { ControlId, EnforcementReport } from './plan/enforcement-report.ts';
export type { Demands, Grant } from './plan/grant.ts';
export type { HostFeatures } from './plan/host-features.ts';
export type { LaunchPlan } from './plan/launch-plan.ts';
export { probeHost } from './probe.ts';
export type { CommandToStart, Running } from './running.ts';
export { tryCommand } from './try-command.ts';
