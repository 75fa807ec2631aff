import { openOwnState, operatorPolicy } from '../run/index.ts';
import { withSubcommands } from './shared/parse.ts';
import { jsonLine } from './shared/print.ts';

const HELP_AFTER = `
security.max_actions_per_hour in the policy is the limit: commands that were launched within any
3,600 seconds, by every sandbox-run of this user together. Refused commands do not count.

Examples:
  sandbox-run budget show
  sandbox-run budget show --json
  sandbox-run budget reset

Exit status: 0; 125 if the state directory cannot be used or anything else failed.`;

interface Options {
  readonly principal?: string;
  readonly policy?: string;
  readonly json?: boolean;
}

/** `sandbox-run budget`: the actions of the last hour. */
export async function budget(args: readonly string[]): Promise<number> {
  const { command, does, run } = withSubcommands(
    'sandbox-run budget',
    'Shows how many actions of this hour are used, or resets the count.',
    HELP_AFTER,
  );
  command('show', 'actions of the last 3,600 seconds, and the limit')
    .option('--principal <name>', 'another principal than this user')
    .option('--policy <file>', 'policy file')
    .option('--json', 'one JSON object')
    .action((options: Options) => does(() => show(options)));
  command('reset', 'sets the count to zero')
    .option('--principal <name>', 'another principal than this user')
    .action((options: Options) => does(() => reset(options)));
  return run(args);
}

async function show({ principal: named, policy: file, json }: Options): Promise<string> {
  const policy = await operatorPolicy(file);
  const limit = policy.security.maxActionsPerHour;
  const { state, principal } = await openOwnState(named, policy.state);
  const used = await state.budget.used(principal);
  await state.close();
  if (json === true) return jsonLine({ principal, used, limit: limit ?? null });
  const rest = limit === undefined ? 'there is no limit' : `of ${limit}, ${Math.max(0, limit - used)} left`;
  return `${principal}: ${used} actions in the last hour, ${rest}\n`;
}

async function reset({ principal: named }: Options): Promise<string> {
  const { state, principal } = await openOwnState(named);
  const forgotten = await state.budget.reset(principal);
  await state.close();
  return `${principal}: ${forgotten} actions forgotten\n`;
}
