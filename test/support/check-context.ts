import { within } from '../../src/gate/index.ts';
import { type CheckContext, parseShell, type RulesOfCommands } from '../../src/judge/index.ts';
import type { PathSearch } from '../../src/model/index.ts';

/** The default policy, as the checks see it, of a workspace `/w`. */
export const RULES: RulesOfCommands = {
  workspace: '/w',
  writable: ['/tmp', '/dev/null'],
  hidden: [],
  readable: ['/usr', '/bin'],
  protected: ['/w/.git/hooks'],
  home: '/home/sandbox',
  allow: undefined,
  permitDangerous: [],
  own: [],
  maxActionsPerHour: undefined,
  reviewerTimeoutMs: 20,
  userHome: '/home/somebody',
  held: { files: false, network: false, signals: false },
  opened: undefined,
  granted: [],
};

/** Names lead where they say. */
export const NO_LINKS: PathSearch = {
  resolve: (path) => ({ kind: 'other', canonical: path, links: [] }),
  expand: () => [],
};

/** Programs of a host by absolute path; a name is looked up in /usr/bin. */
export function executables(...paths: readonly string[]): CheckContext['findExecutable'] {
  return (name, cwd) => {
    const path = name.startsWith('/')
      ? name
      : name.includes('/')
        ? `${cwd}/${name.replace(/^\.\//, '')}`
        : `/usr/bin/${name}`;
    return paths.includes(path) ? path : undefined;
  };
}

/** A request for a shell string, with whatever matters changed. */
export function contextOf(
  source: string,
  changes: Partial<Omit<CheckContext, 'rules' | 'gate'>> & {
    readonly rules?: Partial<RulesOfCommands>;
    readonly gate?: Partial<CheckContext['gate']>;
  } = {},
): CheckContext {
  return {
    parsed: parseShell(source),
    text: source,
    risk: 'low',
    reach: 'local',
    autonomy: 'supervised',
    effect: 'direct',
    approved: false,
    taints: new Set(),
    cwd: '/w',
    paths: NO_LINKS,
    findExecutable: executables('/usr/bin/ls', '/usr/bin/cat', '/usr/bin/git', '/usr/bin/rm'),
    ...changes,
    rules: { ...RULES, ...changes.rules },
    gate: {
      budget: undefined,
      reviewer: undefined,
      gitGuard: undefined,
      hooks: [],
      within,
      ...changes.gate,
    },
  };
}
