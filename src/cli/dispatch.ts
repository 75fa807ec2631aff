import { SandboxError } from '../base/errors/sandbox-error.ts';
import { requireExactArguments, requireExactVariables } from '../workspace/index.ts';
import { caller } from './shared/caller.ts';
import { printError } from './shared/print.ts';

/** A subcommand: takes its arguments, returns the exit status. */
type CliCommand = (args: readonly string[]) => Promise<number>;

/** THE registry of subcommands. Each is loaded only when it is called. */
export const SUBCOMMANDS: Readonly<Record<string, () => Promise<CliCommand>>> = {
  approvals: async () => (await import('./approvals/approvals.ts')).approvals,
  audit: async () => (await import('./audit/audit.ts')).audit,
  budget: async () => (await import('./budget.ts')).budget,
  cache: async () => (await import('./cache.ts')).cache,
  changes: async () => (await import('./changes.ts')).changes,
  check: async () => (await import('./check/check.ts')).check,
  completion: async () => (await import('./help/help.ts')).completion,
  confined: async () => (await import('./confined.ts')).confined,
  doctor: async () => (await import('./doctor/doctor.ts')).doctor,
  examples: async () => (await import('./help/help.ts')).examples,
  fleet: async () => (await import('./fleet/fleet.ts')).fleet,
  gate: async () => (await import('./gate.ts')).gate,
  help: async () => (await import('./help/help.ts')).help,
  history: async () => (await import('./changes.ts')).history,
  hook: async () => (await import('./hook/hook.ts')).hook,
  install: async () => (await import('./install.ts')).install,
  kept: async () => (await import('./kept.ts')).kept,
  learn: async () => (await import('./learn/learn.ts')).learn,
  logs: async () => (await import('./services/commands.ts')).logs,
  mcp: async () => (await import('./mcp.ts')).mcp,
  policy: async () => (await import('./policy/policy.ts')).policy,
  ps: async () => (await import('./services/commands.ts')).ps,
  redo: async () => (await import('./changes.ts')).redo,
  restart: async () => (await import('./services/commands.ts')).restart,
  schema: async () => (await import('./schema.ts')).schema,
  serve: async () => (await import('./serve.ts')).serve,
  session: async () => (await import('./session/session.ts')).session,
  stop: async () => (await import('./services/commands.ts')).stop,
  submit: async () => (await import('./fleet/submit.ts')).submit,
  trust: async () => (await import('./trust.ts')).trust,
  undo: async () => (await import('./changes.ts')).undo,
  untrust: async () => (await import('./trust.ts')).untrust,
  up: async () => (await import('./services/commands.ts')).up,
  worker: async () => (await import('./fleet/worker.ts')).worker,
};

/** `help SUBCOMMAND` is `SUBCOMMAND --help`. */
function ofHelp(args: readonly string[]): readonly string[] {
  const [first, topic = '', ...more] = args;
  const isOfSubcommand = first === 'help' && more.length === 0 && Object.hasOwn(SUBCOMMANDS, topic);
  return isOfSubcommand ? [topic, '--help'] : args;
}

/**
 * Runs a command line and returns the exit status. A first word that names a subcommand is one;
 * `sandbox-run -- doctor` runs a program of that name.
 */
export async function dispatch(args: readonly string[]): Promise<number> {
  try {
    requireExactArguments(args);
    requireExactVariables(caller().env);
    const [first = '', ...rest] = ofHelp(args);
    const subcommand = Object.hasOwn(SUBCOMMANDS, first) ? SUBCOMMANDS[first] : undefined;
    if (subcommand !== undefined) return await (await subcommand())(rest);
    const { run } = await import('./run/run.ts');
    return await run(args, Object.keys(SUBCOMMANDS));
  } catch (error) {
    if (!(error instanceof SandboxError)) throw error;
    printError(error.problem, error.remedy);
    return error.exitStatus;
  }
}
