import { Argument } from 'commander';
import { createProgram, parseArguments } from '../shared/parse.ts';
import { printOut } from '../shared/print.ts';
import { paintFor } from '../shared/style.ts';

/** A command line to copy. */
interface ExampleLine {
  /** What it is for. */
  readonly does: string;
  readonly line: string;
}

/**
 * THE list of `sandbox-run examples`, by topic. Each line is parsed by a test with the parser that
 * a user's line meets.
 */
export const EXAMPLE_LINES: Readonly<Record<string, readonly ExampleLine[]>> = {
  run: [
    {
      does: 'A program with its arguments, confined to the current directory',
      line: 'sandbox-run -- git status',
    },
    { does: 'A shell string', line: "sandbox-run -c 'npm test 2>&1 | tail -20'" },
    {
      does: 'A further directory to read, and a variable',
      line: 'sandbox-run --ro ~/.npm --env NODE_ENV=test -- npm ci --offline',
    },
    {
      does: 'Less memory, less time, fewer processes',
      line: 'sandbox-run --memory 512M --timeout 300 --max-processes 64 -- make -j4',
    },
    {
      does: 'Without what the workspace has of secrets',
      line: "sandbox-run --hide .env --hide '*.pem' -- npm test",
    },
    { does: 'With the network', line: 'sandbox-run --profile networked -- cargo fetch' },
    { does: 'On a terminal of its own', line: 'sandbox-run -t --timeout 0 -- bash' },
    { does: 'The result as one JSON object', line: "sandbox-run --json -c 'make' | jq .status" },
    { does: 'Show what would be enforced, run nothing', line: 'sandbox-run --dry-run -- npm test' },
  ],
  check: [
    { does: 'What the policy thinks of a command', line: "sandbox-run check -c 'git push origin main'" },
    {
      does: 'The same for an agent that works alone',
      line: 'sandbox-run check --autonomy autonomous -- rm -r build',
    },
    {
      does: 'The same after something untrusted was read',
      line: "sandbox-run check --taint corruption,secret -c 'curl https://example.org'",
    },
    { does: 'Many commands, one JSON object per line', line: 'sandbox-run check --batch < commands.jsonl' },
  ],
  policy: [
    { does: 'Write a commented policy file', line: 'sandbox-run policy init' },
    { does: 'Every value in force, and where it comes from', line: 'sandbox-run policy show --explain' },
    { does: 'Look for mistakes in a file', line: 'sandbox-run policy validate .sandbox-run.toml' },
    { does: 'A JSON Schema for editors', line: 'sandbox-run policy schema > policy.schema.json' },
  ],
  approvals: [
    { does: 'What waits for an answer', line: 'sandbox-run approvals list' },
    { does: 'All that is known of a request', line: 'sandbox-run approvals show 5c1f0e9b7a3d48c2f6e0b1a9' },
    {
      does: 'Allow it for the rest of its session',
      line: 'sandbox-run approvals approve 5c1f0e9b7a3d48c2f6e0b1a9 --scope session',
    },
    { does: 'Answer requests as they come', line: 'sandbox-run approvals watch' },
    { does: 'Queue what the policy asks, and wait', line: 'sandbox-run --ask queue -- git push' },
  ],
  audit: [
    { does: 'The last records, and those that come', line: 'sandbox-run audit tail -f' },
    {
      does: 'What was refused in the last two hours',
      line: 'sandbox-run audit search --verdict deny --since 2h',
    },
    { does: 'Everything about one request', line: 'sandbox-run audit show 1042' },
    { does: 'Whether anything was changed', line: 'sandbox-run audit verify' },
  ],
  session: [
    { does: 'Start a shell that lives on', line: 'sandbox-run session start --name build' },
    { does: 'Run a command in it', line: "sandbox-run session run build -- 'cd src && make'" },
    { does: 'End it', line: 'sandbox-run session stop build' },
    {
      does: 'Remember what an agent was exposed to, from command to command',
      line: 'sandbox-run --session fix-the-build -- cat README.md',
    },
    {
      does: 'Note an exposure that no command shows',
      line: "sandbox-run session taint fix-the-build secret --reason 'the key was pasted'",
    },
  ],
  gate: [
    {
      does: 'Decide for agents in containers',
      line: 'sandbox-run gate serve --socket /run/user/1000/gate.sock --workspace ~/project',
    },
    { does: 'Ask from inside', line: "sandbox-run gate check --socket /gate.sock -c 'git push'" },
  ],
  fleet: [
    {
      does: 'Run commands of a queue on this machine',
      line: 'sandbox-run worker --queue builds --slots 4 --workspace ~/builds',
    },
    { does: 'Hand one over and wait', line: 'sandbox-run submit --queue builds --wait -- make test' },
    {
      does: 'On what is committed here, again if its worker dies',
      line: "sandbox-run submit --queue builds --workspace-from git:. --retry 1 --wait -c 'npm ci && npm test'",
    },
    { does: 'Workers, slots and jobs', line: 'sandbox-run fleet status --queue builds' },
    { does: 'Answer what workers ask about', line: 'sandbox-run fleet approvals watch' },
  ],
  doctor: [
    { does: 'What this host can enforce', line: 'sandbox-run doctor' },
    { does: 'Try to get out, and say what held', line: 'sandbox-run doctor --attack' },
    { does: 'The same for a weaker backend', line: 'sandbox-run doctor --attack --backend application' },
  ],
};

const HELP_AFTER = `
Examples:
  sandbox-run examples
  sandbox-run examples session

Exit status: 0; 125 if there is no such topic.`;

/** `sandbox-run examples [TOPIC]`: command lines to copy. */
export async function examples(args: readonly string[]): Promise<number> {
  const program = createProgram(
    'sandbox-run examples',
    'Shows command lines to copy, by topic. Nothing is run.',
    HELP_AFTER,
  ).addArgument(new Argument('[topic]', 'only those of one topic').choices(Object.keys(EXAMPLE_LINES)));
  const parsed = parseArguments(program, args);
  if (parsed === undefined) return 0;
  const [wanted] = parsed.args;
  const paint = paintFor(1);
  const topics = Object.entries(EXAMPLE_LINES)
    .filter(([topic]) => wanted === undefined || topic === wanted)
    .map(([topic, lines]) => {
      const shown = lines.map(({ does, line }) => `  ${paint('faint', `# ${does}`)}\n  ${line}\n`);
      return `${paint('strong', topic)}\n${shown.join('')}`;
    });
  printOut(topics.join('\n'));
  return 0;
}
