import type { PolicyFile } from '../../src/model/index.ts';
import { BACKENDS } from '../../src/run/index.ts';
import { CONTAINER, fakeLookup, GROUPS, hostWith, planOf } from '../unit/confine/plan/fixtures.ts';
import { policyOf } from './policy-of.ts';

/** A line of the record: what one policy becomes on one host under one backend. */
export interface RecordedPlan {
  readonly policy: string;
  readonly host: string;
  readonly backend: string;
  /** The plan and what the addon gets of it; or why there is none. */
  readonly became: unknown;
}

const HOSTS = {
  ...Object.fromEntries(
    [0, 1, 2, 3, 4, 5, 6, 9, 11].map((abi) => [
      `abi ${abi}`,
      hostWith({ abi, namespaces: true, seccomp: true, cgroup: abi % 2 === 1 }),
    ]),
  ),
  container: CONTAINER,
  'container, abi 4': hostWith({ abi: 4, namespaces: false, seccomp: true }),
  'no seccomp': hostWith({ abi: 7, namespaces: true, seccomp: false }),
  'no /proc': hostWith({ abi: 7, namespaces: true, seccomp: true, processList: false }),
  root: {
    ...hostWith({ abi: 7, namespaces: true, seccomp: true, cgroup: true }),
    needsUserNamespace: false,
    cgroup: GROUPS,
  },
};

/** What a policy file may say, one thing each; all pairs of two groups are recorded. */
const FIRST: Readonly<Record<string, PolicyFile>> = {
  default: {},
  'read-only': { profile: 'read-only' },
  'offline-build': { profile: 'offline-build' },
  networked: { profile: 'networked' },
  'network open': { network: { mode: 'open' } },
  'network listed': { network: { mode: 'listed', allow: ['a.example', '10.0.0.0/8:443'] } },
  'listed, inside': { network: { mode: 'listed', allow: ['a.example'], verify: 'sni' } },
  'unix allowed': { network: { unix_sockets: 'allowed' } },
  'home host': { filesystem: { home: 'host' } },
  'tmp host': { filesystem: { tmp: 'host' } },
};

const SECOND: Readonly<
  Record<string, { readonly says: PolicyFile; readonly found?: Parameters<typeof planOf>[0] }>
> = {
  nothing: { says: {} },
  'a path to read': { says: { filesystem: { read: ['/data'] } } },
  'a path to write': { says: { filesystem: { write: ['/shared', '/w/../beside'] } } },
  'both, and links': {
    says: { filesystem: { read: ['/link'], write: ['/shared'] } },
    found: { lookup: fakeLookup({ '/link': { link: '/data/x' }, '/shared': 'file', '/w/.git': 'missing' }) },
  },
  'a git repository': {
    says: {},
    found: {
      lookup: fakeLookup({}),
      obeyed: ['/w/.git/hooks', '/w/.git/config', '/w/.vscode'],
      copied: ['/w/.git/config'],
      ofOtherWorktrees: ['/w/.git/worktrees/other'],
    },
  },
  'an installer of hooks': {
    says: {},
    found: {
      lookup: fakeLookup({}),
      obeyed: ['/w/.git/hooks'],
      copied: ['/w/.git/config'],
      hooks: {
        directories: [{ path: '/w/.husky/_', kept: '/state/kept/1' }],
        settingOf: (path) => `/state/kept${path}`,
      },
    },
  },
  'hidden files': {
    says: { filesystem: { hide: ['.env', 'secrets/'] } },
    found: { hidden: { paths: ['/w/.env', '/w/secrets'], elsewhere: ['/w/.env'], tracked: ['/w/.env'] } },
  },
  'a layer': {
    says: { filesystem: { write: ['/shared'] } },
    found: {
      layer: { lower: [], upper: '/state/changes/1/upper', work: '/state/changes/1/work' },
    },
  },
  'reads only': { says: {}, found: { onlyReads: true } },
  'looks at reads': { says: { sandbox: { explain: 'auto' } }, found: { looksAtReads: true } },
  'explains never': { says: { sandbox: { explain: 'never' } } },
  'explains always': { says: { sandbox: { explain: 'always' } }, found: { tellsUses: true } },
  limits: {
    says: {
      limits: {
        memory: 1_000_000_000,
        processes: 100,
        cpu_seconds: 10,
        tmp_bytes: 1_000_000,
        open_files: 200,
      },
    },
  },
  'own paths': {
    says: { filesystem: { write: ['/home/user/.local'] } },
    found: {
      own: [
        { path: '/home/user/.local/state/sandbox-run', kind: 'state' },
        { path: '/home/user/.config/sandbox-run', kind: 'settings' },
        { path: '/w/own-policy.toml', kind: 'policy' },
        { path: '/home/user/.local/lib/sandbox-run', kind: 'program' },
      ],
    },
  },
  'protected and masked': { says: { filesystem: { protect: ['Makefile', 'ci/'], read: ['/w/data'] } } },
  'no cache': { says: {}, found: { cache: { reason: 'a test' } } },
  'shared by a group': { says: {}, found: { sharedByGroup: true, shortfall: 'too many files' } },
  'a workspace by a link': {
    says: {},
    found: {
      workspaceAsNamed: '/src/w',
      lookup: fakeLookup({ '/src': { link: '/w' }, '/w/.git': 'missing' }),
    },
  },
  'a home of the database': { says: {}, found: { databaseHome: '/home/user', memoryParent: undefined } },
  'a workspace in the home': {
    says: {},
    found: { workspace: '/home/user/w', workspaceAsNamed: '/home/user/w', beside: ['/home/user/main'] },
  },
  'a workspace in /tmp': {
    says: {},
    found: { workspace: '/tmp/w', workspaceAsNamed: '/tmp/w', parentBesideTmp: () => '/var/tmp' },
  },
};

/** Every pair of what policies say, on every host, under every backend: about 200 policies. The same each time. */
export async function* recordedPlans(): AsyncGenerator<RecordedPlan> {
  for (const [first, file] of Object.entries(FIRST)) {
    for (const [second, { says, found }] of Object.entries(SECOND)) {
      for (const [host, features] of Object.entries(HOSTS)) {
        for (const backend of BACKENDS) {
          yield {
            policy: `${first}; ${second}`,
            host,
            backend: backend.id,
            became: await outcomeOf(async () => {
              const plan = planOf({
                policy: { ...policyOf(file, says), demand: {} },
                features,
                backend: backend.id,
                ...found,
              });
              // What Firejail gets depends on the Firejail of this host.
              if (backend.id === 'firejail') return { plan };
              return { plan, spec: await backend.confinement(plan, features, noTrial) };
            }),
          };
        }
      }
    }
  }
}

const noTrial = () => Promise.reject(new Error('nothing is tried for a record'));

async function outcomeOf(make: () => Promise<unknown>): Promise<unknown> {
  try {
    return await make();
  } catch (error) {
    if (error instanceof Error && 'code' in error) return { code: error.code, message: error.message };
    throw error;
  }
}
