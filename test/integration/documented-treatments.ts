import { writeFileSync } from 'node:fs';
import { join } from 'node:path';

/** How a line is run; without a word it runs in bash, in the project, and ends with status 0. */
export interface Treatment {
  readonly status?: number;
  readonly shell?: 'zsh' | 'fish';
  /** A program that not every machine has. */
  readonly needs?: string;
  /** It needs namespaces, and what follows in its block needs it. */
  readonly namespaces?: true;
  /** It has a terminal, on which somebody types `exit`. */
  readonly terminal?: true;
  /** It goes on until it is ended, once it has printed this. */
  readonly serves?: RegExp;
  /** It waits until somebody approves it. */
  readonly approved?: true;
  /** What must be there. */
  readonly before?: (project: string, site: string) => void;
}

/** THE table of lines that run in a way of their own. */
export const TREATED: Readonly<Record<string, Treatment>> = {
  "sandbox-run check --profile strict-nine -c 'rg --pre ./x todo'": { status: 126 },
  "grep -c ' / / ro.* - tmpfs sandbox-run ' /proc/self/mountinfo": { status: 1 },
  'source <(sandbox-run completion zsh)': { shell: 'zsh', needs: 'zsh' },
  'sandbox-run completion fish | source': { shell: 'fish', needs: 'fish' },
  'man sandbox-run': { needs: 'man' },
  'sandbox-run --json=full -- echo hello | jq .report.backend': { needs: 'jq' },
  // What would allow it is told to a person at a terminal. Without namespaces cp fails with another errno.
  'sandbox-run -- make': {
    namespaces: true,
    terminal: true,
    needs: 'script',
    status: 2,
    before: (project, site) =>
      writeFileSync(join(project, 'Makefile'), `all:\n\tcp src/main.js ${site}/index.html\n`),
  },
  // It ends as make does.
  'sandbox-run learn --output policy.toml -- make': { status: 2 },
  "sandbox-run check -c 'npm test 2>&1 | tail -20; echo done >> ../log'": { status: 126 },
  'sandbox-run check --json --taint secret -- curl https://example.org': { status: 126 },
  'sandbox-run gate serve --socket /run/agent/gate.sock': { serves: /gate\.sock/ },
  'sandbox-run approvals serve': { serves: /http:/ },
  'sandbox-run -t --timeout 0 -- bash': { terminal: true, needs: 'script' },
  'sandbox-run --preview -- npm install': { namespaces: true },
  "sandbox-run --preview -c 'rm notes; echo 1 > new'": { namespaces: true },
  'sandbox-run --hide .env -- cat .env': { namespaces: true },
  'sandbox-run rm notes.txt draft.md': {
    namespaces: true,
    before: (project) => {
      for (const name of ['notes.txt', 'draft.md']) writeFileSync(join(project, name), '');
    },
  },
  'sandbox-run up web --ready 5173 -- npm run dev': {
    before: (project) => {
      const server = "require('node:http').createServer((_, r) => r.end('hello')).listen(5173, '127.0.0.1')";
      const scripts = { dev: `node -e ${JSON.stringify(server)}` };
      writeFileSync(join(project, 'package.json'), JSON.stringify({ name: 'p', version: '1.0.0', scripts }));
    },
  },
  'sandbox-run -- curl -s localhost:5173': { namespaces: true, needs: 'curl' },
  // These are refused.
  'sandbox-run -- cat ~/.ssh/id_ed25519': { status: 126 },
  "sandbox-run -c 'echo ./steal > .git/hooks/pre-commit'": { status: 126 },
  // These ask, and nobody is there to answer.
  'sandbox-run --autonomy supervised -- git clean -fd': { status: 126 },
  'sandbox-run --profile networked -- npm install': { status: 126 },
  'sandbox-run --autonomy supervised --ask queue -- git clean -fd': { approved: true },
};

/** THE table of lines that cannot be run here, with the reason. */
export const NOT_RUN: Readonly<Record<string, string>> = {
  "sandbox-run -c 'rm -r notes'":
    'asks on a terminal, where undo is off: test/library/questions.test.ts has the texts',
  'sudo apt-get install --no-install-recommends ca-certificates git g++ cmake make nodejs npm':
    'installs packages on this machine',
  'npm ci && npx sandbox-run -- git status': 'installs this checkout from the registry, and builds it',
  'npm ci && npm run pack:here && npm install -g ./packages/*.tgz':
    'builds this checkout: test/packaging/install.test.ts installs the tarballs so, in a prefix of its own',
  'sandbox-run trust': 'asks on a terminal: test/cli/trust.test.ts types the answers',
  'npm ci && npm test': 'installs this checkout from the registry, and runs this test again',
  'sandbox-run approvals watch': 'asks on a terminal as requests come: test/cli/approvals.test.ts',
  'sandbox-run --unlisted ask --ask queue -- npm install':
    'asks only about names outside of this machine: test/cli/ask-for-hosts.test.ts has some of its own',
  'sandbox-run up web --publish 5173 --ready 5173 -- npx vite':
    'publishes a port of this machine that somebody may have',
  "sandbox-run up db --ready 5432 -c 'test -d .pgdata || initdb -D .pgdata -A trust; exec postgres -D .pgdata -k /tmp'":
    'PostgreSQL refuses to run as root',
  "sandbox-run -- psql -h /tmp -d postgres -c 'select 1'": 'needs that database',
  'npm install --save-dev @playwright/mcp': 'loads a package of the registry',
  'sandbox-run up tools --publish 8931 --ready 8931 --net example.org -- npx playwright-mcp --port 8931 --headless --isolated --no-sandbox --executable-path /usr/bin/chromium':
    'needs that package, and publishes a port of this machine that somebody may have',
  'npm run bench': 'measures for minutes',
  '/usr/local/bin/sandbox-run confined':
    'stands for an installation for the whole machine: test/integration/agents.test.ts asks inside and outside',
  'npm run programs:compare -- rg':
    'runs in a checkout: test/unit/judge/programs/sources.test.ts uses the same',
  'apt-get install nats-server && npm install @nats-io/transport-node @nats-io/jetstream @nats-io/kv @nats-io/obj':
    'installs packages on this machine',
  'examples/fleet/up': 'starts a NATS server and workers: test/cli/fleet.test.ts runs it',
  'sandbox-run submit --queue builds --wait --workspace-from . -- make test':
    'needs that server: test/cli/fleet.test.ts',
  'sandbox-run fleet status --queue builds': 'needs that server: test/cli/fleet.test.ts',
  "sandbox-run audit search --fleet --text 'git push' --since 7d": 'needs a NATS server: test/fleet has one',
  'sandbox-run audit verify --fleet --complete': 'needs a NATS server: test/fleet has one',
};

/** What a block needs that is no line of a shell: by a text that stands in it. */
export interface Snippet {
  /** The file is another program's, and has these keys. */
  readonly keys?: readonly string[];
  /** Code before it; behind a line `---` that in which a path stands for the project. */
  readonly before?: string;
  readonly after?: string;
  /** Only its types are checked. */
  readonly run?: false;
  /** It is what a model is told of this command. */
  readonly command?: string;
  /** Why it is not run. */
  readonly not?: string;
}

const SANDBOX = `import { createSandbox } from 'sandbox-run';
---
const sandbox = await createSandbox({ workspace: '/home/me/project' });
`;
const CLOSED = 'await sandbox.close();';

export const SNIPPETS: Readonly<Record<string, Snippet>> = {
  'shell_tool = false': { keys: ['features', 'mcp_servers'] },
  "import { createShell } from 'sandbox-run/openai';": { before: SANDBOX, after: CLOSED },
  'createBashTool({': { before: SANDBOX, after: CLOSED },
  "await createFleet({ url: 'nats://127.0.0.1:4222'": {
    run: false,
    not: 'needs a NATS server and workers: test/fleet has them',
  },
  "await sandbox.run(['git', 'log', ref]);": {
    before: `${SANDBOX}const [ref, word, dir, files] = ['HEAD', 'first', 'src', ['notes']];\n`,
    after: CLOSED,
  },
  "import { spawn } from 'node:child_process';\n\nconst { program": {
    before: SANDBOX,
    after: CLOSED,
  },
  "import { spawn } from '@lydell/node-pty';": {
    before: SANDBOX,
    after: `await new Promise((ended) => terminal.onExit(ended));\n${CLOSED}`,
  },
  "const tests = sandbox.start('npm test');": { before: SANDBOX, after: CLOSED },
  "await sandbox.run(['wc', '-l'], {": { before: SANDBOX, after: CLOSED },
  "await sandbox.run('npm test', { reject: true });": { before: SANDBOX, after: CLOSED },
  'await using shell = await sandbox.session();': {
    before: SANDBOX.replace('const sandbox', 'await using sandbox'),
  },
  "programs('frob', 'low', 'local', () =>": {
    run: false,
    before: 'declare function programs(...row: readonly unknown[]): void;\n',
    not: 'is a row of the table: test/unit/docs/adding-a-command.test.ts evaluates it',
  },
  '"source": "frob 1.2"': {
    run: false,
    not: 'is what the row says: test/unit/docs/adding-a-command.test.ts reads it with that',
  },
  'Not run: "touch /etc/shadow"': { command: 'touch /etc/shadow' },
};
