import { requireExactVariables } from '../../host/exact-text.ts';
import { type Policy, reviewerSettings } from '../../model/policy.ts';
import { type BuiltEnvironment, buildEnvironment } from '../../policy/environment.ts';

/** What a policy passes on of this process's environment; the key of its reviewer is none of a command's business. */
export function commandEnvironment(policy: Policy): BuiltEnvironment {
  const { environment } = policy;
  const reviewer = reviewerSettings(policy);
  const key = reviewer?.kind === 'model' ? reviewer.keyVariable : undefined;
  const built = buildEnvironment(process.env, environment.pass, environment.set, key);
  requireExactVariables(Object.keys(built.variables).filter((name) => !(name in environment.set)));
  return built;
}
