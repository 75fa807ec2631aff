import { mkdirSync, mkdtempSync, realpathSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { join, normalize } from 'node:path';
import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { isBeneath } from '../../../src/base/absolute-path.ts';
import { orElse } from '../../../src/base/or-else.ts';
import { BRIEF, propose, whyNotProposed, withoutDetours } from '../../../src/run/proposals.ts';
import { INNOCENT_FILES, SECRET_FILES } from '../../support/secret-corpus.ts';

describe('what is proposed to be granted', () => {
  let home: string;
  let innocent: string;
  const places = () => ({ home, workspace: join(home, 'w'), secret: [], env: {} });

  beforeAll(() => {
    home = realpathSync(mkdtempSync('/var/tmp/sandbox-run-proposals-'));
    innocent = realpathSync(mkdtempSync('/var/tmp/sandbox-run-innocent-'));
    for (const [root, files] of [
      [home, SECRET_FILES],
      [innocent, INNOCENT_FILES],
    ] as const)
      for (const [path, content] of Object.entries(files)) {
        mkdirSync(join(root, path, '..'), { recursive: true });
        writeFileSync(join(root, path), content);
      }
    mkdirSync(join(home, 'w'));
  });
  afterAll(() => {
    for (const root of [home, innocent]) rmSync(root, { recursive: true, force: true });
  });

  it('has a corpus of real names', () => {
    expect([Object.keys(SECRET_FILES).length > 150, Object.keys(INNOCENT_FILES).length >= 50]).toEqual([
      true,
      true,
    ]);
  });

  it('is no file of credentials, and no directory around one', () => {
    const proposed = (path: string, list: string) => whyNotProposed(path, places(), list) === undefined;
    const files = Object.keys(SECRET_FILES).map((name) => join(home, name));
    expect(
      files.filter((path) => proposed(path, 'filesystem.read') || proposed(path, 'filesystem.write')),
    ).toEqual([]);
    const around = [...new Set(files.flatMap((path) => [join(path, '..'), join(path, '../..')]))];
    expect(around.filter((path) => proposed(path, 'filesystem.read'))).toEqual([]);
    expect(whyNotProposed(join(home, 'proj'), places(), 'filesystem.read')).toMatch(/a secret lies in it, /);
  });

  it('is no file of credentials in another home, or by a link', () => {
    const link = join(home, 'w/link');
    symlinkSync(join(home, '.aws/credentials'), link);
    for (const path of [link, '/home/somebody/.config/gh/hosts.yml', '/root/.psql_history', '/etc/shadow'])
      expect([path, whyNotProposed(path, places(), 'filesystem.read')]).toEqual([path, expect.any(String)]);
  });

  it('is what work needs', () => {
    const here = { home: innocent, workspace: join(innocent, 'w'), secret: [], env: {} };
    const left = Object.keys(INNOCENT_FILES).flatMap((name) => {
      const why = whyNotProposed(join(innocent, name), here, 'filesystem.read');
      return why === undefined ? [] : [`${name}: ${why}`];
    });
    expect(left).toEqual([]);
    for (const name of ['proj', 'shared', 'toolchain', 'models'])
      expect([name, whyNotProposed(join(innocent, name), here, 'filesystem.read')]).toEqual([
        name,
        undefined,
      ]);
  });

  it.each(['', '.config', '.local/share', '.local/state', '.cache', '..', '.config/sandbox-run/..'])(
    'is no home and nothing that every program keeps its things in: ~/%s',
    (name) => {
      const here = { home: innocent, workspace: join(innocent, 'w'), secret: [], env: {} };
      for (const list of ['filesystem.read', 'filesystem.write'])
        expect(whyNotProposed(join(innocent, name), here, list)).toEqual(expect.any(String));
    },
  );

  it('is the narrowest that is there, and nothing where that is too much', () => {
    const here = { home: innocent, workspace: join(innocent, 'w'), secret: [], env: {} };
    const of = (list: string, named: string, object: string) =>
      propose({ list, named: join(innocent, named), object: join(innocent, object) }, here, BRIEF);
    expect(of('filesystem.read', 'shared/proto', 'shared/proto')).toEqual({
      value: join(innocent, 'shared/proto'),
    });
    expect(of('filesystem.write', 'shared/new/deep', 'shared/new/deep/file')).toEqual({
      value: join(innocent, 'shared'),
    });
    expect(of('filesystem.write', '.', 'beside.txt')).toEqual({
      why: 'all of ~ would be open, and the workspace lies in it',
    });
    expect(of('filesystem.write', '.', 'proj/go.mod')).toEqual({ value: join(innocent, 'proj/go.mod') });
  });

  it('is named without detours, and so that it is the place that the kernel finds', () => {
    const root = realpathSync(mkdtempSync('/var/tmp/sandbox-run-detours-'));
    for (const path of ['a/b/c', 'd/e', 'a/f']) mkdirSync(join(root, path), { recursive: true });
    for (const [path, to] of [
      ['a/up', '..'],
      ['d/l', '../a/b'],
      ['a/b/abs', join(root, 'd/e')],
      ['d/e/two', '../l/abs'],
    ] as const)
      symlinkSync(to, join(root, path));
    const part = fc.constantFrom('a', 'b', 'c', 'd', 'e', 'f', 'up', 'l', 'abs', 'two', '..', '..', '.', '');
    let compared = 0;
    fc.assert(
      fc.property(fc.array(part, { maxLength: 12 }), (parts) => {
        const named = [root, ...parts].join('/');
        const real = (path: string) => orElse(() => realpathSync.native(path), undefined);
        const object = real(named);
        if (object === undefined || !isBeneath(object, root)) return;
        compared += 1;
        const plain = withoutDetours(named, object, join(root, 'elsewhere'));
        expect([plain, real(plain)]).toEqual([normalize(plain).replace(/(?<=.)\/$/, ''), object]);
        // Nothing by a link that commands can change.
        expect(withoutDetours(named, object, join(root, 'd'))).toSatisfy(
          (path: string) => isBeneath(object, join(root, 'd')) || !isBeneath(path, join(root, 'd')),
        );
      }),
      { numRuns: 3_000 },
    );
    rmSync(root, { recursive: true });
    expect(compared).toBeGreaterThan(300);
    // What is a link of each process.
    expect(withoutDetours('/proc/self/cwd/../x', '/srv/x', '/w')).toBe('/srv/x');
  });

  it('is no directory in which a name is that is not UTF-8: what is there cannot be looked at', () => {
    const odd = join(innocent, 'odd');
    mkdirSync(odd);
    writeFileSync(Buffer.concat([Buffer.from(`${odd}/`), Buffer.from([0xff])]), 'word\n');
    const here = { home: innocent, workspace: join(innocent, 'w'), secret: [], env: {} };
    expect(whyNotProposed(odd, here, 'filesystem.read')).toMatch(/not UTF-8/);
  });

  it('is nothing that is too large to be looked through', () => {
    const big = join(innocent, 'big');
    mkdirSync(big);
    for (let at = 0; at <= BRIEF.entries; at += 1) writeFileSync(join(big, `${at}.c`), '');
    const here = { home: innocent, workspace: join(innocent, 'w'), secret: [], env: {} };
    expect(whyNotProposed(big, here, 'filesystem.read', BRIEF)).toMatch(/too large/);
    expect(whyNotProposed(big, here, 'filesystem.read')).toBeUndefined();
  });
});
