import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { execa } from 'execa';
import { describe, expect, it } from 'vitest';
import { HOST } from '../support/tiers.ts';
import { AS_STRANGER } from './support/mounts.ts';
import { buildOuterFilter } from './support/outer-filter.ts';
import { DIST, expectHonest, expectRefused, makeWorld, ROOT } from './support/world.ts';

const world = makeWorld();
const filter = buildOuterFilter();
const limited = (text: string) => ['bash', '-c', `${text} && exec "$@"`, 'bash'];

describe('a stack of 32 KiB', () => {
  const SMALL = ['prlimit', '--pid', 'PID', '--stack=32768:32768'];

  it('is enough for us and for a warden; the command has it too', async () => {
    const answer = await world.attack({ before: SMALL });
    expectHonest(answer);
    expect(answer).toMatchObject({ backend: 'landlock', tier: 'signal-scope' });
  });

  it('is enough for a warden that looks for processes', async () => {
    const answer = await world.attack({ before: SMALL, host: filter({ kill: 'ENOSYS' }) });
    expectHonest(answer);
    expect(answer.tier).toBe('subreaper');
  });

  it('is not enough for Node, which does not start: nothing is run', async () => {
    const answer = await world.attack({ host: limited('ulimit -s 32') });
    expect(answer.crashed).toContain('SIGSEGV');
    expect(answer.stdout).toBeUndefined();
  });
});

describe('64 open files', () => {
  it('are enough for a command', async () => {
    expectHonest(await world.attack({ host: limited('ulimit -n 64') }));
  });

  it('are not enough for many at a time: those that are too many wait', async () => {
    const answer = await world.attack({ host: limited('ulimit -n 64'), times: 40 });
    expect(answer.crashed, answer.stderr).toBeUndefined();
    expect(answer.all).toHaveLength(40);
    expect([...new Set(answer.all)]).toEqual([0]);
    expect(answer.left).toBe(false);
  });

  it('or so few that not even one can start are an error that names the limit', async () => {
    // A view takes some more. Set when everything is loaded, as loading alone takes as many.
    const few = HOST.namespaces ? 30 : 24;
    const answer = await world.attack({ before: ['prlimit', '--pid', 'PID', `--nofile=${few}:${few}`] });
    expectRefused(answer);
    expect((answer.refused ?? answer.error)?.message).toContain('ulimit -n');
  });
});

describe.runIf(ROOT)('a user without an entry in the user database (needs to be started as root)', () => {
  it('is as good as any other', async () => {
    expectHonest(await world.attack({ host: [...AS_STRANGER] }));
  });

  it.each([
    ['without HOME', undefined],
    ['with an empty HOME', ''],
    ['with a relative HOME', 'home'],
  ])('%s is told to set it', async (_, HOME) => {
    const answer = await world.attack({ host: [...AS_STRANGER], env: { HOME } });
    expectRefused(answer, ['home.unknown']);
    expect(answer.refused?.message).toContain('set HOME to an absolute path');
  });

  it('is told so by the command line in one line', async () => {
    const [program = '', ...words] = [...AS_STRANGER, process.execPath, join(DIST, 'cli.cjs'), '--', 'true'];
    const { HOME: _, ...env } = world.env;
    const { exitCode, stderr } = await execa(program, words, {
      cwd: world.workspace,
      env,
      extendEnv: false,
      reject: false,
      stripFinalNewline: false,
    });
    expect(exitCode).toBe(125);
    expect(stderr).toMatch(/^sandbox-run: HOME is not set and user 54321 [^\n]+\n$/);
  });

  it('with a home that is not there runs what needs no state', async () => {
    expectHonest(await world.attack({ host: [...AS_STRANGER], env: { HOME: '/nonexistent' } }));
  });
});

it('a relative HOME is not looked for in the working directory', async () => {
  mkdirSync(join(world.workspace, 'rel/.config/sandbox-run'), { recursive: true });
  const answer = await world.attack({ env: { HOME: 'rel' } });
  // As an ordinary user without an entry it is refused, otherwise the database's home is taken.
  if (answer.refused !== undefined) expect(answer.refused.code).toBe('home.unknown');
  else expectHonest(answer);
});

it('a limit of few processes of the user is no crash', async () => {
  const answer = await world.attack({ host: limited('ulimit -u 20') });
  if (answer.crashed === undefined && answer.refused === undefined && answer.error === undefined)
    expectHonest(answer);
  else expect(answer.stdout ?? '').not.toContain('READ');
});
