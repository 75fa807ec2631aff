import { z } from 'zod';
import { policyFileSchema } from '../policy/schema.ts';

/** What a key may look like. Uncommented, all of them together are a valid policy. */
const EXAMPLES: Readonly<Record<string, string>> = {
  profile: '"workspace-write"',
  'security.autonomy': '"contained"',
  'security.max_actions_per_hour': '500',
  'security.workspace_dir': '"~/work"',
  'commands.allow': '["ls", "cat", "git"]',
  'commands.permit_dangerous': '["docker"]',
  'commands.rules':
    '[{ program = "git", words = ["push"], verdict = "ask", match = ["git push"], not_match = ["git status"] }]',
  'filesystem.read': '["~/data"]',
  'filesystem.write': '["../build-output"]',
  'filesystem.protect': '["deploy"]',
  'filesystem.secret': '["~/.aws", ".env"]',
  'filesystem.tmp': '"auto"',
  'filesystem.home': '"private"',
  'filesystem.cache': '"workspace"',
  'network.mode': '"off"',
  'network.unix_sockets': '"contained"',
  'environment.pass': '["NODE_ENV", "MYAPP_*"]',
  'environment.set': '{ NODE_ENV = "test" }',
  'limits.timeout_seconds': '60',
  'limits.kill_grace_seconds': '2',
  'limits.output_bytes': '1048576',
  'limits.output_head_bytes': '262144',
  'limits.idle_timeout_seconds': '0',
  'limits.memory': '4294967296',
  'limits.processes': '4096',
  'limits.cpu_seconds': '600',
  'limits.tmp_bytes': '4294967296',
  'limits.user_processes': '10000',
  'limits.open_files': '1024',
  'limits.file_size': '1073741824',
  'limits.address_space': '8589934592',
  'limits.umask': '"022"',
  'approval.ask': '"terminal"',
  'approval.timeout_seconds': '300',
  'approval.reviewer_timeout_seconds': '10',
  'reviewer.command': '["/usr/local/bin/review-command"]',
  'reviewer.model': '"claude-haiku-4-5"',
  'reviewer.base_url': '"https://api.anthropic.com"',
  'reviewer.key_variable': '"ANTHROPIC_API_KEY"',
  'reviewer.max_tokens': '1024',
  'hooks.git_guard': 'true',
  'hooks.plugins': '[{ path = "/etc/sandbox-run/hooks/mine.mjs" }]',
  'audit.enabled': 'true',
  'audit.on_failure': '"refuse"',
  'audit.hmac_key_file': '"/etc/sandbox-run/audit.key"',
  demand: '{ protected-paths = "required" }',
  'unsafe.unjudged_commands': 'false',
  'sandbox.minimum': '"landlock"',
};

interface Node {
  readonly description?: string;
  readonly properties?: Readonly<Record<string, Node>>;
}

function wrap(text: string): readonly string[] {
  return text.match(/.{1,96}(?: |$)/g)?.map((line) => `# ${line.trimEnd()}`) ?? [];
}

function keyLines(key: string, name: string, node: Node): readonly string[] {
  const example = EXAMPLES[key];
  return [...wrap(node.description ?? ''), ...(example === undefined ? [] : [`# ${name} = ${example}`]), ''];
}

/** A policy file in which every key stands as a comment with what it means, made from the schema. */
export function policyTemplate(): string {
  const root: Node = z.toJSONSchema(policyFileSchema, { io: 'input' }) as Node;
  const nodes = Object.entries(root.properties ?? {});
  const lines = nodes
    .filter(([, node]) => node.properties === undefined)
    .flatMap(([name, node]) => keyLines(name, name, node));
  for (const [table, node] of nodes) {
    if (node.properties === undefined) continue;
    lines.push(...(node.description === undefined ? [] : wrap(node.description)), `[${table}]`, '');
    for (const [name, child] of Object.entries(node.properties))
      lines.push(...keyLines(`${table}.${name}`, name, child));
  }
  return `# Policy of sandbox-run. Without this file the built-in policy holds.\n\n${lines.join('\n').trimEnd()}\n`;
}
