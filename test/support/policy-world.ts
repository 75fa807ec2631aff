import { VERDICTS } from '../../src/base/words.ts';
import {
  type CheckContext,
  isForeignTo,
  parseShell,
  programName,
  type RulesOfCommands,
  reachOfLine,
  riskOfLine,
  TEXT_CHECKS,
} from '../../src/judge/index.ts';
import type {
  Autonomy,
  Parsed,
  PathSearch,
  Reason,
  ResolvedPath,
  SymbolicLink,
  Taint,
  Verdict,
} from '../../src/model/index.ts';
import { PROTECTED_PATHS, SYSTEM_PATHS } from '../../src/policy/index.ts';

export const WORKSPACE = '/home/agent/project';
export const HOME = '/home/agent';

/** Directories and files of a small world; links name their content. */
const DIRECTORIES = new Set([
  '/',
  '/etc',
  '/usr',
  '/usr/bin',
  '/bin',
  '/tmp',
  '/home',
  HOME,
  WORKSPACE,
  ...[
    'src',
    'tests',
    'docs',
    'web',
    'build',
    'sub',
    '.git',
    '.git/hooks',
    'test_cp_dir',
    'vendored',
    'vendored/.git',
  ].map((name) => `${WORKSPACE}/${name}`),
]);
const FILES = new Set([
  '/etc/passwd',
  '/etc/shadow',
  ...['README.md', 'a.txt', 'src/main.rs', 'src/app.ts', 'git', 'evil.sh', '.git/config'].map(
    (name) => `${WORKSPACE}/${name}`,
  ),
]);
const LINKS: Readonly<Record<string, string>> = {
  [`${WORKSPACE}/somelink`]: '/etc/shadow',
  [`${WORKSPACE}/outside`]: '/etc',
  [`${WORKSPACE}/hooks`]: '.git/hooks',
};

/** Follows links component by component, as the kernel does. */
export const FAKE_PATHS: PathSearch = {
  resolve(path: string): ResolvedPath {
    const rest = path.split('/').filter((part) => part !== '' && part !== '.');
    const links: SymbolicLink[] = [];
    let at = '';
    for (;;) {
      const part = rest.shift();
      if (part === undefined) break;
      if (part === '..') {
        at = at.slice(0, at.lastIndexOf('/'));
        continue;
      }
      const next = `${at}/${part}`;
      const content = LINKS[next];
      if (content === undefined) {
        at = next;
        continue;
      }
      links.push({ path: next, content });
      if (links.length > 40) throw new Error('too many links');
      rest.unshift(...content.split('/').filter((name) => name !== ''));
      if (content.startsWith('/')) at = '';
    }
    const canonical = at === '' ? '/' : at;
    const kind = DIRECTORIES.has(canonical) ? 'directory' : FILES.has(canonical) ? 'other' : 'missing';
    return { kind, canonical, links };
  },
  expand(pattern: string): readonly string[] {
    // One component with patterns is enough for this world.
    const [, before = '', name = '', after = ''] =
      /^([^*]*\/)([^/]*\*[^/]*)(.*)$/.exec(pattern.replaceAll('/./', '/')) ?? [];
    const expression = new RegExp(`^${name.replaceAll('.', '\\.').replaceAll('*', '.*')}$`);
    return [...DIRECTORIES, ...FILES, ...Object.keys(LINKS)]
      .filter((path) => path.startsWith(before) && expression.test(path.slice(before.length)))
      .filter((path) => !path.slice(before.length).includes('/'))
      .map((path) => `${path}${after}`);
  },
};

/** What may differ from the default profile. */
export interface World {
  readonly autonomy?: Autonomy;
  readonly approved?: boolean;
  readonly taints?: readonly Taint[];
  readonly rules?: Partial<RulesOfCommands>;
  /** Programs that lie in the workspace, on the child's PATH. */
  readonly planted?: readonly string[];
}

/** The default profile, in a small world. */
export function contextOf(parsed: Parsed, world: World = {}): CheckContext {
  const rules: RulesOfCommands = {
    workspace: WORKSPACE,
    writable: ['/tmp'],
    hidden: [],
    readable: SYSTEM_PATHS.map(({ path }) => path),
    protected: PROTECTED_PATHS.map((path) => `${WORKSPACE}/${path}`),
    home: HOME,
    allow: undefined,
    permitDangerous: [],
    own: [],
    maxActionsPerHour: undefined,
    reviewerTimeoutMs: 1_000,
    userHome: HOME,
    held: { files: true, network: true, signals: true },
    opened: undefined,
    granted: [],
    ...world.rules,
  };
  const base: CheckContext = {
    parsed,
    text: parsed.understood ? (parsed.line.source ?? '') : '',
    gate: { budget: undefined, reviewer: undefined, gitGuard: undefined, hooks: [], within: (work) => work },
    risk: 'high',
    reach: 'unknown',
    autonomy: world.autonomy ?? 'supervised',
    effect: 'direct',
    approved: world.approved ?? false,
    taints: new Set(world.taints ?? []),
    cwd: WORKSPACE,
    rules,
    paths: FAKE_PATHS,
    findExecutable: (name) =>
      world.planted?.includes(name) === true ? `${WORKSPACE}/${name}` : `/usr/bin/${name}`,
  };
  const isForeign = isForeignTo(base);
  return { ...base, risk: riskOfLine(parsed, isForeign), reach: reachOfLine(parsed, isForeign) };
}

/** Verdict and reasons of the text checks alone, and of an allow-list where there is one. */
export interface Judged {
  readonly verdict: Verdict;
  readonly risk: CheckContext['risk'];
  readonly reach: CheckContext['reach'];
  readonly reasons: readonly Reason[];
}

/** Runs the text checks over a command. */
export function judgeText(command: string, world: World = {}): Judged {
  const parsed = parseShell(command);
  const context = contextOf(parsed, world);
  const reasons: Reason[] = [];
  for (const check of TEXT_CHECKS) {
    const found = check.judge(context);
    if (found instanceof Promise) throw new TypeError(`${check.name} is not pure`);
    reasons.push(...found);
  }
  const { allow } = context.rules;
  if (allow !== undefined && parsed.understood) {
    for (const line of parsed.line.commands) {
      const name = programName(line);
      if (name === undefined || !allow.includes(name)) {
        reasons.push({ check: 'allow-list', verdict: 'deny', code: 'not_listed', message: '', words: [] });
      }
    }
  }
  const rank = Math.max(
    0,
    ...reasons.map(({ verdict }) => (verdict === undefined ? 0 : VERDICTS.indexOf(verdict))),
  );
  return { verdict: VERDICTS[rank] ?? 'deny', risk: context.risk, reach: context.reach, reasons };
}

/** The programs of the classic agent allow-list. */
export const CLASSIC_ALLOW_LIST = 'ls cat cp head printenv pwd rg sed which'.split(' ');
