import { describe, expect, it } from 'vitest';
import type { PlannedPath, PlannedViewStep } from '../../../../src/confine/plan/launch-plan.ts';
import { type ViewParts, viewHome, viewSteps } from '../../../../src/confine/plan/view.ts';
import { fakeLookup } from './fixtures.ts';

const path = (name: string, access: PlannedPath['access'], required = false): PlannedPath => ({
  path: name,
  access,
  required,
  reason: 'a test',
});

function stepsOf(parts: Partial<ViewParts> = {}): readonly PlannedViewStep[] {
  return viewSteps({
    paths: [],
    links: [],
    between: [],
    protectedPaths: [],
    hiddenPaths: [],
    emptied: [],
    refused: [],
    copies: [],
    copiedDirectories: [],
    watchedLinks: [],
    grant: { tmp: 'host', masked: [] },
    home: undefined,
    sharedMemory: false,
    cache: { kind: 'private', reason: 'a test' },
    ...parts,
  });
}
const targets = (steps: readonly PlannedViewStep[]) => steps.map((step) => step.target);
/** Without what is in every view. */
const granted = (parts: Partial<ViewParts>) => {
  const always = new Set(targets(stepsOf()));
  return stepsOf(parts).filter((step) => !always.has(step.target));
};
const bindAt = (steps: readonly PlannedViewStep[], target: string) =>
  steps.find((step) => step.kind === 'bind' && step.target === target);

describe('the view', () => {
  it('always has terminals and the names of the standard streams', () => {
    expect(
      stepsOf().map((step) => (step.kind === 'symlink' ? `${step.target} → ${step.content}` : step.target)),
    ).toMatchInlineSnapshot(`
        [
          "/dev/pts",
          "/dev/ptmx → pts/ptmx",
          "/dev/fd → /proc/self/fd",
          "/dev/stdin → /proc/self/fd/0",
          "/dev/stdout → /proc/self/fd/1",
          "/dev/stderr → /proc/self/fd/2",
        ]
      `);
  });

  it('lays what installers of hooks write over what is protected, and hides what is hidden above it', () => {
    const steps = granted({
      protectedPaths: ['/work/.git/hooks', '/work/.husky'],
      copiedDirectories: [
        { path: '/work/.git/hooks', kept: '/state/hooks/1' },
        { path: '/work/.husky/_', kept: undefined },
      ],
      emptied: ['/work/.husky/secret'],
    });
    const at = (target: string, kind: string) =>
      steps.findIndex((step) => step.target === target && step.kind === kind);
    const layers = steps.flatMap((step) => (step.kind === 'layer' ? step.layer : []));
    expect(layers.map((layer) => layer.lower)).toEqual([['/state/hooks/1'], []]);
    expect(layers.every((layer) => layer.upper.startsWith('slot:'))).toBe(true);
    expect(at('/work/.git/hooks', 'layer')).toBeGreaterThan(at('/work/.git/hooks', 'bind'));
    expect(at('/work/.husky/_', 'layer')).toBeGreaterThan(at('/work/.husky', 'bind'));
    expect(at('/work/.husky/secret', 'emptied')).toBeGreaterThan(at('/work/.husky/_', 'layer'));
  });

  it('puts private directories at their usual places, writable and required', () => {
    const home = { named: '/home/me', places: ['/home/me'], links: [] };
    const steps = granted({ grant: { tmp: 'auto', masked: [] }, home, sharedMemory: true });
    expect(steps).toMatchObject(
      [
        ['slot:tmp', '/tmp'],
        ['slot:home', '/home/me'],
        ['shm:', '/dev/shm'],
      ].map(([source, target]) => ({
        kind: 'bind',
        source,
        target,
        writable: true,
        device: false,
        required: true,
      })),
    );
  });

  it('puts a private home where the user’s is, unless the policy shows what is there or around it', () => {
    const home = (granted: string) =>
      viewHome({
        homes: ['/home/me'],
        paths: [path(granted, 'read')],
        links: [],
        contents: ['.cache'],
        lookup: fakeLookup({}),
      }).places;
    expect(['/home', '/home/me', '/home/me/project', '/homes'].map(home)).toEqual(
      ['/.sandbox-home', '/home/sandbox', '/home/me', '/home/me'].map((at) => [at]),
    );
  });

  it('shows a private home also where the user database has the home, if that is there and is one', () => {
    const places = (databaseHome: string, kind?: 'missing') =>
      viewHome({
        homes: ['/home/me', databaseHome],
        paths: [path('/usr', 'read'), path('/srv/data/project', 'write')],
        links: [],
        contents: [],
        lookup: fakeLookup(kind === undefined ? {} : { [databaseHome]: kind }),
      }).places;
    expect(places('/home/me')).toEqual(['/home/me']);
    expect(places('/var/lib/me')).toEqual(['/home/me', '/var/lib/me']);
    expect(places('/us')).toEqual(['/home/me', '/us']);
    expect(places('/srv/data')).toEqual(['/home/me']);
    expect(places('/nonexistent', 'missing')).toEqual(['/home/me']);
    for (const home of ['/', '/usr/sbin', '/etc', '/tmp']) expect(places(home)).toEqual(['/home/me']);
  });

  it('mounts the outer before the inner, so that nothing is hidden', () => {
    const steps = stepsOf({
      paths: [path('/w/a/b', 'read'), path('/w', 'write'), path('/w/a/b/c/d', 'write'), path('/usr', 'read')],
      protectedPaths: ['/w/.git/hooks'],
      links: [{ path: '/w/link', content: '/else' }],
      grant: { tmp: 'auto', masked: ['/etc/shadow'] },
    });
    for (const [at, target] of targets(steps).entries()) {
      const later = targets(steps).slice(at + 1);
      expect(later.filter((other) => target.startsWith(`${other}/`))).toEqual([]);
    }
  });

  it('keeps the order of what lies side by side', () => {
    const paths = ['/c', '/a', '/b'].map((name) => path(name, 'read'));
    expect(targets(granted({ paths }))).toEqual(['/c', '/a', '/b']);
  });

  it.each([
    ['data', '/d', { writable: false, device: false }],
    ['read', '/d', { writable: false, device: false }],
    ['write', '/d', { writable: true, device: false }],
    ['device', '/n', { writable: true, device: true }],
    ['data', '/dev/urandom', { writable: false, device: true }],
    ['read', '/development', { writable: false, device: false }],
  ] as const)('mounts %s %s as %o', (access, name, flags) => {
    expect(bindAt(stepsOf({ paths: [path(name, access, true)] }), name)).toMatchObject({
      source: name,
      required: true,
      ...flags,
    });
  });

  it.each([
    ['read', 'read', false],
    ['read', 'data', false],
    ['write', 'write', false],
    ['write', 'read', true],
    ['read', 'write', true],
    ['write', 'data', true],
    ['read', 'device', true],
    ['write', 'device', true],
  ] as const)('inside %s, %s needs a mount of its own: %s', (outer, inner, needed) => {
    const paths = [path('/o', outer), path('/o/i/n', inner)];
    expect(bindAt(stepsOf({ paths }), '/o/i/n') !== undefined).toBe(needed);
  });

  it('judges a grant by the nearest one around it', () => {
    const paths = [
      path('/o', 'write'),
      path('/o/r', 'read'),
      path('/o/r/x', 'read'),
      path('/o/r/w', 'write'),
    ];
    expect(targets(granted({ paths }))).toEqual(['/o', '/o/r', '/o/r/w']);
  });

  it('recreates links, so that the names of granted paths go on working', () => {
    const links = [{ path: '/bin', content: 'usr/bin' }];
    expect(granted({ links })).toEqual([{ kind: 'symlink', content: 'usr/bin', target: '/bin' }]);
  });

  it('masks what is not granted, and leaves alone what is', () => {
    const grant = { tmp: 'host', masked: ['/etc/shadow', '/etc/sudoers'] } as const;
    expect(granted({ grant, paths: [path('/etc/sudoers', 'data')] })).toEqual([
      expect.objectContaining({ kind: 'bind', target: '/etc/sudoers' }),
      { kind: 'masked-file', target: '/etc/shadow' },
    ]);
  });

  it('shuts protected paths where they exist and pins the directories on the way to them', () => {
    const steps = granted({
      paths: [path('/w', 'write', true)],
      protectedPaths: ['/w/.git/hooks', '/w/.git/config', '/w/a/b/c', '/w/top'],
    });
    const shown = steps.map(
      (step) => `${step.target} ${step.kind === 'bind' && step.writable ? 'writable' : 'read-only'}`,
    );
    expect(shown).toEqual([
      '/w writable',
      '/w/.git writable',
      '/w/a writable',
      '/w/top read-only',
      '/w/a/b writable',
      '/w/.git/hooks read-only',
      '/w/.git/config read-only',
      '/w/a/b/c read-only',
    ]);
    expect(steps.slice(1).every((step) => step.kind === 'bind' && !step.required)).toBe(true);
  });

  it('does not make a read-only grant writable by pinning a directory in it', () => {
    const steps = stepsOf({
      paths: [path('/w', 'write'), path('/w/.git', 'read')],
      protectedPaths: ['/w/.git/hooks', '/w/.git/inner/deep'],
    });
    for (const target of ['/w/.git', '/w/.git/inner']) {
      const last = steps.findLast((step) => step.kind === 'bind' && step.target === target);
      expect(last, target).toMatchObject({ writable: false });
    }
  });

  it('empties what is hidden, holds in place what leads there, and mounts nothing in it', () => {
    const steps = granted({
      paths: [path('/w', 'write', true), path('/data', 'read')],
      protectedPaths: ['/w/.git/hooks', '/w/a/secrets/.git/config', '/w/a/secrets'],
      emptied: ['/w/a/secrets', '/w/a/.env', '/data/deep/key'],
    });
    expect(steps.map(({ kind, target }) => `${kind} ${target}`)).toEqual([
      'bind /w',
      'bind /data',
      'bind /w/.git',
      'bind /w/a',
      'bind /w/.git/hooks',
      'emptied /w/a/secrets',
      'emptied /w/a/.env',
      'emptied /data/deep/key',
    ]);
  });
});
