import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { AUTONOMIES, BACKEND_IDS, CONTROL_IDS, isAtLeast, LAYER_NAMES } from '../../../src/base/words.ts';
import { policyOptions, policyTemplate } from '../../../src/cli/index.ts';
import {
  type Autonomy,
  fileSchema,
  PLACED_KEYS,
  type PlacedKey,
  POLICY_KEYS,
  type PolicyFile,
  type PolicyKey,
  placedKeys,
  policyFileSchema,
  workspaceFileSchema,
} from '../../../src/model/index.ts';
import { effectivePolicy, weakenings } from '../../../src/policy/effective.ts';
import {
  type Entry,
  keysInForce,
  type LayerName,
  mergedFile,
  type PolicyLayer,
  putAt,
  saidBy,
  valueAt,
} from '../../../src/policy/layers.ts';
import { parsePolicy } from '../../../src/policy/load.ts';
import { sourceOf } from '../../../src/policy/locate-key.ts';
import { PROFILES } from '../../../src/policy/profiles/built-in.ts';

import { policyOf } from '../../support/policy-of.ts';

const PLACE = { workspace: '/w', home: '/home/user' };

/** Simple values, of which each key takes those that its schema takes; a list or a table is made of them. */
const SIMPLE: readonly unknown[] = [
  ...[true, false, 0, 1, 2, 5, 60, 500],
  ...['/a', '/b/c', '~/d', 'e', 'F_G', 'h*', '022', '0077', 'http://localhost/x'],
  ...AUTONOMIES,
  ...BACKEND_IDS,
  ...[
    'private',
    'host',
    'auto',
    'workspace',
    'off',
    'open',
    'contained',
    'allowed',
    'refuse',
    'warn',
    'never',
  ],
  ...[
    'session',
    'listed',
    'user',
    'terminal',
    'queue',
    'nobody',
    'deny',
    'ask',
    'none',
    'sni',
    '7d, 2G',
    '12h',
    'nats://h:1',
    'tls://i',
  ],
];
const ITEMS: readonly unknown[] = [
  ...SIMPLE,
  ...[{ path: '/x.mjs' }, { path: '/y.mjs', sha256: 'a'.repeat(64) }],
  ...[
    { program: 'git', verdict: 'ask' },
    { program: 'rm', words: ['-rf'], verdict: 'deny', reason: 'no' },
  ],
  ...['/run/a.sock', { path: '/run/b.sock', ask: false }],
];
const DEMANDS = ['required', 'best-effort'];
const SERVICES = [{ command: 'npm run dev', ready: 5173 }, { command: ['redis-server'] }];

/** Values that a schema accepts, of every kind that there is. */
function valuesOf(schema: z.ZodType): fc.Arbitrary<unknown> {
  const accepted = (values: readonly unknown[]) => values.filter((value) => schema.safeParse(value).success);
  const simple = accepted(SIMPLE);
  if (simple.length > 0) return fc.constantFrom(...simple);
  const items = ITEMS.filter((item) => schema.safeParse([item]).success);
  if (items.length > 0) return fc.array(fc.constantFrom(...items), { minLength: 1, maxLength: 3 });
  const names = [...CONTROL_IDS.slice(0, 4), 'A', 'B_C', 'web'];
  const values = [...DEMANDS, 'x', ...SERVICES];
  const pairs = names.flatMap((name) => values.map((value) => ({ [name]: value })));
  const tables = accepted(pairs) as readonly object[];
  if (tables.length === 0) throw new Error('no value is known for a key: add one to SIMPLE or ITEMS');
  return fc
    .array(fc.constantFrom(...tables), { minLength: 1, maxLength: 3 })
    .map((some) => Object.assign({}, ...some) as object);
}

/** What a file in the workspace may say of a key that it may have. */
function workspaceSchema({ schema, workspace }: PlacedKey['row']): z.ZodType {
  if (workspace?.schema !== undefined) return workspace.schema(z);
  return workspace?.only === undefined ? schema(z) : z.literal(workspace.only);
}

/** Files of one kind, with any of the keys that may stand there. */
function filesOf(kind: 'operator' | 'workspace', keys = PLACED_KEYS): fc.Arbitrary<PolicyFile> {
  const rows = keys.flatMap(({ key, place, row }) => {
    if (kind === 'workspace' && row.workspace === undefined) return [];
    const schema = kind === 'workspace' ? workspaceSchema(row) : row.schema(z);
    const values =
      key === 'profile' ? fc.constantFrom(...PROFILES.map(({ name }) => name)) : valuesOf(schema);
    return [{ place, value: fc.option(values, { nil: undefined, freq: 3 }) }];
  });
  return fc.tuple(...rows.map(({ value }) => value)).map((values) => {
    const file: Record<string, unknown> = {};
    for (const [at, value] of values.entries())
      if (value !== undefined) putAt(file, rows[at]?.place ?? [], value);
    return file as PolicyFile;
  });
}

const operatorLayers: fc.Arbitrary<readonly PolicyLayer[]> = fc
  .array(filesOf('operator'), { minLength: 1, maxLength: 4 })
  .map((files) => files.map((says, at): PolicyLayer => ({ name: LAYER_NAMES[at + 1] ?? 'caller', says })));
const workspaceLayer = filesOf('workspace').map((says): PolicyLayer => ({ name: 'workspace', says }));

/** Half of what is asked of zod is done here: fewer runs than usual hold it as well. */
const RUNS = { numRuns: 60 };

describe('the table of keys', () => {
  it('makes files that its schemas accept', () => {
    fc.assert(
      fc.property(filesOf('operator'), filesOf('workspace'), (file, narrowing) => {
        expect(policyFileSchema.safeParse(file)).toMatchObject({ success: true });
        expect(workspaceFileSchema.safeParse(narrowing)).toMatchObject({ success: true });
      }),
      RUNS,
    );
  });

  it.each(PLACED_KEYS.map((key) => [key.key, key] as const))(
    '%s has a text, a fit default and example',
    async (_, { key, row, place }) => {
      expect(row.text).toMatch(/^\S.*\.$/);
      if (row.default !== undefined)
        expect(row.schema(z).safeParse(row.default)).toMatchObject({ success: true });
      const said = await parsePolicy(`${key} = ${row.example}`, 'example');
      expect(valueAt(said, place)).toBeDefined();
      // What a workspace may say is no more than what an operator may.
      if (row.workspace !== undefined)
        for (const value of fc.sample(valuesOf(workspaceSchema(row)), 10))
          expect(row.schema(z).safeParse(value)).toMatchObject({ success: true });
      // The default of the built-in policy is nothing that it would warn of.
      if (row.default !== undefined && row.weaker !== undefined)
        expect(row.weaker.is(row.value === undefined ? row.default : row.value(row.default))).toBe(false);
    },
  );

  it('lets a list be replaced only where a later one must be the whole list', () => {
    const isList = ({ row }: PlacedKey) => row.schema(z).safeParse([]).success || key(row);
    const key = (row: PlacedKey['row']) => row.schema(z).safeParse(['/a']).success;
    expect(
      PLACED_KEYS.filter(isList)
        .filter(({ row }) => row.layers !== 'add')
        .map((one) => one.key),
    ).toEqual(['commands.allow', 'reviewer.command']);
  });

  it('takes no unknown key in any table, and every control in demand', () => {
    const tables = new Set(PLACED_KEYS.flatMap(({ place }) => (place.length > 1 ? [place[0]] : [])));
    for (const table of [undefined, ...tables]) {
      const file = table === undefined ? { unknown: 1 } : { [table]: { unknown: 1 } };
      expect(policyFileSchema.safeParse(file).success).toBe(false);
      expect(workspaceFileSchema.safeParse(file).success).toBe(false);
    }
    const demand = Object.fromEntries(CONTROL_IDS.map((id) => [id, 'required']));
    expect(policyFileSchema.safeParse({ demand }).success).toBe(true);
  });
});

describe('layers', () => {
  it('never lose an item of a key that adds up', () => {
    fc.assert(
      fc.property(operatorLayers, workspaceLayer, (layers, workspace) => {
        const all = [...layers, workspace];
        const entries = keysInForce(all).flatMap((one) => one.entries);
        for (const { key, place, row } of PLACED_KEYS) {
          if (row.layers !== 'add') continue;
          const said = all.flatMap((layer) => (saidBy(layer, place) ?? []) as readonly unknown[]);
          expect(entries.filter((entry) => entry.key === key).map(({ value }) => value)).toEqual(said);
        }
      }),
      RUNS,
    );
  });

  it('are the same however they are put together', () => {
    const one = (...files: readonly PolicyFile[]): PolicyFile =>
      mergedFile(files.map((says) => ({ name: 'option', says })));
    fc.assert(
      fc.property(filesOf('operator'), filesOf('operator'), filesOf('operator'), (a, b, c) => {
        const all = one(a, b, c);
        expect(one(one(a, b), c)).toEqual(all);
        expect(one(a, one(b, c))).toEqual(all);
        expect(one(a)).toEqual(a);
      }),
      RUNS,
    );
  });

  it('are not changed, nor are profiles', () => {
    const profiles = structuredClone(PROFILES);
    fc.assert(
      fc.property(operatorLayers, (layers) => {
        const before = structuredClone(layers);
        effectivePolicy(layers, PLACE);
        expect(layers).toEqual(before);
      }),
      RUNS,
    );
    expect(PROFILES).toEqual(profiles);
  });

  it('name the one that said it', () => {
    fc.assert(
      fc.property(operatorLayers, workspaceLayer, (layers, workspace) => {
        const all = [...layers, workspace];
        for (const entry of effectivePolicy(all, PLACE).entries) expectSaid(entry, all);
      }),
      RUNS,
    );
  });
});

/** The layer of an entry says it, and no later one of the operator says something else. */
function expectSaid(entry: Entry, all: readonly PolicyLayer[]): void {
  const names = entry.place.filter((part) => typeof part === 'string');
  const { row } = PLACED_KEYS.find(({ place }) => names.slice(0, place.length).join() === place.join()) ?? {};
  const said = entry.place.reduce<unknown>(
    (value, part) => Reflect.get(Object(value), part),
    entry.layer.says,
  );
  expect(said).toBeDefined();
  // What a path was made from is not what is shown, and an intersection is of two layers.
  if (row?.paths !== true && row?.workspace?.narrow !== 'intersection') expect(entry.value).toEqual(said);
  if (entry.item) return;
  const later = all.slice(all.indexOf(entry.layer) + 1).filter(({ name }) => name !== 'workspace');
  expect(later.map((layer) => valueAt(layer.says, names)).filter((value) => value !== undefined)).toEqual([]);
}

/** Written anew, and not with what the table uses: whether a value allows no more than another one. */
const IS_NO_WIDER: Readonly<
  Record<NonNullable<PolicyKey['workspace']>['narrow'], (after: unknown, before: unknown) => boolean>
> = {
  strictest: (after, before) =>
    after === before ||
    ['private', 'none', 'off', 'contained', 'deny', 'sni', 'listed', 'user'].includes(String(after)),
  smaller: (after, before) => Number(after ?? Infinity) <= Number(before ?? Infinity),
  shorter: (after, before) => (Number(after) || Infinity) <= (Number(before) || Infinity),
  intersection: (after, before) =>
    before === undefined || (after as string[]).every((one) => (before as string[]).includes(one)),
  stricterAutonomy: (after, before) =>
    AUTONOMIES.indexOf(after as Autonomy) >= AUTONOMIES.indexOf(before as Autonomy),
  narrowerNetwork: (after, before) =>
    ['off', 'listed', 'open'].indexOf(String(after)) <= ['off', 'listed', 'open'].indexOf(String(before)),
  strongerBackend: (after, before) =>
    before === undefined ||
    isAtLeast(after as (typeof BACKEND_IDS)[number], before as (typeof BACKEND_IDS)[number]),
  adds: (after, before) =>
    Array.isArray(before)
      ? before.every((one, at) => JSON.stringify((after as unknown[])[at]) === JSON.stringify(one))
      : Object.entries(before as object).every(
          ([name, wanted]) => wanted !== 'required' || Reflect.get(after as object, name) === 'required',
        ),
};

describe('a file in the workspace', () => {
  it('widens nothing', () => {
    fc.assert(
      fc.property(operatorLayers, workspaceLayer, (layers, workspace) => {
        const before = effectivePolicy(layers, PLACE).policy;
        const after = effectivePolicy([...layers, workspace], PLACE).policy;
        for (const { key, at, row } of PLACED_KEYS) {
          const [now, then] = [valueAt(after, at), valueAt(before, at)];
          if (row.workspace === undefined) expect([key, now]).toEqual([key, then]);
          else
            expect([key, now, then, IS_NO_WIDER[row.workspace.narrow](now, then)]).toEqual([
              key,
              now,
              then,
              true,
            ]);
        }
        expect(after.filesystem.rules).toEqual(before.filesystem.rules);
        expect(after.sandbox.accepted).toBe(before.sandbox.accepted);
        const weaker = (policy: typeof after) => weakenings(policy).map(({ key }) => key);
        expect(weaker(before)).toEqual(expect.arrayContaining(weaker(after)));
      }),
      RUNS,
    );
  });

  it('is held to it also where it says what its schema would refuse', () => {
    // Every key of an operator's file, as if the schema of a workspace had let it through.
    fc.assert(
      fc.property(operatorLayers, filesOf('operator'), (layers, says) => {
        const before = effectivePolicy(layers, PLACE).policy;
        const after = effectivePolicy([...layers, { name: 'workspace', says }], PLACE).policy;
        for (const { key, at, row } of PLACED_KEYS) {
          const [now, then] = [valueAt(after, at), valueAt(before, at)];
          const isNoWider =
            row.workspace === undefined
              ? JSON.stringify(now) === JSON.stringify(then)
              : IS_NO_WIDER[row.workspace.narrow](now, then);
          expect([key, now, then, isNoWider]).toEqual([key, now, then, true]);
        }
        expect(after.filesystem.workspaceAccess).toBe(before.filesystem.workspaceAccess);
      }),
      RUNS,
    );
  });

  const narrowed = (file: PolicyFile, says: PolicyFile) =>
    effectivePolicy(
      [
        { name: 'user', says: file },
        { name: 'workspace', says },
      ],
      PLACE,
    ).policy;

  it.each([
    [{}, { security: { autonomy: 'readonly' } }, 'security.autonomy', 'readonly'],
    [
      { security: { autonomy: 'readonly' } },
      { security: { autonomy: 'contained' } },
      'security.autonomy',
      'readonly',
    ],
    [{ limits: { timeout_seconds: 0 } }, { limits: { timeout_seconds: 5 } }, 'limits.timeoutMs', 5000],
    [{ limits: { timeout_seconds: 5 } }, { limits: { timeout_seconds: 0 } }, 'limits.timeoutMs', 5000],
    [{ limits: { memory: 5 } }, { limits: { memory: 9 } }, 'limits.memory', 5],
    [{}, { limits: { memory: 9 } }, 'limits.memory', 9],
    [{ commands: { allow: ['a', 'b'] } }, { commands: { allow: ['b', 'c'] } }, 'commands.allow', ['b']],
    [{}, { commands: { allow: ['a'] } }, 'commands.allow', ['a']],
    [{ network: { mode: 'open' } }, { network: { mode: 'off' } }, 'network.mode', 'off'],
    [
      { demand: { network: 'best-effort' } },
      { demand: { network: 'required' } },
      'demand.network',
      'required',
    ],
    [
      { sandbox: { minimum: 'landlock' } },
      { sandbox: { minimum: 'application' } },
      'sandbox.minimum',
      'landlock',
    ],
  ] as const)('narrows: %j with %j', (file, workspace, at, expected) => {
    const policy = narrowed(file as unknown as PolicyFile, workspace as unknown as PolicyFile);
    expect(valueAt(policy, at.split('.'))).toEqual(expected);
  });

  it.each([
    { profile: 'networked' },
    { filesystem: { read: ['/etc'] } },
    { filesystem: { write: ['/etc'] } },
    { filesystem: { home: 'host' } },
    { filesystem: { secret: ['/x'] } },
    { network: { mode: 'open' } },
    { network: { unix_sockets: 'allowed' } },
    { environment: { pass: ['TOKEN'] } },
    { environment: { set: { PATH: '/w/bin' } } },
    { commands: { permit_dangerous: ['sudo'] } },
    { demand: { network: 'best-effort' } },
    { unsafe: { unjudged_commands: true } },
    { security: { workspace_dir: '/' } },
    { security: { autonomy: 'autonomous' } },
    { limits: { umask: '000' } },
    { limits: { output_head_bytes: 1 } },
    { approval: { reviewer_timeout_seconds: 1 } },
    { hooks: { git_guard: false } },
    { audit: {} },
  ])('cannot say %j', (file) => {
    expect(workspaceFileSchema.safeParse(file).success).toBe(false);
  });
});

describe('the effective policy', () => {
  it('has the values of the built-in profile where nothing is said', () => {
    expect(policyOf().limits).toMatchObject({ timeoutMs: 60_000, outputBytes: 1024 ** 2, processes: 4096 });
    expect(policyOf({ profile: 'offline-build' }).limits).toMatchObject({
      timeoutMs: 600_000,
      processes: 4096,
    });
    expect(policyOf().reviewer).toMatchObject({ command: undefined, model: undefined });
    expect(policyOf().demand).toMatchObject({ network: 'required', filesystem: 'required' });
  });

  it.each(PROFILES.map(({ name }) => name))(
    'takes the profile %s of the last layer that names one',
    (name) => {
      expect(policyOf({ profile: 'networked' }, { profile: name }).profile).toBe(name);
    },
  );

  it('refuses an unknown profile and names those that there are', () => {
    expect(() => policyOf({ profile: 'nope' })).toThrow(
      expect.objectContaining({
        code: 'policy.unknown_profile',
        message: expect.stringMatching(/"nope"; known: workspace-write, read-only/),
      }),
    );
  });

  it('grants paths, required, relative to the workspace, ~ as the home, and says who asked', () => {
    const layer = (name: LayerName, says: PolicyFile): PolicyLayer => ({ name, says });
    const { policy } = effectivePolicy(
      [
        layer('user', { filesystem: { read: ['~/.cache', 'sub', '~'], write: ['/abs/../other'] } }),
        layer('caller', { filesystem: { read: ['../up', '~user'], write: ['./x'] } }),
      ],
      PLACE,
    );
    const granted = policy.filesystem.rules.slice(policyOf().filesystem.rules.length);
    expect(granted.map(({ path, access, required, reason }) => [access, path, required, reason])).toEqual([
      ['read', '/home/user/.cache', true, 'filesystem.read in the policy'],
      ['read', '/w/sub', true, 'filesystem.read in the policy'],
      ['read', '/home/user', true, 'filesystem.read in the policy'],
      ['read', '/up', true, 'asked for by the caller'],
      ['read', '/w/~user', true, 'asked for by the caller'],
      ['write', '/other', true, 'filesystem.write in the policy'],
      ['write', '/w/x', true, 'asked for by the caller'],
    ]);
  });

  it('keeps what every profile protects and hides', () => {
    const { filesystem } = policyOf({ filesystem: { protect: ['Makefile'], secret: ['.env', '~/.aws'] } });
    expect(filesystem.protect).toEqual([...policyOf().filesystem.protect, 'Makefile']);
    expect(filesystem.protect).toContain('.git/hooks');
    expect(filesystem.masked).toEqual(policyOf().filesystem.masked);
    expect(filesystem.secret).toEqual(['/w/.env', '/home/user/.aws']);
  });

  it('has milliseconds and bits where files have seconds and octal text', () => {
    const { limits, approval } = policyOf({
      limits: { timeout_seconds: 1.5, kill_grace_seconds: 0, idle_timeout_seconds: 2.5, umask: '027' },
      approval: { timeout_seconds: 0.25 },
    });
    expect(limits).toMatchObject({ timeoutMs: 1500, killGraceMs: 0, idleTimeoutMs: 2500, umask: 0o27 });
    expect(approval.timeoutMs).toBe(250);
    // 0 is none: what is shorter than a millisecond must not become it.
    expect(policyOf({ limits: { timeout_seconds: 0.0001 } }).limits.timeoutMs).toBe(1);
    expect(policyOf({ limits: { timeout_seconds: 0 } }).limits.timeoutMs).toBe(0);
  });

  it('accepts the backend that an operator names, and not what a workspace demands', () => {
    const accepted = (backend: 'auto' | 'firejail' | undefined, ...layers: PolicyLayer[]) =>
      effectivePolicy(layers, { ...PLACE, backend }).policy.sandbox;
    const minimum = (name: LayerName, value: 'firejail' | 'landlock'): PolicyLayer => ({
      name,
      says: { sandbox: { minimum: value } },
    });
    expect(accepted('auto', minimum('user', 'firejail')).accepted).toBe('firejail');
    expect(accepted('firejail').accepted).toBe('firejail');
    expect(accepted(undefined, minimum('workspace', 'firejail')).accepted).toBeUndefined();
    expect(accepted(undefined, minimum('user', 'firejail'), minimum('workspace', 'landlock'))).toMatchObject({
      accepted: 'firejail',
      minimum: 'landlock',
    });
  });

  it.each([
    ['', []],
    ['[unsafe]\nunjudged_commands = true', ['unsafe.unjudged_commands']],
    ['[security]\nautonomy = "autonomous"', ['security.autonomy']],
    ['[security]\nautonomy = "readonly"', []],
    ['[commands]\npermit_dangerous = ["docker"]', ['commands.permit_dangerous']],
    ['[network]\nmode = "open"\nunix_sockets = "allowed"', ['network.mode', 'network.unix_sockets']],
    ['[filesystem]\ntmp = "host"\nhome = "host"', ['filesystem.tmp', 'filesystem.home']],
    ['[demand]\nnetwork = "best-effort"', ['demand']],
    ['[demand]\nsignals = "required"', []],
    ['[sandbox]\nminimum = "application"', ['sandbox.minimum']],
    ['[sandbox]\nminimum = "landlock"', []],
    ['[audit]\non_failure = "warn"', ['audit.on_failure']],
    ['profile = "networked"', ['network.mode']],
  ])('tells what is weaker than the default: %j', async (text, keys) => {
    expect(weakenings(policyOf(await parsePolicy(text, 'p'))).map(({ key }) => key)).toEqual(keys);
  });
});

describe('where a value comes from', () => {
  const layer = async (name: LayerName, text: string): Promise<PolicyLayer> => ({
    ...{ name, path: `/${name}.toml`, text, says: await parsePolicy(text, name) },
  });
  const sources = (layers: readonly PolicyLayer[], key: string) =>
    effectivePolicy(layers, PLACE)
      .entries.filter((entry) => entry.key === key)
      .map((entry) => {
        const { layer: name, path, line } = sourceOf(entry);
        return [JSON.stringify(entry.value), name, path, line].filter((part) => part !== undefined).join(' ');
      });

  it('is the profile where no layer speaks of it', () => {
    expect(sources([], 'security.autonomy')).toEqual(['"contained" profile']);
    expect(sources([], 'demand.network')).toEqual(['"required" profile']);
    expect(sources([], 'environment.pass')[0]).toBe('"PATH" profile');
    expect(sources([], 'limits.memory')).toEqual([]);
  });

  it('is the last file that says it, with the line', async () => {
    const layers = [
      await layer('system', '[security]\nautonomy = "readonly"\nmax_actions_per_hour = 9'),
      await layer('user', '\n[security]\nautonomy = "contained"\n[environment.set]\nA = "1"'),
    ];
    expect(sources(layers, 'security.autonomy')).toEqual(['"contained" user /user.toml 3']);
    expect(sources(layers, 'security.max_actions_per_hour')).toEqual(['9 system /system.toml 3']);
    expect(sources(layers, 'environment.set.A')).toEqual(['"1" user /user.toml 5']);
  });

  // The defect that the table was made for: the second item was told to be the caller's.
  it('is told item by item, for each item of one file', async () => {
    const caller: PolicyLayer = { name: 'caller', says: { environment: { pass: ['FOO'] } } };
    const layers = [
      await layer('system', '[filesystem]\nsecret = [\n"/a",\n"/b"]\nread = ["/r"]'),
      await layer('option', '[filesystem]\nsecret = ["/c"]\nprotect = ["p"]'),
      caller,
      await layer('workspace', '[filesystem]\nprotect = ["q"]'),
    ];
    expect(sources(layers, 'filesystem.secret')).toEqual([
      '"/a" system /system.toml 3',
      '"/b" system /system.toml 4',
      '"/c" option /option.toml 2',
    ]);
    expect(sources(layers, 'filesystem.protect').slice(-2)).toEqual([
      '"p" option /option.toml 3',
      '"q" workspace /workspace.toml 2',
    ]);
    expect(sources(layers, 'environment.pass').at(-1)).toBe('"FOO" caller');
  });

  it('is the workspace only where it takes something away', async () => {
    const user = await layer('user', '[limits]\ntimeout_seconds = 30\n[security]\nautonomy = "readonly"');
    const strict = await layer(
      'workspace',
      '[limits]\ntimeout_seconds = 5\n[security]\nautonomy = "contained"',
    );
    expect(sources([user, strict], 'limits.timeout_seconds')).toEqual(['5 workspace /workspace.toml 2']);
    expect(sources([user, strict], 'security.autonomy')).toEqual(['"readonly" user /user.toml 4']);
  });
});

describe('a mistake in a file', () => {
  it.each([
    [
      '[limits]\ntimeout = 5',
      'p.toml:2: limits.timeout: there is no such key here: did you mean timeout_seconds?',
    ],
    ['[network]\nmod = "off"', 'p.toml:2: network.mod: there is no such key here: did you mean mode?'],
    [
      'autonomy = "readonly"',
      'p.toml:1: autonomy: there is no such key here: did you mean security.autonomy?',
    ],
    ['[zzz]\nqqq = 1', 'p.toml:1: zzz: there is no such key here'],
    [
      'network = "on"',
      expect.stringMatching(/^p\.toml:1: network: .*; for example \[network\] mode = "listed"$/),
    ],
    [
      '[limits]\nmemory = "4G"',
      expect.stringMatching(/^p\.toml:2: limits\.memory: .*; for example memory = 4294967296$/),
    ],
    ['[network]\nmode = "on"', expect.stringMatching(/^p\.toml:2: network\.mode: .*"off"\|"listed"\|"open"/)],
  ])('%j is told with file, line and what would be right', async (text, message) => {
    await expect(parsePolicy(text, 'p.toml')).rejects.toMatchObject({ code: 'policy.invalid', message });
  });
});

describe('a new key', () => {
  /** All that it takes, beside the code that obeys it. */
  const sockets: PolicyKey<z.ZodType, undefined, '', unknown> = {
    schema: (zod) => zod.number().int().positive(),
    text: 'How many sockets a command may have.',
    example: '64',
    default: undefined,
    layers: 'replace',
    workspace: { narrow: 'smaller' },
    weaker: { is: (value) => Number(value) > 1000, meaning: 'commands may have many sockets' },
    option: { name: 'limits.sockets' },
    flag: { name: '--max-sockets <count>', text: 'sockets of a command', kind: 'count' },
  };
  const table = { ...POLICY_KEYS, limits: { ...POLICY_KEYS.limits, max_sockets: sockets } };
  const keys = placedKeys(table);

  it('is read, merged, narrowed, explained, shown, templated, warned of and an option', () => {
    const says = { limits: { max_sockets: 5000 } } as PolicyFile;
    for (const kind of ['operator', 'workspace'] as const) {
      expect(fileSchema(kind, table).safeParse(says).success).toBe(true);
      expect(fileSchema(kind).safeParse(says).success).toBe(false);
    }
    const user: PolicyLayer = { name: 'user', says };
    const { policy, entries } = effectivePolicy([user], PLACE, keys);
    expect(valueAt(policy, ['limits', 'maxSockets'])).toBe(5000);
    expect(entries).toContainEqual(expect.objectContaining({ key: 'limits.max_sockets', layer: user }));
    expect(weakenings(policy, keys)).toEqual([expect.objectContaining({ key: 'limits.max_sockets' })]);
    const workspace: PolicyLayer = { name: 'workspace', says: { limits: { max_sockets: 7 } } as PolicyFile };
    const narrowed = effectivePolicy([user, workspace], PLACE, keys).policy;
    expect(valueAt(narrowed, ['limits', 'maxSockets'])).toBe(7);
    expect(policyTemplate(keys)).toContain('# How many sockets a command may have.\n# max_sockets = 64\n');
    expect(policyOptions(keys).map(({ option }) => option.long)).toContain('--max-sockets');
  });
});
