import { operatorStateSettings, type StateSettings } from '../../run/index.ts';
import { type ApprovalsOf, approvalsOf } from '../approvals/approvals.ts';
import { addServerOptions, type ConnectionArguments, DEFAULT_URL, settingsOf } from './options.ts';

const HELP_AFTER = `
Each request is shown with its machine, its queue and its job. Requests wait on the server where the policy
of the workers says ask = "queue" and names that server (state.url). The first answer counts, wherever
it comes from, and is taken once. Without --url it is the server of your own policy.

Examples:
  sandbox-run fleet approvals list --url tls://nats.example.org
  sandbox-run fleet approvals approve 5c1f0e9b7a3d48c2f6e0b1a9
  sandbox-run fleet approvals watch
  sandbox-run fleet approvals serve --port 8022

Exit status: as of sandbox-run approvals.`;

type Where = Partial<Pick<ConnectionArguments, 'url' | 'creds' | 'ca'>>;

const OF_FLEET: ApprovalsOf<Where> = {
  name: 'sandbox-run fleet approvals',
  about: 'Shows and answers what the workers of a fleet ask about.',
  helpAfter: HELP_AFTER,
  options: (command) => addServerOptions(command, undefined),
  settings: stateOf,
};

/** `sandbox-run fleet approvals`: what `sandbox-run approvals` does, on the server of a fleet. */
export async function fleetApprovals(args: readonly string[]): Promise<number> {
  return approvalsOf(OF_FLEET, args);
}

const UNSAID = { credentials: undefined, ca: undefined, replicas: undefined, onFailure: 'refuse' } as const;

/** Who names a server says all of where it is: credentials of the policy are for the one of the policy. */
async function stateOf({ url, ...said }: Where): Promise<StateSettings> {
  const policy = url === undefined ? await operatorStateSettings() : undefined;
  const server = settingsOf({ url: url ?? policy?.url ?? DEFAULT_URL, ...said });
  return { ...UNSAID, ...policy, ...server };
}
