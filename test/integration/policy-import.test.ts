import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  realpathSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { pathToFileURL } from 'node:url';
import fc from 'fast-check';
import { parse } from 'smol-toml';
import { afterAll, describe, expect, it } from 'vitest';
import { type ImportPlace, importPolicy, leavesOf, type Place } from '../../src/agents/index.ts';
import { createSandbox } from '../../src/index.ts';
import { createPathLookup } from '../../src/workspace/index.ts';
import { cli, expectOneLine, makePlace } from '../cli/support.ts';
import { HOST } from '../support/tiers.ts';

const place = makePlace();
const home = join(place.root, 'home');
mkdirSync(home, { recursive: true });
const data = realpathSync(mkdtempSync(join(tmpdir(), 'sandbox-run-import-data-')));
writeFileSync(join(data, 'file'), 'data');
afterAll(() => {
  place.dispose();
  rmSync(data, { recursive: true, force: true });
});

const where = (name: string, more: Partial<ImportPlace> = {}): ImportPlace => ({
  ...{ workspace: place.workspace, home, file: join(place.root, name), exists: (path) => path === data },
  ...{ lookup: createPathLookup(), env: {} },
  ...more,
});
const env = { XDG_CONFIG_HOME: join(place.root, 'none') };
const run = (...args: readonly string[]) => cli(place, args, { env });

let made = 0;
function file(text: string, extension = 'json'): string {
  made += 1;
  const path = join(place.root, `source-${made}.${extension}`);
  writeFileSync(path, text);
  return path;
}

/** Imports with the command line, and uses the policy. */
async function imported(from: string, text: string, extension?: string, ...more: readonly string[]) {
  const source = file(text, extension);
  const policy = `${source}.toml`;
  const { exitCode, stdout } = await run(
    'policy',
    'import',
    source,
    '--from',
    from,
    '--json',
    '--output',
    policy,
    ...more,
  );
  const verdictOf = async (command: string) =>
    JSON.parse((await run('check', '--json', '--policy', policy, '-c', command)).stdout).verdict;
  const exitOf = async (command: string) =>
    (await run('--policy', policy, '--approved', '-q', '-c', command)).exitCode;
  /** A way to write what the policy protects in the workspace: refused, or the report says that it is only put back. */
  const expectProtected = async (command: string) => {
    if (HOST.namespaces) return expect(await exitOf(command)).not.toBe(0);
    const { stdout: plan } = await run('--policy', policy, '--dry-run', '--json', 'true');
    const said = expect.objectContaining({ id: 'protected-paths', state: 'degraded' });
    return expect(JSON.parse(plan).report.controls).toContainEqual(said);
  };
  return { exitCode, report: JSON.parse(stdout), policy, verdictOf, exitOf, expectProtected };
}

// Of the product's README, for Linux.
const SRT = {
  network: { allowedDomains: ['github.com', '*.npmjs.org'], deniedDomains: ['malicious.example'] },
  filesystem: {
    denyRead: ['~/.ssh'],
    allowRead: [],
    allowWrite: ['.', data, '/tmp'],
    denyWrite: ['.env', 'config/'],
  },
};

const srtSchema = async () => {
  const main = createRequire(import.meta.url).resolve('@anthropic-ai/sandbox-runtime');
  const url = pathToFileURL(join(dirname(main), 'sandbox/sandbox-config.js')).href;
  const { SandboxRuntimeConfigSchema } = await import(url);
  return SandboxRuntimeConfigSchema;
};

describe('from the Anthropic sandbox runtime', () => {
  it('holds what the source meant, and lists what it cannot', async () => {
    expect((await srtSchema()).safeParse(SRT).success).toBe(true);
    writeFileSync(join(place.workspace, '.env'), 'TOKEN=1');
    mkdirSync(join(place.workspace, 'config'), { recursive: true });
    const { exitCode, report, exitOf, expectProtected } = await imported(
      ...(['srt', JSON.stringify(SRT), 'json', '--allow-wider'] as const),
    );
    expect(exitCode).toBe(11);
    expect(report.losses.map(({ path }: { path: string }) => path).sort()).toEqual([
      'filesystem.allowWrite[2]',
      'mandatoryDenySearchDepth',
      'network.allowedDomains[0]',
      'network.allowedDomains[1]',
    ]);
    expect(report.policy).toMatchObject({
      profile: 'workspace-write',
      network: { mode: 'listed', allow: ['github.com', '*.npmjs.org'], deny: ['malicious.example'] },
      filesystem: { write: [data], protect: ['.env', 'config', '.gitconfig', '.gitmodules', '.ripgreprc'] },
    });
    expect(await exitOf('touch written')).toBe(0);
    expect(await exitOf(`touch ${data}/written`)).toBe(0);
    await expectProtected('python3 -c "open(chr(46)+\'env\', chr(119))"');
    expect(readFileSync(join(place.workspace, '.env'), 'utf8')).toBe('TOKEN=1');
    expect(await exitOf(`python3 -c "open('/root/.ssh/id', 'w')"`)).not.toBe(0);
    expect(await exitOf('exec 3<>/dev/tcp/127.0.0.1/22')).not.toBe(0);
    // The next policies hide such a file: where nothing can, they are refused while it is there.
    rmSync(join(place.workspace, '.env'));
  });

  it.each([
    [
      ['a.test:8443', 'b.test'],
      ['x.b.test:22'],
      { mode: 'listed', allow: ['a.test:8443', 'b.test'], deny: ['x.b.test:22'] },
    ],
    // Not as there: none of them is taken over.
    [
      [
        'localhost',
        '127.0.0.1',
        '10.0.0.1:5432',
        '[::1]:80',
        '*',
        '*.com',
        'a.*.test',
        'a.test:0',
        'http://a.test',
      ],
      [],
      { mode: 'off' },
    ],
    [['a.test', 'localhost:5432'], [], { mode: 'listed', allow: ['a.test'] }],
    // A denial that cannot be said would let through what is refused there.
    [['*.a.test'], ['x*.a.test'], { mode: 'off' }],
    [
      ['*.a.test'],
      ['10.0.0.0/8', '*:22'],
      { mode: 'listed', allow: ['*.a.test'], deny: ['10.0.0.0/8', '*:22'] },
    ],
    [[], ['a.test'], { mode: 'off' }],
  ])('lists hosts %j but %j, or none', async (allowedDomains, deniedDomains, network) => {
    const { report } = await imported(
      ...([
        'srt',
        JSON.stringify({ network: { allowedDomains, deniedDomains } }),
        'json',
        '--allow-wider',
      ] as const),
    );
    expect(report.policy.network).toEqual(network);
    const wider = report.losses.filter(({ effect }: { effect: string }) => effect === 'wider');
    expect(wider.map(({ path }: { path: string }) => path)).not.toContainEqual(
      expect.stringMatching(/^network/),
    );
    const told = [...report.losses, ...report.translated].map(({ path }: { path: string }) => path);
    expect(told).toEqual(
      expect.arrayContaining(allowedDomains.map((_, at) => `network.allowedDomains[${at}]`)),
    );
  });

  it.each([
    { filterRequest: true },
    { requireHostMatch: true },
    { mitmProxy: { socketPath: '/x', domains: [] } },
    { httpProxyPort: 8080 },
    { allowManagedDomainsOnly: true },
  ])('lists no hosts where requests are looked at there as well: %j', async (filter) => {
    const source = { network: { allowedDomains: ['a.test'], deniedDomains: [], ...filter } };
    const { report } = await imported('srt', JSON.stringify(source), 'json', '--allow-wider');
    expect(report.policy.network).toEqual({ mode: 'off' });
    expect(report.losses).toContainEqual(
      expect.objectContaining({ path: 'network.allowedDomains[0]', effect: 'narrower' }),
    );
  });

  it('leaves the workspace read-only where nothing makes it writable', async () => {
    const source = {
      network: { allowedDomains: [], deniedDomains: [] },
      filesystem: { denyRead: [], allowWrite: [], denyWrite: [] },
    };
    const { exitCode, report, exitOf } = await imported('srt', JSON.stringify(source));
    expect({ exitCode, profile: report.policy.profile }).toEqual({ exitCode: 0, profile: 'read-only' });
    expect(await exitOf("python3 -c \"open('new', 'w')\"")).not.toBe(0);
  });

  it('writes nothing that would be wider, unless it is told to', async () => {
    const source = JSON.stringify({
      network: { allowedDomains: [], deniedDomains: [] },
      filesystem: { denyRead: ['./secrets', '**/.env', '/usr'], allowWrite: ['.'], denyWrite: ['**/*.key'] },
    });
    const refused = await imported('srt', source);
    expect(refused).toMatchObject({ exitCode: 11, report: { output: null } });
    expect(refused.report.losses.every(({ effect }: { effect: string }) => effect === 'wider')).toBe(true);
    expect(refused.report.losses.map(({ path }: { path: string }) => path).sort()).toEqual([
      'filesystem.denyRead[2]',
      'filesystem.denyWrite[0]',
      'mandatoryDenySearchDepth',
    ]);
    expect(() => readFileSync(refused.policy)).toThrow();
    const plain = await run('policy', 'import', file(source), '--from', 'srt');
    expect(plain).toMatchObject({ exitCode: 11, stdout: '' });
    const { exitCode, report, verdictOf } = await imported('srt', source, 'json', '--allow-wider');
    expect({ exitCode, output: report.output !== null }).toEqual({ exitCode: 11, output: true });
    expect(report.policy.filesystem.hide).toEqual(['./secrets', '**/.env']);
    expect(await verdictOf('cat README.md')).toBe('allow');
  });

  it('hides what must not be read of what is allowed', async () => {
    const source = {
      network: {},
      filesystem: {
        denyRead: [`${data}/private`],
        allowRead: [data],
        allowWrite: ['.', data],
        denyWrite: [],
      },
    };
    const { report } = await imported('srt', JSON.stringify(source));
    expect(report.policy.filesystem).toMatchObject({
      write: [data],
      read: [data],
      hide: [`${data}/private`],
    });
    expect(report.losses.map(({ path }: { path: string }) => path)).toEqual(['mandatoryDenySearchDepth']);
  });
});

// Of the product's documentation.
const CLAUDE = {
  model: 'opus',
  permissions: {
    allow: ['Bash(npm run lint)', 'Bash(npm run test:*)', 'Read(~/.zshrc)'],
    ask: ['Bash(git push:*)'],
    deny: [
      'Bash(curl:*)',
      'Read(./.env)',
      'Read(./.env.*)',
      'Read(./secrets/**)',
      'Edit(./generated/**)',
      'WebFetch(domain:evil.example)',
    ],
    additionalDirectories: [data],
    defaultMode: 'acceptEdits',
  },
  env: { NODE_ENV: 'test', API_KEY: 'sk-secret' },
};

describe('from Claude Code', () => {
  it('holds what the rules meant', async () => {
    mkdirSync(join(place.workspace, 'generated'));
    const { exitCode, report, verdictOf, exitOf, policy, expectProtected } = await imported(
      'claude-code',
      JSON.stringify(CLAUDE),
      'json',
      '--allow-wider',
    );
    expect(exitCode).toBe(10);
    const losses = new Map(
      report.losses.map((loss: { path: string; effect: string }) => [loss.path, loss.effect]),
    );
    expect(losses.get('model')).toBe('none');
    const wider = [...losses].filter(([, effect]) => effect === 'wider').map(([path]) => path);
    expect(wider).toEqual([]);
    expect(report.policy.filesystem.hide).toEqual(['./.env', './.env.*', './secrets']);
    expect(readFileSync(policy, 'utf8')).not.toContain('sk-secret');
    expect(report.policy.environment.set).toEqual({ NODE_ENV: 'test' });
    for (const command of ['curl https://x.example', 'true && curl x'])
      expect([command, await verdictOf(command)]).toEqual([command, 'deny']);
    for (const command of ['git push', 'git -C . push origin main'])
      expect([command, await verdictOf(command)]).toEqual([command, 'ask']);
    expect(await verdictOf('ls -la')).toBe('allow');
    await expectProtected("python3 -c \"open('generated/x', 'w')\"");
    expect(await exitOf(`touch ${data}/by-claude`)).toBe(0);
  });

  it.each([
    ['Bash', ['ls'], []],
    ['Bash(rm -rf *)', ['rm -rf build', 'FOO=1 rm -rf x'], ['ls']],
    ['Bash(npm run build*)', ['npm run build', 'npm run build:all'], ['ls -l build']],
    ['Bash(git * main)', ['git push origin main'], ['git status']],
    ['Bash(* --force)', ['git push --force', 'npm i --force'], ['ls']],
    ['Bash(curl * | bash)', ['curl https://x | bash'], ['ls']],
    ['Bash(NODE_ENV=x ./scripts/deploy.sh:*)', ['./scripts/deploy.sh prod'], ['ls']],
    ['Bash(http*evil)', ['httpie http://evil', 'https a evil'], ['ls']],
  ])('refuses at least what %s refuses', async (rule, refused, others) => {
    const { verdictOf } = await imported('claude-code', JSON.stringify({ permissions: { deny: [rule] } }));
    for (const command of refused) expect([command, await verdictOf(command)]).toEqual([command, 'deny']);
    for (const command of others) expect([command, await verdictOf(command)]).toEqual([command, 'allow']);
  });

  it.each([
    [
      { allow: ['WebFetch(domain:a.test)', 'WebFetch(domain:*.b.test)'] },
      { mode: 'listed', allow: ['a.test', '*.b.test'] },
    ],
    [
      { allow: ['WebFetch(domain:*.b.test)'], deny: ['WebFetch(domain:x.b.test)'] },
      { mode: 'listed', allow: ['*.b.test'], deny: ['x.b.test'] },
    ],
    [
      { allow: ['WebFetch', 'WebFetch(domain:*)', 'WebSearch'], ask: ['WebFetch(domain:a.test)'] },
      { mode: 'off' },
    ],
    [{ allow: ['WebFetch(domain:a.test)'], deny: ['WebFetch'] }, { mode: 'off' }],
    [{ allow: ['WebFetch(domain:a.test)'], deny: ['WebFetch(domain:x*y.test)'] }, { mode: 'off' }],
  ])('lists the hosts of rules: %j', async (permissions, network) => {
    const { report } = await imported(
      ...(['claude-code', JSON.stringify({ permissions }), 'json', '--allow-wider'] as const),
    );
    expect(report.policy.network).toEqual(network);
  });

  it('takes the sandbox block as that of the runtime', async () => {
    const { sandbox } = {
      sandbox: {
        ...{
          enabled: true,
          autoAllowBashIfSandboxed: true,
          excludedCommands: ['docker'],
          allowUnsandboxedCommands: false,
        },
        network: {
          allowedDomains: ['a.example'],
          allowUnixSockets: ['/var/run/docker.sock'],
          allowLocalBinding: true,
        },
        filesystem: { allowWrite: [data], denyRead: ['./.env'] },
      },
    };
    const { exitCode, report } = await imported('claude-code', JSON.stringify({ sandbox }));
    expect(exitCode).toBe(11);
    const wider = report.losses.filter(({ effect }: { effect: string }) => effect === 'wider');
    expect(wider.map(({ path }: { path: string }) => path)).toEqual(['sandbox.mandatoryDenySearchDepth']);
    expect(report.policy).toMatchObject({
      profile: 'workspace-write',
      filesystem: { write: [data] },
      network: { mode: 'listed', allow: ['a.example'] },
    });
    expect(report.policy.security).toBeUndefined();
  });
});

const KEPT = ['.git', '.agents', '.codex'];

describe('from Codex', () => {
  it.each([
    [
      'enabled = true\ndomains = { "a.test" = "allow", "**.b.test" = "allow", "x.b.test" = "deny" }',
      { mode: 'listed', allow: ['a.test', 'b.test', '*.b.test'], deny: ['x.b.test'] },
    ],
    ['enabled = false\ndomains = { "a.test" = "allow" }', { mode: 'off' }],
    ['domains = { "a.test" = "allow" }', { mode: 'off' }],
    ['enabled = true\ndomains = { "*" = "allow" }', { mode: 'off' }],
    ['enabled = true', { mode: 'open' }],
  ])('lists the hosts of permissions: %j', async (settings, network) => {
    const source = `default_permissions = "own"\n[permissions.own.network]\n${settings}\n`;
    const { report } = await imported('codex', source, 'toml', '--allow-wider');
    expect(report.policy.network).toEqual(network);
  });

  it.each([
    [
      [
        'host="a.test", protocol="https", decision="allow"',
        'host="b.test", protocol="http", decision="allow"',
      ],
      { mode: 'listed', allow: ['a.test:443', 'b.test:80'] },
    ],
    [
      [
        'host="a.test", protocol="https", decision="allow"',
        'host="a.test", protocol="https", decision="deny"',
      ],
      { mode: 'listed', allow: ['a.test:443'], deny: ['a.test'] },
    ],
    [
      [
        'host="a.test", protocol="socks5_udp", decision="allow"',
        'host="b.test", protocol="https", decision="prompt"',
      ],
      { mode: 'off' },
    ],
    [
      ['host="a.test", protocol="https", decision="allow"', 'protocol="https", decision="deny"'],
      { mode: 'off' },
    ],
  ])('lists the hosts of rules, and says that they are reached: %j', async (rules, network) => {
    const source = rules.map((rule) => `network_rule(${rule})`).join('\n');
    const { report } = await imported('codex', source, 'rules', '--allow-wider');
    expect(report.policy.network).toEqual(network);
    const wider = report.losses.filter(({ effect }: { effect: string }) => effect === 'wider');
    expect(wider).toHaveLength('allow' in network ? network.allow.length : 0);
  });

  it('holds what the configuration meant', async () => {
    const source = [
      'model = "gpt-5"',
      'approval_policy = "on-request"',
      'sandbox_mode = "workspace-write"',
      '[sandbox_workspace_write]',
      `writable_roots = ["${data}", "/not/there"]`,
      'network_access = false',
      'exclude_slash_tmp = true',
      '[shell_environment_policy]',
      'inherit = "core"',
      'set = { CI = "1" }',
    ].join('\n');
    const { exitCode, report, exitOf } = await imported('codex', source, 'toml', '--allow-wider');
    expect(exitCode).toBe(11);
    expect(report.policy).toMatchObject({
      ...{
        profile: 'workspace-write',
        network: { mode: 'off' },
        filesystem: { write: [data], protect: KEPT },
      },
      environment: { set: { CI: '1', LANG: '' } },
    });
    expect(await exitOf(`touch ${data}/by-codex && test "$CI" = 1 && test -z "$LANG"`)).toBe(0);
    expect(await exitOf('exec 3<>/dev/tcp/127.0.0.1/22')).not.toBe(0);
  });

  it.each([
    ['', 'read-only'],
    ['sandbox_mode = "read-only"', 'read-only'],
    ['sandbox_mode = "danger-full-access"', 'workspace-write'],
    [
      'profile = "ci"\nsandbox_mode = "workspace-write"\n[profiles.ci]\nsandbox_mode = "read-only"',
      'read-only',
    ],
    ['default_permissions = ":workspace"', 'workspace-write'],
  ])('takes %j for the profile', async (source, profile) => {
    expect((await importPolicy('codex', source, where('config.toml'))).policy.profile).toBe(profile);
  });

  it('reads rules, and lists what is no literal', async () => {
    const source = `# of the documentation
prefix_rule(
    pattern = ["gh", "pr", ["view", "list"]],
    decision = "prompt",
    justification = "look first",
    match = ["gh pr view 7888", ["gh", "pr", "list"]],
)
prefix_rule(pattern=["rm", "-rf"], decision="forbidden")
prefix_rule(pattern=["git", "status"])
FORBIDDEN = ["curl"]
prefix_rule(pattern=FORBIDDEN, decision="forbidden")
[prefix_rule(pattern=[x], decision="forbidden") for x in ["a"]]
`;
    const { exitCode, report, verdictOf } = await imported('codex', source, 'rules', '--allow-wider');
    expect(exitCode).toBe(11);
    expect(report.losses.map(({ path, effect }: { path: string; effect: string }) => [path, effect])).toEqual(
      [
        ['line 10', 'wider'],
        ['line 11', 'wider'],
        ['line 12', 'wider'],
      ],
    );
    expect(report.policy.commands.rules).toContainEqual({
      ...{ program: 'git', words: ['status', '*'], verdict: 'allow' },
    });
    expect(await verdictOf('gh pr view 1')).toBe('ask');
    expect(await verdictOf('ls && rm -rf x')).toBe('deny');
    expect(await verdictOf('ls')).toBe('allow');
  });
});

describe('what a product allows beforehand', () => {
  it('becomes rules that allow, which hold for these commands alone', async () => {
    const permissions = {
      allow: ['Bash(touch made)', 'Bash(mkdir out:*)', 'Bash(cp a *)', 'Bash(git push)'],
      deny: ['Bash(cp a secret*)'],
      ask: ['Bash(git push:*)'],
      defaultMode: 'default',
    };
    const { report, verdictOf } = await imported('claude-code', JSON.stringify({ permissions }), 'json');
    const rules = report.policy.commands.rules.filter(
      ({ verdict }: { verdict?: string }) => verdict === 'allow',
    );
    expect(
      rules.map(({ program, words }: { program: string; words: string[] }) => [program, ...words]),
    ).toEqual([
      ['touch', 'made'],
      ['mkdir', 'out', '*'],
      ['cp', 'a', '*'],
      ['git', 'push'],
    ]);
    for (const command of ['touch made', 'mkdir out', 'mkdir out more', 'cp a b', 'touch made && mkdir out'])
      expect([command, await verdictOf(command)]).toEqual([command, 'allow']);
    for (const command of [
      'touch made x',
      'touch other',
      'touch made; mkdir y',
      'touch made $(mkdir y)',
      'git push',
    ])
      expect([command, await verdictOf(command)]).toEqual([command, 'ask']);
    expect(await verdictOf('cp a secret')).toBe('deny');
  });

  it.each([
    'Bash',
    'Bash(*)',
    'Bash(git * main)',
    'Bash(*:*)',
    'Bash(FOO=1 make)',
    'Bash(a; b)',
    'Bash(./x)',
    'Bash(npm ru*)',
  ])('is asked about where a rule would mean more, or something else: %s', async (rule) => {
    const settings = { permissions: { allow: [rule], defaultMode: 'default' } };
    const { exitCode, report } = await imported('claude-code', JSON.stringify(settings), 'json');
    expect([exitCode, report.policy.commands?.rules ?? []]).toEqual([10, []]);
  });
});

describe('literals in rules of Codex', () => {
  const rulesOf = async (source: string) => {
    const { policy, losses } = await importPolicy('codex', source, where('default.rules'));
    return { rules: policy.commands?.rules, losses: losses.map(({ effect }) => effect) };
  };

  it.each([
    [String.raw`["a", 'it\'s "b"']`, ['it\'s "b"']],
    ['["a", "tab\t, # and ("]', ['tab\t, # and (']],
    [String.raw`["a", "b\\c\n",]`, ['b\\c\n']],
  ])('reads %s', async (pattern, words) => {
    const { rules, losses } = await rulesOf(
      `prefix_rule(pattern = ${pattern}, decision = "forbidden",) # end`,
    );
    expect({ rules, losses }).toEqual({ rules: [{ program: 'a', words, verdict: 'deny' }], losses: [] });
  });

  it.each([
    ...[
      'pattern=["a"], pattern=["b"]',
      'pattern={"a": 1}',
      'pattern=["a" "b"]',
      'pattern=true, decision=null',
    ],
    ...[
      'pattern=["a"] + x',
      'pattern=f("a")',
      '"pattern"=["a"]',
      String.raw`pattern=["\q"]`,
      'pattern=[["a", 1]]',
    ],
    ...['pattern=["a"], other=1', 'pattern=[]', 'pattern=[""]', 'pattern=["a", []]', 'pattern=[" "]'],
  ])('takes (%s) for nothing that it understands', async (args) => {
    const source = `prefix_rule(${args}, decision="forbidden")\nprefix_rule(pattern=["z"], decision="prompt")`;
    expect(await rulesOf(source)).toEqual({ rules: [{ program: 'z', verdict: 'ask' }], losses: ['wider'] });
  });
});

/** Values as they may stand anywhere, the real keys among them. */
const KEYS = [
  ...[
    'network',
    'filesystem',
    'credentials',
    'permissions',
    'sandbox',
    'allow',
    'ask',
    'deny',
    'denyRead',
    'allowWrite',
  ],
  ...[
    'allowRead',
    'denyWrite',
    'allowedDomains',
    'files',
    'envVars',
    'path',
    'mode',
    'name',
    'env',
    'enabled',
    'windows',
  ],
  ...[
    'sandbox_mode',
    'sandbox_workspace_write',
    'writable_roots',
    'network_access',
    'profile',
    'profiles',
    'set',
    'exclude',
  ],
  ...[
    'shell_environment_policy',
    'include_only',
    'inherit',
    'approval_policy',
    'defaultMode',
    '__proto__',
    'a b',
  ],
];
const leaf = fc.oneof(
  fc.constantFrom(
    '.',
    './x',
    '**/.env',
    '~/.ssh',
    '/',
    '/usr',
    data,
    'Bash(git push:*)',
    'Read(./.env)',
    'Edit(//etc/**)',
    'mask',
  ),
  ...[fc.string(), fc.boolean(), fc.integer()],
);
const { tree } = fc.letrec((tie) => ({
  tree: fc.oneof({ depthSize: 'small' }, leaf, fc.array(tie('tree'), { maxLength: 4 }), tie('table')),
  table: fc.dictionary(fc.constantFrom(...KEYS), tie('tree'), { maxKeys: 6 }),
}));
const table = fc.dictionary(fc.constantFrom(...KEYS), tree, { maxKeys: 6 });

/** Every leaf is within something that was said, or has something that was said within it. */
function expectAccounted(source: unknown, said: readonly Place[]): void {
  const known = new Set(said.map((one) => JSON.stringify(one)));
  for (const { place: at } of leavesOf(source))
    expect(
      at.length === 0 || at.some((_, index) => known.has(JSON.stringify(at.slice(0, index + 1)))),
      JSON.stringify(at),
    ).toBe(true);
}

/** What is told of a source, by place. */
async function told(from: string, source: unknown, more: Partial<ImportPlace> = {}) {
  const text = typeof source === 'string' ? source : JSON.stringify(source);
  const { policy, losses } = await importPolicy(from, text, where('config.toml', more));
  return { policy, effects: new Map(losses.map((one) => [one.place.join('.'), one.effect])) };
}

describe('never wider than the source', () => {
  const real = join(data, 'real');
  const link = join(data, 'link');
  const workspaceLink = join(data, 'ws');
  mkdirSync(real);
  writeFileSync(join(real, 'denied'), 's');
  symlinkSync(real, link);
  symlinkSync(place.workspace, workspaceLink);
  const exists = (path: string) => existsSync(path);

  it('sees one place behind two names', async () => {
    const { policy, effects } = await told(
      'srt',
      {
        filesystem: {
          denyRead: [join(link, 'denied'), join(workspaceLink, '.env')],
          denyWrite: [join(link, 'denied')],
          allowRead: [real],
          allowWrite: ['.', real],
        },
      },
      { exists },
    );
    // What can be read of it is kept back; what must not be written cannot be.
    expect(policy.filesystem?.read).toEqual([real]);
    expect(policy.filesystem?.write).toBeUndefined();
    const hidden = policy.filesystem?.hide;
    expect(hidden).toEqual([
      join(real, 'denied'),
      join(link, 'denied'),
      './.env',
      join(workspaceLink, '.env'),
    ]);
    expect([...effects.keys()].filter((at) => at.includes('denyRead'))).toEqual([]);
  });

  it('takes nothing for granted that a link in the workspace leads to', async () => {
    symlinkSync(real, join(place.workspace, 'out'));
    const { policy, effects } = await told(
      'srt',
      { filesystem: { allowWrite: ['.', './out'], denyWrite: ['./out'] } },
      { exists },
    );
    expect(policy.filesystem?.write).toBeUndefined();
    expect(effects.get('filesystem.denyWrite.0')).toBe('wider');
    expect(effects.get('filesystem.allowWrite.1')).toBe('narrower');
  });

  it('takes rules of a settings file from where it lies, by whatever link it is named', async () => {
    mkdirSync(join(place.workspace, '.claude', 'sub'), { recursive: true });
    mkdirSync(join(place.workspace, 'deploy'));
    writeFileSync(join(place.workspace, '.claude', 'settings.json'), '{}');
    symlinkSync(join(place.workspace, '.claude', 'settings.json'), join(data, 'settings'));
    for (const file of [join(workspaceLink, '.claude', 'settings.json'), join(data, 'settings')]) {
      const source = { permissions: { deny: ['Edit(/deploy/**)'] } };
      const { policy, effects } = await told('claude-code', source, { exists, file });
      expect(policy.filesystem?.protect).toEqual(['deploy']);
      expect([...effects]).toEqual([]);
    }
  });

  it('protects what Codex keeps, and says where it cannot', async () => {
    const inside = join(place.workspace, 'generated');
    const source = `sandbox_mode = "workspace-write"\n[sandbox_workspace_write]\nwritable_roots = ["${data}", "${inside}"]`;
    const { policy, effects } = await told('codex', source);
    expect(policy.filesystem?.protect).toEqual([...KEPT, ...KEPT.map((name) => `generated/${name}`)]);
    expect([...effects]).toEqual([['sandbox_workspace_write.writable_roots.0', 'wider']]);
  });

  it('passes no variable that looks like a secret', async () => {
    const source =
      '[shell_environment_policy]\nignore_default_excludes = false\ninclude_only = ["PATH", "MY_API_KEY", "GH_TOKEN*", "my_secret", "CARGO_*"]';
    const { policy } = await told('codex', source);
    expect(policy.environment?.pass).toEqual(['PATH', 'CARGO_*']);
  });

  it('repeats no value whose name is that of a secret, or of no variable', async () => {
    const variables = { API_KEY: 'not-to-be-seen', 'MY KEY': 'not-to-be-seen', CI: '1' };
    const toml = `[shell_environment_policy.set]\nAPI_KEY = "not-to-be-seen"\n"MY KEY" = "not-to-be-seen"\nCI = "1"`;
    for (const [from, text] of [
      ['claude-code', JSON.stringify({ env: variables })],
      ['codex', toml],
    ] as const) {
      const made = await importPolicy(from, text, where('settings'));
      expect(JSON.stringify(made)).not.toContain('not-to-be-seen');
      expect(made.policy.environment?.set).toEqual({ CI: '1' });
    }
  });

  it.each([
    'Edit',
    'Edit(*)',
    'Edit(**)',
    'Edit(./**)',
    'Edit(./*)',
    'Edit(//**)',
    'Edit(~/**)',
    'Edit(/**)',
  ])('makes the workspace read-only for a denial of %s', async (rule) => {
    const source = {
      sandbox: { enabled: true },
      permissions: { deny: [rule], additionalDirectories: [data] },
    };
    const { policy } = await told('claude-code', source, { home: place.root });
    expect(policy.profile).toBe('read-only');
    if (['Edit', 'Edit(*)', 'Edit(**)', 'Edit(//**)'].includes(rule))
      expect(policy.filesystem?.write).toBeUndefined();
  });

  it.each(['Read', 'Read(*)', 'Read(**)', 'Read(./**)', 'Read(./*)', 'Read(//**)'])(
    'calls it wider that %s cannot be held',
    async (rule) => {
      const source = { sandbox: { enabled: true }, permissions: { deny: [rule] } };
      expect((await told('claude-code', source)).effects.get('permissions.deny.0')).toBe('wider');
    },
  );

  it.each([
    ['Read(.env)', '.env'],
    ['Read(*.pem)', '*.pem'],
    ['Read(secrets/)', 'secrets/'],
    ['Read(./.env)', './.env'],
    ['Read(.env.*)', '.env.*'],
    ['Read(**/.env)', '**/.env'],
    ['Read(**/secrets/**)', '**/secrets'],
    ['Read(./config/credentials.json)', './config/credentials.json'],
    ['Read(/build/[x]/*.key)', './build/[x]/*.key'],
    ['Read(//**/.env)', '**/.env'],
    ['Read(~/**/id_rsa)', '**/id_rsa'],
  ])('hides what %s denies', async (rule, pattern) => {
    const { policy, effects } = await told(
      'claude-code',
      { permissions: { deny: [rule] } },
      { home: place.root },
    );
    expect([policy.filesystem?.hide, [...effects]]).toEqual([[pattern], []]);
    const asked = await told('claude-code', { permissions: { ask: [rule] } }, { home: place.root });
    expect([...asked.effects.values()]).toEqual(['narrower']);
  });

  it('grants nothing that holds secrets, whatever the source says, and says so', async () => {
    const grants = ['.aws', 'keys/deploy.key', 'project', 'fine'].map((name) => join(home, name));
    for (const [index, name] of ['config', '.', '.env', 'notes.txt'].entries()) {
      const path = index === 1 ? (grants[1] ?? '') : join(grants[index] ?? '', name);
      mkdirSync(join(path, '..'), { recursive: true });
      writeFileSync(path, 'word\n');
    }
    const source = { filesystem: { allowWrite: ['.', ...grants], allowRead: grants } };
    const { policy, effects } = await told('srt', source, { exists: () => true });
    for (const grant of grants) rmSync(grant, { recursive: true });
    expect([policy.filesystem?.read, policy.filesystem?.write]).toEqual([[grants[3]], [grants[3]]]);
    expect([...effects.values()].filter((effect) => effect === 'narrower').length).toBeGreaterThanOrEqual(6);
  });

  it('hides of a home what can be read of it', async () => {
    const chain = join(home, '.cargo/bin');
    mkdirSync(chain, { recursive: true });
    const source = {
      filesystem: { denyRead: ['~', '~/.aws'], allowRead: ['.'], allowWrite: ['.'], denyWrite: [] },
    };
    const { policy, effects } = await told('srt', source, { exists: (path) => path === chain });
    rmSync(join(home, '.cargo'), { recursive: true });
    expect(policy.filesystem?.hide).toEqual(['~/.cargo/bin']);
    expect([...effects.keys()]).toEqual(['mandatoryDenySearchDepth']);
  });

  it('takes names of files by their letters where the source does', async () => {
    const literal = { path: './a[1]{b}*', literal: true };
    const { policy } = await told('srt', { filesystem: { denyRead: [literal], allowWrite: ['.'] } });
    expect(policy.filesystem?.hide).toEqual(['./a\\[1\\]\\{b\\}\\*']);
  });

  it.each([{}, { literal: false }, { literal: true, only: ['a'] }])(
    'allows no path of which more is said than is known here: %j',
    async (more) => {
      const one = { path: data, ...more };
      const source = { filesystem: { allowWrite: [one], allowRead: [one] } };
      const { policy, effects } = await told('srt', source, { exists });
      expect(policy.filesystem?.write ?? policy.filesystem?.read).toBeUndefined();
      expect([...effects.values()]).toContain('wider');
    },
  );

  // As in the product's documentation, by both names of the workspace.
  it.each([
    [':project_roots', 'none'],
    [':workspace_roots', 'deny'],
  ])('takes the permissions of Codex with %s and %s', async (roots, none) => {
    const source = `
      default_permissions = "mine"
      [permissions.mine.filesystem]
      ":minimal" = "read"
      "~/.ssh" = "${none}"
      "${data}" = "read"
      glob_scan_max_depth = 3
      [permissions.mine.filesystem."${roots}"]
      "." = "write"
      "**/.env" = "${none}"
      "secrets" = "${none}"
      [permissions.other.filesystem]
      "/" = "write"`;
    const { policy, effects } = await told('codex', source, { exists });
    expect(policy).toMatchObject({
      profile: 'workspace-write',
      network: { mode: 'off' },
      filesystem: { read: [data], hide: ['**/.env', './secrets'] },
    });
    expect([...effects]).toEqual([]);
  });

  it('uses what it hides', async () => {
    writeFileSync(join(place.workspace, '.env'), 'TOKEN=1');
    const source = { permissions: { deny: ['Read(./.env)'] } };
    const { exitOf } = await imported('claude-code', JSON.stringify(source));
    expect(await exitOf('grep -rq TOKEN . ')).not.toBe(0);
    if (HOST.namespaces) expect(await exitOf('test -e .env')).toBe(0);
  });

  it('calls it wider that what is not there is not protected', async () => {
    const source = { permissions: { deny: ['Edit(./absent/**)'] } };
    const { policy, effects } = await told('claude-code', source);
    expect(policy.filesystem?.protect).toEqual(['absent']);
    expect(effects.get('permissions.deny.0')).toBe('wider');
  });

  it.each([
    ['profile = "strict"', 'profile'],
    ['profile = "toString"\n[profiles]', 'profile'],
    ['profile = "p"\n[profiles.p.sandbox_workspace_write]\nx = 1', 'profiles.p.sandbox_workspace_write.x'],
    ['profile = "p"\n[profiles.p.other]\nx = 1', 'profiles.p.other.x'],
    ['[profile]\nx = 1', 'profile.x'],
  ])('calls a profile wider that is not understood: %j', async (source, at) => {
    expect((await told('codex', source)).effects.get(at)).toBe('wider');
  });
});

describe('whatever the source is', () => {
  it.each(['srt', 'claude-code'])(
    '%s: every leaf is represented or listed, and the policy loads',
    async (from) => {
      await fc.assert(
        fc.asyncProperty(table, async (source) => {
          const text = JSON.stringify(source);
          const { translated, losses, toml } = await importPolicy(from, text, where('settings.json'));
          expectAccounted(
            JSON.parse(text),
            [...translated, ...losses].map((one) => one.place),
          );
          expect(parse(toml)).toBeDefined();
        }),
      );
    },
  );

  it('codex: the same', async () => {
    await fc.assert(
      fc.asyncProperty(table, async (source) => {
        const { stringify } = await import('smol-toml');
        let text: string;
        try {
          text = stringify(source);
          parse(text);
        } catch {
          return;
        }
        const { translated, losses } = await importPolicy('codex', text, where('config.toml'));
        expectAccounted(
          parse(text),
          [...translated, ...losses].map((one) => one.place),
        );
      }),
    );
  });

  it.each([
    ['comments in JSON', 'claude-code', 'json', '{ // no\n "permissions": {} }', /no JSON/],
    ['a list', 'srt', 'json', '[]', /no JSON object/],
    ['half a file', 'srt', 'json', '{"network": {', /no JSON/],
    ['a value without quotes', 'srt', 'json', '{"token": sk-12345678901234}', /^(?!.*sk-1).*no JSON/],
    ['no TOML', 'codex', 'toml', 'a = = 1', /line 1/],
    ['a huge file', 'srt', 'json', `{"a": "${'x'.repeat(300_000)}"}`, /larger than/],
    ['deep nesting', 'srt', 'json', `{"a":${'['.repeat(5_000)}${']'.repeat(5_000)}}`, /levels deep/],
    ['an unknown product', 'cursor', 'json', '{}', /Allowed choices are srt, claude-code, codex/],
  ])('refuses %s in one line', async (_, from, extension, text, message) => {
    const result = await run('policy', 'import', file(text, extension), '--from', from);
    expect(result).toMatchObject({ exitCode: 125, stdout: '' });
    expectOneLine(result.stderr);
    expect(result.stderr).toMatch(message);
  });

  it('reads no directory and no pipe, and writes over nothing and through no link', async () => {
    for (const path of [place.workspace, '/dev/zero', join(place.root, 'missing')])
      expect(await run('policy', 'import', path, '--from', 'srt')).toMatchObject({
        exitCode: 125,
        stdout: '',
      });
    const source = file('{"network": {}, "filesystem": {"allowWrite": ["."]}}');
    const link = join(place.root, 'link.toml');
    symlinkSync(join(place.root, 'elsewhere.toml'), link);
    const result = await run('policy', 'import', source, '--from', 'srt', '--allow-wider', '--output', link);
    expect(result).toMatchObject({ exitCode: 125, stdout: '' });
    expect(() => readFileSync(join(place.root, 'elsewhere.toml'))).toThrow();
  });

  it('quotes what it repeats: a source makes no line of its own', async () => {
    const source = {
      'x\n[unsafe]\nunjudged_commands': '\u001b[2J\n[network]\nmode = "open"',
      filesystem: { allowWrite: ['.'] },
    };
    const { stdout, stderr } = await run(
      'policy',
      'import',
      file(JSON.stringify(source)),
      '--from',
      'srt',
      '--allow-wider',
    );
    expect(parse(stdout)).toEqual({
      profile: 'workspace-write',
      filesystem: { protect: ['.gitconfig', '.gitmodules', '.ripgreprc'] },
      network: { mode: 'off' },
    });
    expect(stderr).not.toContain('\u001b');
    expect(stderr).not.toMatch(/^\[/m);
  });

  it('makes a policy that a sandbox takes', async () => {
    const { policy } = await importPolicy('srt', JSON.stringify(SRT), where('settings.json'));
    await using sandbox = await createSandbox({ workspace: place.workspace, policy, policyFiles: false });
    expect(sandbox.plan.report.controls.find(({ id }) => id === 'network')?.state).toBe('enforced');
  });
});
