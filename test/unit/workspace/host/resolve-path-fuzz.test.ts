import { execFileSync, spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, realpathSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import fc from 'fast-check';
import { afterAll, describe, expect, it } from 'vitest';
import { isBeneath } from '../../../../src/base/absolute-path.ts';
import { pathsCheck } from '../../../../src/judge/index.ts';
import type { Reason } from '../../../../src/model/index.ts';
import { createPathLookup } from '../../../../src/workspace/host/resolve-path.ts';
import { contextOf } from '../../../support/check-context.ts';

/** `npm run fuzz:paths` makes it longer. */
const SECONDS = Number(process.env.PATHS_FUZZ_SECONDS ?? '5');

const top = realpathSync(mkdtempSync(join(tmpdir(), 'path-fuzz-')));
afterAll(() => rmSync(top, { recursive: true, force: true }));

/**
 * For its argument, or for each path of its input: how openat2 with RESOLVE_BENEATH ends (an errno, or 0), how open ends, and what was
 * opened then. What is not there is made, to see where that is, and removed.
 */
const ASKER = `
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

struct { unsigned long long flags, mode, resolve; } beneath = {O_PATH, 0, 0x08};

static const char *place_of(int descriptor, char *room) {
  char link[64];
  snprintf(link, sizeof link, "/proc/self/fd/%d", descriptor);
  ssize_t length = readlink(link, room, PATH_MAX - 1);
  room[length < 0 ? 0 : length] = 0;
  return room;
}

static void ask(const char *path) {
  char room[PATH_MAX];
  int held;
  // EAGAIN: somebody on this machine renamed or mounted something meanwhile (openat2(2)).
  do held = syscall(437, AT_FDCWD, path, &beneath, sizeof beneath); while (held < 0 && errno == EAGAIN);
  int first = held < 0 ? errno : 0;
  if (held >= 0) close(held);
  int plain = open(path, O_PATH);
  int second = plain < 0 ? errno : 0;
  const char *place = plain < 0 ? "" : place_of(plain, room);
  if (second == ENOENT) {
    int made = open(path, O_CREAT | O_WRONLY, 0600);
    if (made >= 0) {
      place = place_of(made, room);
      unlink(place);
      close(made);
    }
  }
  if (plain >= 0) close(plain);
  printf("%d%c%d%c%s%c", first, 0, second, 0, place, 0);
}

int main(int argc, char **argv) {
  if (argc > 1) return ask(argv[1]), 0;
  char *path = NULL;
  size_t size = 0;
  while (getdelim(&path, &size, 0, stdin) > 0) ask(path);
  return 0;
}
`;

const asker = join(top, 'asker');
execFileSync('gcc', ['-w', '-O1', '-x', 'c', '-', '-o', asker], { input: ASKER });

/** What the kernel says of a path. */
interface Answer {
  /** Errno of openat2 with RESOLVE_BENEATH; 0: it was opened. */
  readonly beneath: number;
  /** Errno of open; 0: it was opened. */
  readonly plain: number;
  /** What was opened, or where the file was made that was not there; empty: neither. */
  readonly place: string;
}

const EXDEV = 18;

function answersIn(output: string): readonly Answer[] {
  const fields = output.split('\0').slice(0, -1);
  return Array.from({ length: fields.length / 3 }, (_, at) => ({
    beneath: Number(fields[3 * at]),
    plain: Number(fields[3 * at + 1]),
    place: fields[3 * at + 2] ?? '',
  }));
}

type Entry =
  | { readonly at: string; readonly is: 'directory' | 'file' }
  | { readonly at: string; readonly leads: string };

/** Directories beside each other: the workspace, one whose name begins the same, and another one. */
const SIDES = ['w', 'wx', 'o'];
const name = fc.constantFrom('a', 'b', 'c', '...', 'a b', '-d');
const step = fc.oneof(
  { weight: 5, arbitrary: name },
  { weight: 3, arbitrary: fc.constant('..') },
  { weight: 1, arbitrary: fc.constantFrom('.', '', ...SIDES) },
);
const relative = fc
  .tuple(fc.array(step, { minLength: 1, maxLength: 6 }), fc.constantFrom('', '', '', '/', '/.'))
  .map(([steps, end]) => steps.join('/').replace(/^\/+/, '') + end)
  .filter((path) => path !== '');
const anyPath = fc.oneof(
  { weight: 4, arbitrary: relative },
  {
    weight: 1,
    arbitrary: fc
      .tuple(fc.constantFrom(...SIDES, '', '..'), relative)
      .map(([side, path]) => `TOP/${side}/${path}`),
  },
);
const place = fc
  .tuple(fc.constantFrom('w', 'w', 'w', ...SIDES), fc.array(name, { minLength: 1, maxLength: 3 }))
  .map(([side, names]) => [side, ...names].join('/'));
const entry: fc.Arbitrary<Entry> = fc.oneof(
  fc.record({ at: place, is: fc.constantFrom('directory' as const, 'file' as const) }),
  fc.record({ at: place, leads: anyPath }),
  fc.record({ at: place, leads: anyPath }),
);
const tree = fc.array(entry, { minLength: 4, maxLength: 20 });

let made = 0;

/** Whether what is made at a path stays in a directory, whatever links made before it lead to. */
function staysIn(root: string, path: string): boolean {
  const parent = dirname(path);
  try {
    return isBeneath(realpathSync(parent), root);
  } catch {
    return staysIn(root, parent);
  }
}

/** Makes a tree; returns the directory in which it stands. What cannot be made, as something else stands there, is left out. */
function plant(entries: readonly Entry[]): string {
  const root = join(top, String(made++));
  for (const side of SIDES) mkdirSync(join(root, side), { recursive: true });
  for (const one of entries) {
    if (!staysIn(root, join(root, one.at))) continue;
    try {
      mkdirSync(dirname(join(root, one.at)), { recursive: true });
      if ('leads' in one) symlinkSync(one.leads.replace('TOP', root), join(root, one.at));
      else if (one.is === 'directory') mkdirSync(join(root, one.at));
      else writeFileSync(join(root, one.at), '', { flag: 'wx' });
    } catch (error) {
      if (!/^(?:EEXIST|EISDIR|ENOTDIR|ENOENT|ELOOP)$/.test((error as NodeJS.ErrnoException).code ?? ''))
        throw error;
    }
  }
  return root;
}

const quoted = (path: string) => `'${path.replaceAll("'", "'\\''")}'`;

/** Whether the check of paths lets `cat` read what a line names, where nothing but the workspace may be read. */
function isLetIn(line: string, workspace: string): boolean {
  const context = contextOf(line, {
    cwd: workspace,
    paths: createPathLookup(),
    rules: {
      workspace,
      writable: [],
      readable: [],
      protected: [],
      allow: ['cat', 'cd'],
      home: '/nowhere',
      userHome: '/nowhere',
    },
  });
  const reasons = pathsCheck.judge(context) as readonly Reason[];
  return reasons.every(({ verdict }) => verdict === undefined || verdict === 'allow');
}

/**
 * A failure says the seed and the path with which fast-check tries it again. The time counts once each kind was there often enough: on a
 * busy machine the first trees alone have taken all of it.
 */
function forSomeTime<Values>(property: fc.IProperty<Values>, counts: () => readonly number[]): void {
  const [until, atLatest] = [Date.now() + (SECONDS * 1000) / 2, Date.now() + (SECONDS + 60) * 1000];
  const isEnough = () => counts().every((count) => count > 3);
  while (Date.now() < until || (!isEnough() && Date.now() < atLatest)) fc.assert(property, { numRuns: 10 });
  // Else the test has shown little.
  expect(counts().map((count) => count > 3)).not.toContain(false);
}

describe('where a path leads, in a tree of random links', () => {
  const counted = { beneath: 0, cameBack: 0, outside: 0, made: 0, nowhere: 0 };

  it(
    'is inside if openat2 with RESOLVE_BENEATH says so, and otherwise only where the kernel comes back into the workspace',
    () => {
      const property = fc.property(
        tree,
        fc.array(anyPath, { minLength: 30, maxLength: 30 }),
        (entries, paths) => {
          const root = plant(entries);
          const workspace = join(root, 'w');
          const asked = paths.map((path) => path.replace('TOP', root));
          const output = execFileSync(asker, {
            cwd: workspace,
            input: asked.map((path) => `${path}\0`).join(''),
          });
          for (const [at, answer] of answersIn(output.toString()).entries()) {
            const path = asked[at] ?? '';
            const told = JSON.stringify({ path, answer });
            const { canonical, kind } = createPathLookup().resolve(
              path.startsWith('/') ? path : `${workspace}/${path}`,
            );
            const isInside = isBeneath(canonical, workspace);
            expect(isLetIn(`cat -- ${quoted(path)}`, workspace), told).toBe(isInside);
            if (answer.beneath === 0) {
              counted.beneath++;
              expect({ isInside, canonical, missing: kind === 'missing' }, told).toEqual({
                isInside: true,
                canonical: answer.place,
                missing: false,
              });
            } else if (answer.place !== '') {
              // It left the workspace on its way, or is not there: what counts is where it ends.
              expect(canonical, told).toBe(answer.place);
              expect(kind === 'missing', told).toBe(answer.plain !== 0);
              if (answer.plain !== 0) counted.made++;
              else if (isInside) {
                expect(answer.beneath, told).toBe(EXDEV);
                counted.cameBack++;
              } else {
                expect(answer.beneath, told).toBe(EXDEV);
                counted.outside++;
              }
            } else counted.nowhere++;
          }
          rmSync(root, { recursive: true, force: true });
        },
      );
      forSomeTime(property, () => Object.values(counted));
      if (process.env.PATHS_FUZZ_SECONDS !== undefined) process.stderr.write(`${JSON.stringify(counted)}\n`);
    },
    (SECONDS + 120) * 1000,
  );

  it(
    'behind cd is where bash and the kernel find it',
    () => {
      let [inside, outside] = [0, 0];
      const property = fc.property(
        tree,
        fc.array(fc.tuple(anyPath, anyPath), { minLength: 10, maxLength: 10 }),
        (entries, pairs) => {
          const root = plant(entries);
          const workspace = join(root, 'w');
          const asked = pairs.flatMap((pair) => pair.map((path) => path.replace('TOP', root)));
          const script =
            'while [ $# -gt 0 ]; do (cd -- "$1" 2>&- && "$ASKER" "$2" || printf "0\\0-1\\0\\0"); shift 2; done';
          const { stdout } = spawnSync('bash', ['--norc', '-c', script, 'bash', ...asked], {
            cwd: workspace,
            env: { PATH: '/usr/bin:/bin', ASKER: asker },
          });
          for (const [at, { plain, place }] of answersIn(stdout.toString()).entries()) {
            if (plain !== 0) continue;
            const line = `cd -- ${quoted(asked[2 * at] ?? '')} && cat -- ${quoted(asked[2 * at + 1] ?? '')}`;
            const isInside = isBeneath(place, workspace);
            if (isInside) inside++;
            else outside++;
            // The directory is judged as well: a line that goes out and comes back is refused.
            if (!isInside) expect(isLetIn(line, workspace), `${line}: ${place}`).toBe(false);
          }
          rmSync(root, { recursive: true, force: true });
        },
      );
      forSomeTime(property, () => [inside, outside]);
    },
    (SECONDS + 120) * 1000,
  );
});
