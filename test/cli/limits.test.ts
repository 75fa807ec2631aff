import { afterAll, describe, expect, it } from 'vitest';
import { cli, makePlace } from './support.ts';

const place = makePlace();
afterAll(() => place.dispose());

describe('limits on the command line', () => {
  it.each([
    [['--max-processes', '20'], 'for i in {1..40}; do sleep 30 & done; wait', /20 processes and threads/],
    [['--memory', '100M'], 'x=$(head -c 400000000 /dev/zero | tr "\\0" x); sleep 30', /100 MiB of memory/],
    [['--cpu-time', '1'], 'while :; do :; done', /1 s of processor time/],
    [['--max-tmp', '1M'], 'head -c 3000000 /dev/zero > $TMPDIR/x; sleep 30', /1 MiB of private temp/],
    [['--idle-timeout', '0.4'], 'sleep 30', /0\.4 s without output/],
  ])('%j ends what exceeds it with 123 and says so', async (options, command, said) => {
    const result = await cli(place, ['--approved', ...options, '-c', command]);
    expect(result.stderr).toMatch(said);
    expect(result.stderr.trim().split('\n')).toHaveLength(1);
    expect(result.exitCode).toBe(123);
  });

  it('passes the output on while it listens for silence', async () => {
    const result = await cli(place, [
      ...['--approved', '--idle-timeout', '60', '-c'],
      'echo out; echo err >&2; head -c 300000 /dev/zero | tr "\\0" x; exit 7',
    ]);
    expect([result.exitCode, result.stdout.length, result.stdout.slice(0, 5)]).toEqual([
      7,
      300_004,
      'out\nx',
    ]);
    expect(result.stderr).toContain('err\n');
  });

  it('says in JSON which limit it was', async () => {
    const result = await cli(place, ['--json', '--approved', '--idle-timeout', '0.3', '-c', 'sleep 30']);
    expect(JSON.parse(result.stdout)).toMatchObject({
      status: 'limit-exceeded',
      limit: { name: 'idle', value: 0.3, by: 'clock' },
      error: { code: 'limit.exceeded' },
    });
  });

  it.each([
    ['--memory', '1.5G'],
    ['--memory', '0'],
    ['--memory', '-1'],
    ['--max-tmp', '5X'],
    ['--max-processes', '0'],
    ['--cpu-time', '1e3'],
    ['--idle-timeout', 'soon'],
  ])('refuses %s %s in one line', async (option, value) => {
    const result = await cli(place, [option, value, '--', 'true']);
    expect([result.exitCode, result.stdout]).toEqual([125, '']);
    expect(result.stderr.trim().split('\n')).toHaveLength(1);
    expect(result.stderr).toContain(option);
  });
});
