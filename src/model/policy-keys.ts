import type { z } from 'zod';
import { readNamePattern } from '../base/name-pattern.ts';
import {
  APPROVERS,
  AUTONOMIES,
  BACKEND_IDS,
  CONTROL_IDS,
  DEMANDS,
  EXPLAIN,
  MAX_OUTPUT_BYTES,
  NETWORK_MODES,
  TAINT_SHARING,
  UNDO,
  UNLISTED,
  VERIFY,
} from '../base/words.ts';
import { commandRule, narrowingRule, rule } from './command-rule.ts';
import {
  type AnyKey,
  key,
  type NameOf,
  type PlacedKey,
  placedKeys,
  type Said,
  type ValueOf,
  type Zod,
} from './policy-key.ts';
import {
  isLoopback,
  PUBLICATION_FORMS,
  type Publication,
  publicationText,
  readPublication,
} from './publication.ts';

const MIB = 1024 ** 2;

const path = (zod: Zod) =>
  zod
    .string()
    .min(1)
    .refine((value) => !value.includes('\0'), 'must not contain NUL');
const paths = (zod: Zod) => zod.array(path(zod));
const positive = (zod: Zod) => zod.number().int().positive();
/** Units of `workspace.undo_keep`. */
const KEEP_MS: Readonly<Record<string, number>> = { h: 3_600_000, d: 86_400_000, w: 7 * 86_400_000 };
const KEEP_BYTES: Readonly<Record<string, number>> = { M: MIB, G: 1024 * MIB, T: 1024 ** 2 * MIB };
const duration = (zod: Zod) => zod.number().nonnegative();
const outputSize = (zod: Zod) => zod.number().int().nonnegative().max(MAX_OUTPUT_BYTES);
const sharing = (zod: Zod) => zod.enum(['private', 'host']);
const program = (zod: Zod) =>
  zod
    .string()
    .regex(/^[^\s/][^\s]*$|^\/[^\s]+$/, 'must be the name of a program, or an absolute path without blanks');
const programs = (zod: Zod) => zod.array(program(zod));
/** A pattern of what is hidden that would be read otherwise than it is meant hides nothing: it is refused. */
function hidePattern(pattern: string, context: z.core.$RefinementCtx<string>): void {
  const problem = problemOfHidePattern(pattern);
  if (problem !== undefined) context.addIssue({ code: 'custom', message: problem });
}

/** What is wrong with an entry of `filesystem.hide`; `undefined`: nothing. */
export function problemOfHidePattern(pattern: string): string | undefined {
  const parts = pattern.split('/');
  if (pattern === '') return 'must not be empty';
  if (pattern.includes('\0')) return 'must not contain NUL';
  if (pattern.startsWith('!')) return 'cannot begin with !: nothing shows again what is hidden';
  if (/^~[^/]/.test(pattern) || pattern === '~') return 'must begin with ~/ if it begins with ~';
  if (parts.includes('..')) return 'must not contain ..; name the place by ~/ or from / on';
  if (parts.every((part) => part === '' || part === '.' || part === '~'))
    return 'must name something in a directory';
  return parts.map(readNamePattern).find((read) => typeof read === 'string') as string | undefined;
}

/** What an entry may be is looked at when a policy is loaded (`policy/network/read-rules.ts`). */
const networkEntries = (zod: Zod) => zod.array(zod.string().min(1));
/** What an entry of `network.unix` may be, and how that is said. */
export const UNIX_ENTRY = {
  pattern: /^(?:~?\/[^\0]+|@ssh-agent|@docker)$/,
  forms: 'must be an absolute path, one that begins with ~/, @ssh-agent or @docker',
} as const;
const unixEntry = (zod: Zod) => zod.string().regex(UNIX_ENTRY.pattern, UNIX_ENTRY.forms);
const unixEntries = (zod: Zod) =>
  zod.array(
    zod.union(
      [
        unixEntry(zod),
        zod.strictObject({
          path: unixEntry(zod),
          ask: zod
            .boolean()
            .optional()
            .describe(
              'false: commands that may use the socket run without a question. true: they are asked about. Missing: they are asked about if the socket belongs to you or to root, as its server then acts for you or for the machine.',
            ),
        }),
      ],
      { error: `${UNIX_ENTRY.forms}, or { path = "…", ask = false } with such a path` },
    ),
  );

/** A socket of the policy, and whether commands that may use it are asked about; `undefined`: its owner decides. */
export interface SocketGrant {
  readonly entry: string;
  readonly ask: boolean | undefined;
}

/** One for each socket: a later entry that says whether to ask goes before earlier ones. */
function socketGrants(
  entries: readonly (string | { readonly path: string; readonly ask?: boolean | undefined })[],
): readonly SocketGrant[] {
  const grants = new Map<string, SocketGrant>();
  for (const said of entries) {
    const { path: entry, ask = undefined } = typeof said === 'string' ? { path: said } : said;
    grants.set(entry, { entry, ask: ask ?? grants.get(entry)?.ask });
  }
  return [...grants.values()];
}

const publication = (zod: Zod) =>
  zod.string().refine((entry) => readPublication(entry) !== undefined, PUBLICATION_FORMS);
const publications = (zod: Zod) => zod.array(publication(zod));
/** Those of a project, which does not say whether other machines may connect, nor where a socket is made. */
const ownPublications = (zod: Zod) =>
  zod.array(
    publication(zod).refine((entry) => {
      const read = readPublication(entry);
      return isLoopback(read?.address) && read?.socket === undefined;
    }, 'must be a port, with no address or one of the loopback interface'),
  );

/** Each place in the sandbox and outside once. */
function publicationsOf(entries: readonly string[]): readonly Publication[] {
  const found = new Map<string, Publication>();
  for (const entry of entries) {
    const read = readPublication(entry);
    if (read !== undefined) found.set(publicationText(read), read);
  }
  return [...found.values()];
}

const publicationTexts = (given: readonly (string | Parameters<typeof publicationText>[0])[]) =>
  given.map((one) => (typeof one === 'string' ? one : publicationText(one)));

const plugin = (zod: Zod) =>
  zod
    .strictObject({
      path: zod
        .string()
        .regex(/^\//, 'must be absolute')
        .optional()
        .describe('An ES module outside of every workspace.'),
      sha256: zod
        .string()
        .regex(/^[0-9a-f]{64}$/, 'must be 64 hexadecimal digits')
        .optional()
        .describe(
          'The SHA-256 of the module. Without it, only root and the user may be able to write the file.',
        ),
      command: zod
        .array(zod.string().min(1))
        .min(1)
        .optional()
        .describe(
          'Instead of a module: a program outside of every workspace, by its absolute path, with its arguments. It reads and writes JSON on standard input and output.',
        ),
    })
    .refine(
      ({ path, sha256, command }) => (path === undefined) !== (command === undefined) && !(sha256 && command),
      'must have either path (with sha256, if you like) or command',
    );

const service = (zod: Zod, ports: (zod: Zod) => z.ZodType<string[]>) =>
  zod
    .strictObject({
      command: zod.union(
        [zod.string().min(1), zod.array(zod.string()).min(1)],
        'must be a shell string, or an array of words',
      ),
      ready: zod.number().int().min(1).max(65_535).optional(),
      ready_line: zod.string().min(1).max(512).optional(),
      ready_timeout_seconds: duration(zod).optional(),
      restart: zod.enum(['on-failure']).optional(),
      publish: ports(zod).optional(),
    })
    .refine(
      ({ ready, ready_line }) => ready === undefined || ready_line === undefined,
      'has ready and ready_line, which say the same in two ways; leave one out',
    );

const services = (zod: Zod, ports: (zod: Zod) => z.ZodType<string[]>) =>
  zod.record(
    zod
      .string()
      .regex(
        /^[a-z][a-z0-9_-]{0,31}$/,
        'must be a name of a to z, digits, "-" and "_", at most 32, that begins with a letter',
      ),
    service(zod, ports),
  );

/** A module or a program that is asked about tools. */
export type HookPlugin = Readonly<z.output<ReturnType<typeof plugin>>>;

/** Seconds of a file in milliseconds. 0 means none: a time that is shorter than a millisecond is not none. */
const milliseconds = (seconds: number) => (seconds === 0 ? 0 : Math.max(1, Math.round(seconds * 1000)));
const seconds = (milliseconds: number) => milliseconds / 1000;
const octal = (text: string) => Number.parseInt(text, 8);

/** Controls that the default policy requires. */
const REQUIRED = [
  ...(['filesystem', 'hidden-paths', 'network', 'privileges'] as const),
  ...(['descriptors', 'environment'] as const),
] as const;

/** Whether records of the audit trail go to a fleet's stream, too; weakest first. */
const AUDIT_STREAMS = ['off', 'publish', 'require'] as const;

/**
 * Every key of policy files, in the order in which people read them. Reading, merging, narrowing, `policy show`, `policy
 * init`, `policy schema`, the reference in docs/policy.md, the options of the command line and the type {@link Policy} are
 * made from this table: a new key is one row here, and the code that obeys it.
 */
export const POLICY_KEYS = {
  profile: key({
    schema: (zod) => zod.string(),
    text: 'Built-in profile to start from.',
    example: '"workspace-write"',
    default: 'workspace-write',
    option: { name: 'profile' },
    flag: { name: '--profile <name>', text: 'built-in profile (default: workspace-write)', kind: 'word' },
  }),
  security: {
    autonomy: key({
      schema: (zod) => zod.enum(AUTONOMIES),
      text: 'What an agent may do without a question. readonly: only commands that read are run. supervised: medium and high risk need approval. contained: approval is needed for what acts outside the sandbox, and for losing work in the workspace that version control does not have; where the kernel does not hold files and network, this is supervised. autonomous: nothing is asked because of risk. A refused command stays refused at every level. Default: contained.',
      example: '"contained"',
      default: 'contained',
      workspace: {
        narrow: 'stricterAutonomy',
        schema: (zod) => zod.enum(AUTONOMIES).exclude(['autonomous']),
        text: 'A stricter level than that of the policy.',
      },
      weaker: { is: (autonomy) => autonomy === 'autonomous', meaning: 'nothing is asked because of risk' },
      option: { name: 'autonomy' },
      flag: {
        name: '--autonomy <level>',
        text: 'what the agent may do without a question (default: contained)',
        kind: 'choice',
        choices: AUTONOMIES,
      },
    }),
    max_actions_per_hour: key({
      schema: (zod) => zod.number().int().nonnegative(),
      text: 'How many commands may start in any 3,600 seconds. 0 blocks every command. Default: no limit.',
      example: '500',
      workspace: { narrow: 'smaller' },
    }),
    workspace_dir: key({
      schema: (zod) => zod.string().regex(/^(\/|~(\/|$))/, 'must be absolute or begin with ~/'),
      text: 'The workspace, if none is named on the command line or in the library. Default: the current directory.',
      example: '"~/work"',
    }),
  },
  commands: {
    allow: key({
      schema: programs,
      text: 'The only programs that may run, by name or absolute path. Default: every program.',
      example: '["ls", "cat", "git"]',
      workspace: { narrow: 'intersection', text: 'The only ones of the allowed programs that may run.' },
    }),
    permit_dangerous: key({
      schema: programs,
      text: 'Dangerous programs that may run. Without this key they are refused; docker and systemctl are examples.',
      example: '["docker"]',
      default: [],
      layers: 'add',
      weaker: { is: (permitted) => permitted.length > 0, meaning: 'dangerous programs may run' },
    }),
    rules: key({
      schema: (zod) => zod.array(rule(zod)),
      text: 'Your own rules. A rule asks about commands, refuses them, allows them without a question, or has what they change in the workspace wait.',
      trust: { opens: 'these commands run without a question', risk: 'high' },
      example:
        '[{ program = "git", words = ["push"], verdict = "ask", match = ["git push"], not_match = ["git status"] }]',
      default: [],
      layers: 'add',
      workspace: {
        narrow: 'adds',
        schema: (zod) => zod.array(narrowingRule(zod)),
        text: 'Further rules, as in a policy file; none that allows.',
      },
      value: (rules) => rules.map(commandRule),
      // After `value`, from which the type of its argument is inferred.
      weaker: {
        is: (rules) => rules.some(({ verdict }) => verdict === 'allow'),
        meaning: 'commands of rules that allow are not asked about',
      },
    }),
  },
  filesystem: {
    read: key({
      schema: paths,
      text: 'Further paths that may be read and executed. ~ is the home directory. Other relative paths start at the workspace.',
      trust: { opens: 'commands read and execute this path', risk: 'medium' },
      example: '["~/data"]',
      default: [],
      layers: 'add',
      paths: true,
      option: { name: 'readable' },
      flag: {
        name: '--ro <path>',
        text: 'a further path to read and execute from; repeatable',
        kind: 'paths',
      },
    }),
    write: key({
      schema: paths,
      text: 'Further paths that may be written. ~ is the home directory. Other relative paths start at the workspace.',
      trust: { opens: 'commands change and delete what is at this path', risk: 'high' },
      example: '["../build-output"]',
      default: [],
      layers: 'add',
      paths: true,
      option: { name: 'writable' },
      flag: { name: '--rw <path>', text: 'a further path to write; repeatable', kind: 'paths' },
    }),
    system: key({
      schema: (zod) => zod.enum(['readable', 'listed']),
      text: 'readable (default): of /etc, commands read what every user of the machine may read, without what is known to hold secrets (the section on /etc of docs/policy.md). listed: they read some fifty files and directories there that most programs need.',
      example: '"readable"',
      default: 'readable',
      workspace: { narrow: 'strictest', only: 'listed', text: 'Of /etc, what most programs need.' },
    }),
    protect: key({
      schema: paths,
      text: 'Further paths in the workspace that must not be written, relative to it.',
      example: '["deploy"]',
      default: [],
      layers: 'add',
      workspace: { narrow: 'adds' },
    }),
    hide: key({
      schema: (zod) => zod.array(zod.string().superRefine(hidePattern)),
      text: 'Files and directories that commands do not see: a file is empty to them, and a directory has nothing in it. Patterns as in .gitignore: a name is meant at any depth of the workspace and of the paths of filesystem.read and filesystem.write; with a slash in it, a pattern starts at the workspace, or at ~ or / if it begins so; a slash at the end means directories only; * ? [a-z] {a,b} do not go over a slash, ** goes over directories; upper and lower case are the same. What matches when a command starts is hidden from it, whoever made it; what a command makes itself, it sees until it ends. Not looked for in .git, node_modules, .venv and the like, unless the pattern names them.',
      example: '[".env", "**/*.pem", "secrets/"]',
      default: [],
      layers: 'add',
      workspace: { narrow: 'adds' },
      option: { name: 'hide' },
      flag: {
        name: '--hide <pattern>',
        text: 'files that the command does not see, such as .env or "*.pem" or secrets/; repeatable',
        kind: 'paths',
      },
    }),
    secret: key({
      schema: paths,
      text: 'Paths whose content must not leave this machine. A command that names such a path, or a path in it, gives its session the taint secret. ~ is the home directory. Other relative paths start at the workspace.',
      example: '["~/.aws", ".env"]',
      default: [],
      layers: 'add',
      paths: true,
    }),
    tmp: key({
      schema: (zod) => zod.enum(['auto', 'private', 'host']),
      text: 'auto (default): each command, or each session of an agent, has its own /tmp; on hosts without namespaces it has the /tmp of the host and a private $TMPDIR. private: its own /tmp, or none. host: the /tmp of the host.',
      example: '"auto"',
      default: 'auto',
      workspace: {
        narrow: 'strictest',
        only: 'private',
        text: 'Each command has its own /tmp, or none.',
      },
      weaker: {
        is: (tmp) => tmp === 'host',
        meaning: 'the temporary directory is shared with other programs',
      },
    }),
    home: key({
      schema: sharing,
      text: 'private: each command has its own HOME at the path of the home directory of the user, with no files except what the policy grants, settings of tools and their caches. host: the home directory of the user, writable.',
      example: '"private"',
      default: 'private',
      workspace: {
        narrow: 'strictest',
        only: 'private',
        text: 'Each command has its own HOME.',
      },
      weaker: { is: (home) => home === 'host', meaning: 'the home directory can be written' },
    }),
    cache: key({
      schema: (zod) => zod.enum(['workspace', 'private']),
      text: 'workspace: what tools cache in a private HOME (~/.cache, ~/.npm, …) is kept for later commands in this workspace, if they can write the workspace. private: it is deleted when the command ends.',
      example: '"workspace"',
      default: 'workspace',
      workspace: {
        narrow: 'strictest',
        only: 'private',
        text: 'What tools cache is deleted when the command ends.',
      },
    }),
    repository: key({
      schema: (zod) => zod.enum(['whole', 'none']),
      text: 'Of a workspace that is a part of a git repository (a subdirectory, a linked worktree, a submodule). whole: commands read the working tree around the workspace and write git’s own files of the repository, but not its hooks, its settings and those of other worktrees. none: they have the workspace, and git works only if all of its files lie in it.',
      example: '"none"',
      default: 'whole',
      workspace: {
        narrow: 'strictest',
        only: 'none',
        text: 'Commands have the workspace, and nothing of a git repository around it.',
      },
    }),
  },
  network: {
    mode: key({
      schema: (zod) => zod.enum(NETWORK_MODES),
      text: 'off: a command reaches nothing outside the sandbox. listed: it reaches what network.allow lists, whatever program it uses. open: it has the network of the host.',
      trust: {
        opens: 'commands reach the hosts that network.allow lists',
        risk: 'medium',
        schema: (zod) => zod.enum(NETWORK_MODES).exclude(['open']),
      },
      example: '"listed"',
      default: 'off',
      workspace: {
        narrow: 'narrowerNetwork',
        schema: (zod) => zod.enum(NETWORK_MODES).exclude(['open']),
        text: 'A narrower mode than that of the policy.',
      },
      weaker: { is: (mode) => mode === 'open', meaning: 'the network of the host can be reached' },
    }),
    allow: key({
      schema: networkEntries,
      text: 'With mode = "listed": what commands may reach. A name, *.NAME for all names beneath it, an address or a CIDR range; each with :PORT or :PORT-PORT, without it 443 and 80. localhost:PORT is one service of this machine. @github, @pypi, @crates and @go are the hosts of these; @own is no host, and gives commands a loopback and Unix sockets of their own where there are no namespaces; @npm and @debian those that npm and apt are configured to use.',
      trust: { opens: 'commands send to this host whatever they can read', risk: 'medium' },
      example: '["api.example.org", "*.example.org:443", "10.1.2.3:5432", "@npm"]',
      default: [],
      layers: 'add',
      option: { name: 'net' },
      flag: {
        name: '--net <entry>',
        text: 'a host that the command may reach, such as api.example.org:443 or @npm (network.mode = "listed"); repeatable',
        kind: 'paths',
      },
    }),
    deny: key({
      schema: networkEntries,
      text: 'With mode = "listed": what they may not reach all the same, written in the same way; without a port every port.',
      example: '["*.corp.example.org"]',
      default: [],
      layers: 'add',
      workspace: { narrow: 'adds' },
    }),
    unlisted: key({
      schema: (zod) => zod.enum(UNLISTED),
      text: 'With mode = "listed": what becomes of a connection to what is not listed. deny: it is refused. ask: it waits while the approver of approval.ask is asked about this host and port. The own network of this machine and what network.deny lists are refused without a question.',
      example: '"ask"',
      default: 'deny',
      workspace: {
        narrow: 'strictest',
        only: 'deny',
        text: 'What is not listed is refused without a question.',
      },
      weaker: {
        is: (unlisted) => unlisted === 'ask',
        meaning: 'hosts that are not listed can be reached once somebody has allowed it',
      },
      option: { name: 'unlisted' },
      flag: {
        name: '--unlisted <what>',
        text: 'what becomes of a connection to a host that is not listed: deny, or ask whether it may (network.mode = "listed")',
        kind: 'choice',
        choices: UNLISTED,
      },
    }),
    verify: key({
      schema: (zod) => zod.enum(VERIFY),
      text: 'With mode = "listed". sni: what a command sends first through a connection to a listed name must itself name a listed host, at port 443 by the server name of TLS, at port 80 by the Host header; such connections pass through the supervisor. So an address that hosts share leads to no other host. /tls or /http behind an entry does the same for its ports. none: a connection is known by its address alone.',
      example: '"sni"',
      default: 'none',
      workspace: {
        narrow: 'strictest',
        only: 'sni',
        text: 'Connections must name a listed host themselves.',
      },
    }),
    unix: key({
      schema: unixEntries,
      text: 'With mode = "listed": sockets of this machine that commands may connect to. An absolute path, or one that begins with ~/; the socket that stands there when the sandbox is made is meant. @ssh-agent is that of SSH_AUTH_SOCK, @docker that of DOCKER_HOST or /var/run/docker.sock: who reaches Docker can do anything on this machine. Commands that may use a socket of yours or of root are asked about, as its server acts for you; { path = "@ssh-agent", ask = false } is the answer to that.',
      example: '["/run/postgresql/.s.PGSQL.5432", { path = "@ssh-agent", ask = false }]',
      default: [],
      layers: 'add',
      value: socketGrants,
      option: { name: 'unix' },
      flag: {
        name: '--unix <entry>',
        text: 'a socket of this machine that the command may connect to, as a path or @ssh-agent (network.mode = "listed"); repeatable',
        kind: 'paths',
      },
      weaker: {
        is: (sockets) => sockets.length > 0,
        meaning: 'programs outside the sandbox act for commands, each as far as it lets them',
      },
    }),
    publish: key({
      schema: publications,
      text: 'Ports that commands listen on and programs of this machine can connect to: [ADDRESS:]PORT[:INNER]. PORT is where programs connect (1024 or higher), INNER where the server listens in the sandbox (default: the same). PORT? is the next free one if PORT is taken, 0 any free one. SOCKET:INNER makes a Unix socket at a path, which other users cannot connect to. Without an address at 127.0.0.1 and ::1; another address, which other machines may reach, only in the policy of the user or the machine. A port is held while a command runs. Where it is taken, commands run without it and say so.',
      trust: {
        opens: 'programs of this machine, also those of other users, connect to what commands serve',
        risk: 'low',
        schema: ownPublications,
      },
      example: '["3000", "8080:80", "5173?"]',
      default: [],
      layers: 'add',
      value: publicationsOf,
      option: { name: 'publish', said: publicationTexts },
      flag: {
        name: '--publish <port>',
        text: 'a port that the command listens on and programs of this machine can connect to: [ADDRESS:]PORT[:INNER], such as 3000, 8080:80, 3000? or 0:3000; or SOCKET:INNER, at the path of a Unix socket; repeatable',
        kind: 'ports',
      },
      weaker: {
        is: (all) => all.some(({ address }) => !isLoopback(address)),
        meaning: 'other machines can connect to what commands serve',
      },
    }),
    unix_sockets: key({
      schema: (zod) => zod.enum(['contained', 'allowed']),
      text: 'Unix sockets that have a path. contained: a command cannot reach those of the host; where only this helps, all Unix sockets are refused. allowed: no restriction.',
      example: '"contained"',
      default: 'contained',
      workspace: {
        narrow: 'strictest',
        only: 'contained',
        text: 'A command cannot reach the Unix sockets of the host.',
      },
      weaker: { is: (sockets) => sockets === 'allowed', meaning: 'sockets of the host can be reached' },
    }),
  },
  environment: {
    pass: key({
      schema: (zod) =>
        zod.array(
          zod
            .string()
            .regex(/^[A-Za-z_][A-Za-z0-9_]*\*?$/, 'must be a variable name, with * at the end at most'),
        ),
      text: 'Further variables that commands get. NAME* stands for every name that begins with NAME, except names that look like secrets.',
      example: '["NODE_ENV", "MYAPP_*"]',
      default: [
        'PATH',
        'TERM',
        'LANG',
        'LC_ALL',
        'LC_CTYPE',
        'USER',
        'SHELL',
        'TZ',
        'COLORTERM',
        'NO_COLOR',
        'CI',
      ],
      layers: 'add',
      option: { name: 'passEnv' },
    }),
    set: key({
      schema: (zod) => zod.record(zod.string().regex(/^[A-Za-z_][A-Za-z0-9_]*$/), zod.string()),
      text: 'Variables that commands get, with these values.',
      trust: { opens: 'commands get this variable', risk: 'medium' },
      example: '{ NODE_ENV = "test" }',
      default: {},
      layers: 'by-name',
      option: { name: 'env' },
    }),
  },
  limits: {
    timeout_seconds: key({
      schema: duration,
      text: 'How long one command may run. 0: without a limit.',
      trust: { opens: 'commands may run for this many seconds (0: without a limit)', risk: 'low' },
      example: '60',
      default: 60,
      workspace: { narrow: 'shorter' },
      name: 'timeoutMs',
      value: milliseconds,
      option: { name: 'timeout', said: seconds },
      flag: {
        name: '--timeout <seconds>',
        text: 'end the command after this time; 0: never (default: 60)',
        kind: 'seconds',
      },
    }),
    kill_grace_seconds: key({
      schema: duration,
      text: 'The time between SIGTERM and SIGKILL when a command is ended.',
      example: '2',
      default: 2,
      workspace: { narrow: 'smaller' },
      name: 'killGraceMs',
      value: milliseconds,
    }),
    output_bytes: key({
      schema: outputSize,
      text: 'How much of each output stream is kept: its beginning and its end. At most 128 MiB.',
      trust: { opens: 'so many bytes of output are kept', risk: 'low' },
      example: '1048576',
      default: MIB,
      workspace: { narrow: 'smaller' },
    }),
    output_head_bytes: key({
      schema: outputSize,
      text: 'How many of these bytes are from the beginning. Default: half.',
      example: '262144',
    }),
    idle_timeout_seconds: key({
      schema: duration,
      text: 'A command that writes no output for this time is ended. 0: never.',
      example: '0',
      default: 0,
      workspace: { narrow: 'shorter' },
      name: 'idleTimeoutMs',
      value: milliseconds,
      option: { name: 'idleTimeout', said: seconds },
      flag: {
        name: '--idle-timeout <seconds>',
        text: 'end the command when it writes no output for this time; its output then passes through pipes; 0: never',
        kind: 'seconds',
      },
    }),
    memory: key({
      schema: positive,
      text: 'Bytes of memory of a command and all that it starts. Default: four fifths of the memory of the host.',
      example: '4294967296',
      workspace: { narrow: 'smaller' },
      option: { name: 'limits.memory' },
      flag: {
        name: '--memory <size>',
        text: 'memory of the command and all that it starts, such as 512M or 4G',
        kind: 'size',
      },
    }),
    // More than parallel builds and test runners have on large machines, less than any host can bear. There is no number
    // for memory, files or processor time that would not end an honest build: memory goes by the size of the host.
    processes: key({
      schema: positive,
      text: 'Processes and threads of a command and all that it starts. Default: 4096.',
      trust: { opens: 'a command may have so many processes', risk: 'low' },
      example: '4096',
      default: 4096,
      workspace: { narrow: 'smaller' },
      option: { name: 'limits.processes' },
      flag: {
        name: '--max-processes <count>',
        text: 'processes and threads of the command and all that it starts (default: 4096)',
        kind: 'count',
      },
    }),
    cpu_seconds: key({
      schema: positive,
      text: 'Processor time of a command and all that it starts, in seconds.',
      example: '600',
      workspace: { narrow: 'smaller' },
      option: { name: 'limits.cpuSeconds' },
      flag: {
        name: '--cpu-time <seconds>',
        text: 'processor time of the command and all that it starts',
        kind: 'count',
      },
    }),
    tmp_bytes: key({
      schema: positive,
      text: 'Bytes in the private directories of a command and of its session: temporary files, home, shared memory. A session whose commands exceed it goes on with empty ones.',
      example: '4294967296',
      workspace: { narrow: 'smaller' },
      option: { name: 'limits.tmpBytes' },
      flag: { name: '--max-tmp <size>', text: 'size of the private directories, such as /tmp', kind: 'size' },
    }),
    user_processes: key({
      schema: positive,
      text: 'RLIMIT_NPROC: all processes and threads of the user, also those outside the sandbox. It does not limit root.',
      example: '10000',
      workspace: { narrow: 'smaller' },
    }),
    open_files: key({
      schema: positive,
      text: 'RLIMIT_NOFILE: open files of each process.',
      example: '1024',
      workspace: { narrow: 'smaller' },
    }),
    file_size: key({
      schema: positive,
      text: 'RLIMIT_FSIZE: bytes of each file that a process writes.',
      example: '1073741824',
      workspace: { narrow: 'smaller' },
    }),
    address_space: key({
      schema: positive,
      text: 'RLIMIT_AS: bytes of address space of each process.',
      example: '8589934592',
      workspace: { narrow: 'smaller' },
    }),
    umask: key({
      schema: (zod: Zod) => zod.string().regex(/^0?[0-7]{3}$/, 'must be an octal string such as "022"'),
      text: 'File mode creation mask, octal. Default: that of sandbox-run itself.',
      example: '"022"',
      value: octal,
    }),
  },
  approval: {
    ask: key({
      schema: (zod) => zod.enum(APPROVERS),
      text: 'Who answers the questions of the policy. terminal: the person at the terminal. queue: this user, with sandbox-run approvals, from anywhere on this machine. nobody: a command that needs approval is refused.',
      example: '"terminal"',
      default: 'terminal',
      option: { name: 'ask' },
      flag: {
        name: '--ask <whom>',
        text: 'who answers the questions of the policy: terminal, queue (sandbox-run approvals), nobody',
        kind: 'choice',
        choices: APPROVERS,
      },
    }),
    timeout_seconds: key({
      schema: (zod: Zod) => zod.number().positive().max(86_400),
      text: 'How long an answer may take. After that the command is refused. Default: 300.',
      example: '300',
      default: 300,
      name: 'timeoutMs',
      value: milliseconds,
    }),
    reviewer_timeout_seconds: key({
      schema: (zod: Zod) => zod.number().positive().max(600),
      text: 'How long a reviewer, a guard, a hook, or a budget or audit sink of the application may take. After that a person is asked, or the command is refused.',
      example: '10',
      default: 10,
      name: 'reviewerTimeoutMs',
      value: milliseconds,
    }),
  },
  reviewer: {
    command: key({
      schema: (zod) => zod.array(zod.string().min(1)).min(1),
      text: 'A program that reviews commands, with its arguments. Its path must be absolute. It reads and writes JSON on standard input and output. It is used instead of a model.',
      example: '["/usr/local/bin/review-command"]',
    }),
    model: key({
      schema: (zod) => zod.string().min(1),
      text: 'A model that reviews commands, through the Messages API.',
      example: '"claude-haiku-4-5"',
    }),
    base_url: key({
      schema: (zod) => zod.url({ protocol: /^https?$/ }),
      text: 'The address of that API. Default: that of the SDK.',
      example: '"https://api.anthropic.com"',
    }),
    key_variable: key({
      schema: (zod) => zod.string().regex(/^[A-Za-z_][A-Za-z0-9_]*$/),
      text: 'The variable in the environment of sandbox-run that holds the API key. Default: ANTHROPIC_API_KEY.',
      example: '"ANTHROPIC_API_KEY"',
      default: 'ANTHROPIC_API_KEY',
    }),
    // Models that think before they answer count that too.
    max_tokens: key({
      schema: (zod) => positive(zod).max(4096),
      text: 'The most tokens of an answer, thinking included. Default: 1024.',
      example: '1024',
      default: 1024,
    }),
  },
  hooks: {
    git_guard: key({
      schema: (zod) => zod.boolean(),
      text: 'true: git push, pull and rebase are refused, and other commands that do the same.',
      example: 'true',
      default: false,
    }),
    plugins: key({
      schema: (zod) => zod.array(plugin(zod)),
      text: 'ES modules (path) and programs (command) that are asked about commands, in this order, after the built-in checks. The first one that refuses ends the questions.',
      example: '[{ path = "/etc/sandbox-run/hooks/mine.mjs" }]',
      default: [],
      layers: 'add',
    }),
  },
  audit: {
    enabled: key({
      schema: (zod) => zod.boolean(),
      text: 'true: every decision and result is written to the audit trail. Default: only decisions of the gate server.',
      example: 'true',
    }),
    on_failure: key({
      schema: (zod) => zod.enum(['refuse', 'warn']),
      text: 'What happens if a record cannot be written. refuse (default): the command does not run. warn: it runs, with a warning.',
      example: '"refuse"',
      default: 'refuse',
      weaker: {
        is: (onFailure) => onFailure === 'warn',
        meaning: 'commands may run without a record in the audit trail',
      },
    }),
    keep_days: key({
      schema: (zod) => zod.number().int().min(1).max(36_500),
      text: 'For how many days records are kept. With the first record of a day those of older days are removed, and the trail says which. Default: 90 where the trail was turned on by an option (install, --audit), and all where the policy turned it on.',
      example: '90',
    }),
    hmac_key_file: key({
      schema: (zod) => zod.string().regex(/^\//, 'must be absolute'),
      text: 'A file with a secret of at least 32 bytes, which signs the records. Only its owner may be able to read it.',
      example: '"/etc/sandbox-run/audit.key"',
    }),
    stream: key({
      schema: (zod) => zod.enum(AUDIT_STREAMS),
      text: 'Whether records go to a stream of the NATS server of state.url, too. off (default). publish: as soon as the server is there. require: a command starts only when most of the servers that keep the stream have its decision; what happens without them says on_failure.',
      example: '"off"',
      default: 'off',
    }),
  },
  state: {
    url: key({
      schema: (zod) =>
        zod.string().regex(/^(nats|tls):\/\/[^\s@]+$/, 'must begin with nats:// or tls://, without a user'),
      text: 'The NATS server where budget, approvals, grants, sessions and taints are kept, for a fleet of machines (docs/fleet.md). Those of a cluster with commas between. Default: files of this user on this machine.',
      example: '"tls://one.example:4222,two.example:4222"',
    }),
    credentials: key({
      schema: (zod) => zod.string().regex(/^\//, 'must be absolute'),
      text: 'A file with NATS credentials or an nkey seed. Only its owner may be able to read it. Default: the file that the variable SANDBOX_RUN_NATS_CREDS names.',
      example: '"/etc/sandbox-run/nats.creds"',
    }),
    ca: key({
      schema: (zod) => zod.string().regex(/^\//, 'must be absolute'),
      text: 'A file with the certificates that sign those of the server. Default: those of Node.',
      example: '"/etc/sandbox-run/ca.pem"',
    }),
    replicas: key({
      schema: (zod: Zod) => positive(zod).max(5),
      text: 'How many servers keep the state. Default: 3 in a cluster, 1 without.',
      example: '3',
    }),
    on_failure: key({
      schema: (zod) => zod.enum(['refuse', 'warn']),
      text: 'What happens if that server cannot be used. refuse (default): a command that needs the state does not run. warn: it runs uncounted and as if its session had every taint, with a warning; what needs an approval is refused all the same.',
      example: '"refuse"',
      default: 'refuse',
      weaker: {
        is: (onFailure) => onFailure === 'warn',
        meaning: 'commands may run without being counted',
      },
    }),
  },
  gate: {
    taints: key({
      schema: (zod) => zod.enum(TAINT_SHARING),
      text: 'Whose taints count for a session. session: its own; agents that are to share what they saw use one session. user: those of all sessions of the same user that were used in the last twelve hours.',
      example: '"session"',
      default: 'session',
      workspace: { narrow: 'strictest', only: 'user', text: 'Those of all sessions of the user.' },
    }),
    autonomy: key({
      schema: (zod) => zod.enum(AUTONOMIES),
      text: 'What sandbox-run gate lets agents do without a question, instead of security.autonomy. autonomous: whatever is not refused, as long as the session has no taint and no rule asks. Default: security.autonomy; contained is supervised at a gate, where nothing is held by us.',
      example: '"supervised"',
      weaker: { is: (autonomy) => autonomy === 'autonomous', meaning: 'a gate asks nothing because of risk' },
    }),
  },
  sandbox: {
    minimum: key({
      schema: (zod) => zod.enum(BACKEND_IDS),
      text: 'The weakest backend that may run commands. Naming one accepts that it can never hold some controls that the profile requires. What `demand` of a policy file requires stays required. Default: only a backend that holds everything that is required.',
      example: '"landlock"',
      workspace: {
        narrow: 'strongerBackend',
        text: 'A stronger minimum than that of the policy.',
      },
    }),
    explain: key({
      schema: (zod) => zod.enum(EXPLAIN),
      text: 'What is looked at to tell what the sandbox denied a command. auto: calls that write, create, remove, execute, connect and signal, which costs nothing that can be measured, and what is read, too, when a line that failed is run again. always: what is read, too, which slows down programs that open many files. never: nothing. It changes what is told, not what is held.',
      example: '"auto"',
      default: 'auto',
      option: { name: 'explain' },
      flag: {
        name: '--explain <when>',
        text: 'tell what the sandbox denied: auto (all but what is read), always (that too; slower), never',
        kind: 'choice',
        choices: EXPLAIN,
      },
    }),
  },
  demand: key({
    schema: (zod) => zod.partialRecord(zod.enum(CONTROL_IDS), zod.enum(DEMANDS)),
    text: 'required: commands are refused if this host cannot enforce the control. best-effort: they run.',
    example: '{ protected-paths = "required" }',
    default: Object.fromEntries(REQUIRED.map((id) => [id, 'required' as const])),
    layers: 'by-name',
    workspace: {
      narrow: 'adds',
      only: 'required',
      schema: (zod) => zod.partialRecord(zod.enum(CONTROL_IDS), zod.literal('required')),
      text: 'Commands are refused if this host cannot enforce the control.',
    },
    weaker: {
      is: (demand) => REQUIRED.some((id) => demand[id] !== 'required'),
      meaning: 'commands run even if a control that is required by default cannot be enforced',
    },
  }),
  workspace: {
    undo: key({
      schema: (zod) => zod.enum(UNDO),
      text: 'Which commands sandbox-run undo can revert in the workspace. Such a command writes to a layer, which is applied to the workspace when it ends. losses: commands that may lose work there; they are then not asked about. always: all commands, which is slower; commands that only read get no layer and cannot write the workspace. never: none. Without a layer, losing work is asked about. No layer is possible without namespaces, in sessions, in the background and on a terminal (-t); with losses also if a parent directory of the workspace is writable (filesystem.write) or a file system is mounted in the workspace. Losing work in a granted path outside of the workspace is always asked about.',
      example: '"losses"',
      default: 'losses',
      option: { name: 'undo' },
    }),
    undo_keep: key({
      schema: (zod) =>
        zod
          .string()
          .regex(
            /^[1-9]\d{0,4}[hdw](, ?[1-9]\d{0,4}[MGT])?$/,
            'must be a time (h, d or w) and optionally a size (M, G or T), such as "7d, 2G" or "12h"',
          ),
      text: 'How long changes can be undone, and how much disk space is kept for that in all workspaces of this user together: a time in hours (h), days (d) or weeks (w), and optionally a size in MiB (M), GiB (G) or TiB (T), default 2G. The oldest change sets are removed first; the newest one is kept whatever its size. At most 200 are kept. Change sets that wait to be applied are kept for 30 days.',
      example: '"7d, 2G"',
      default: '7d, 2G',
      value: (said) => {
        const [, time = '7', unit = 'd', size = '2', of = 'G'] =
          /^(\d+)([hdw])(?:, ?(\d+)([MGT]))?$/.exec(said) ?? [];
        return { ms: Number(time) * (KEEP_MS[unit] ?? 0), bytes: Number(size) * (KEEP_BYTES[of] ?? 0) };
      },
    }),
  },
  services: key({
    schema: (zod) => services(zod, publications),
    text: 'Commands that sandbox-run up starts and that go on until they are stopped, by name: command (a shell string, or an array of words), ready (a TCP port at which it listens then), ready_line (a regular expression for a line of its output), ready_timeout_seconds, restart (on-failure) and publish (ports for this machine, as --publish).',
    example: '{ web = { command = "npm run dev", ready = 5173 } }',
    default: {},
    layers: 'by-name',
    trust: {
      opens: 'sandbox-run up starts this, in the sandbox, until it is stopped',
      risk: 'low',
      schema: (zod) => services(zod, ownPublications),
    },
  }),
  unsafe: {
    unjudged_commands: key({
      schema: (zod) => zod.boolean(),
      text: 'true: commands run without being judged, and no hook or guard is asked. Only the kernel contains them.',
      example: 'false',
      default: false,
      weaker: {
        is: (unjudged) => unjudged,
        meaning: 'commands are not judged, and no hook or guard is asked about them',
      },
    }),
  },
};

/** Why a trusted file of a workspace may not widen a key: by key, or by the table that the key is in. */
const NEVER_TRUSTED: Readonly<Record<string, string>> = {
  profile: 'it would take the place of the whole policy',
  security: 'what an agent may do unasked is the choice of its user',
  commands: 'dangerous programs act on the machine, not on the project',
  filesystem: 'it is about the files of the user and the machine, not of the project',
  network: 'it opens the services of the user and the machine, or the whole network',
  environment: 'variables of the user may hold secrets',
  limits: 'no default of it stands in the way of a project',
  approval: 'a project must not choose who answers',
  reviewer: 'a project must not choose who answers',
  hooks: 'they run outside the sandbox',
  audit: 'what is recorded belongs to the user and the machine',
  state: 'what is remembered belongs to the user and the machine',
  gate: 'what an agent may do unasked is the choice of its user',
  sandbox: 'what the kernel must hold is never weakened by a project',
  demand: 'what the kernel must hold is never weakened by a project',
  workspace: 'a project must not take the way back away',
  unsafe: 'commands would not be judged any more',
};

/** Why a key cannot be widened by a trusted file of a workspace; `undefined`: it can. */
export function whyNeverTrusted({ key: name, place, row }: PlacedKey): string | undefined {
  if (row.trust !== undefined) return undefined;
  return NEVER_TRUSTED[name] ?? NEVER_TRUSTED[place[0] ?? ''];
}

/** The rows of {@link POLICY_KEYS}. */
export const PLACED_KEYS = placedKeys(POLICY_KEYS);

type Table = typeof POLICY_KEYS;
/** A policy file after validation: every key optional. */
export type PolicyFile = {
  -readonly [Section in keyof Table]?:
    | (Table[Section] extends AnyKey
        ? Said<Table[Section]>
        : { -readonly [Key in keyof Table[Section]]?: Said<Table[Section][Key]> | undefined })
    | undefined;
};

/** What the keys decide together, as the program uses it. */
export type PolicyValues = {
  readonly [Section in keyof Table]: Table[Section] extends AnyKey
    ? ValueOf<Table[Section]>
    : {
        readonly [Key in keyof Table[Section] as NameOf<Key, Table[Section][Key]> & string]: ValueOf<
          Table[Section][Key]
        >;
      };
};
