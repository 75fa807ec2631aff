import { effectivePolicy } from '../policy/effective.ts';
import { type ExplainedValue, explainPolicy, type Source } from '../policy/provenance.ts';
import { weakenings } from '../policy/settings.ts';
import { CHECKS_IN_SESSION } from '../run/judgement.ts';
import { type ResolvedPolicy, resolvePolicy } from '../run/resolve-policy.ts';
import type { SandboxOptions } from '../run/sandbox-options.ts';

interface How {
  readonly explain?: boolean;
  readonly json?: boolean;
}

/** The effective policy as text. */
export async function showPolicy(options: SandboxOptions, { explain, json }: How): Promise<string> {
  const resolved = await resolvePolicy(options);
  const { workspace, home, operators, named, layers, workspaceLayer } = resolved;
  const base = effectivePolicy({ profile: named.profile }, workspace, home);
  const values = explainPolicy({ base, layers, operators, narrowed: named, workspaceFile: workspaceLayer });
  const weaker = weakenings(named, effectivePolicy({}, workspace, home));
  if (json === true) {
    const checks = CHECKS_IN_SESSION.map(({ name, summary }) => ({ name, summary }));
    const shown = explain === true ? values : values.map(({ key, value }) => ({ key, value }));
    return `${JSON.stringify({ workspace, values: shown, weakerThanDefault: weaker, checks }, null, 2)}\n`;
  }
  const lines = [
    `# Policy in ${workspace}`,
    ...values.map((value) => describeValue(value, explain === true)),
    ...(explain === true ? explanation(resolved) : []),
    weaker.length === 0
      ? '# Nothing is weaker than the default policy.'
      : '# Weaker than the default policy:',
    ...weaker.map(({ key, meaning }) => `#   ${key}: ${meaning}`),
  ];
  return `${lines.join('\n')}\n`;
}

function describeValue({ key, value, item, source }: ExplainedValue, explain: boolean): string {
  const line =
    value === undefined ? `# ${key} is not set` : `${key} ${item ? '+=' : '='} ${JSON.stringify(value)}`;
  return explain ? `${line.padEnd(52)}  # ${describeSource(source)}` : line;
}

function describeSource({ layer, path, line }: Source): string {
  if (path !== undefined) return `${layer}: ${path}${line === undefined ? '' : `:${line}`}`;
  return layer === 'profile' ? 'built-in profile' : layer;
}

function explanation({ named, layers, workspaceLayer }: ResolvedPolicy): readonly string[] {
  const granted = named.filesystem.rules.filter(({ reason }) => !reason.startsWith('filesystem.'));
  return [
    '# Granted besides, where it exists:',
    ...granted.map(({ path, access, reason }) => `#   ${access.padEnd(6)} ${path.padEnd(32)} ${reason}`),
    '# Files:',
    ...layers.map(({ name, path }) => `#   ${name}: ${path ?? 'an object'}`),
    ...(workspaceLayer === undefined ? [] : [`#   workspace: ${workspaceLayer.path}`]),
    '# Checks, all of which run; the strictest wins:',
    ...CHECKS_IN_SESSION.map(({ name, summary }) => `#   ${name.padEnd(12)} ${summary}`),
  ];
}
