import { execFileSync } from 'node:child_process';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { inFlags } from '../../../src/cli/shared/print.ts';
import { ROOT } from '../../library/support.ts';

describe('messages that name options of the library', () => {
  it('say on the command line what they are called there', () => {
    expect(inFlags('allow it with the option readable or the option writable')).toBe(
      'allow it with --ro or --rw',
    );
    expect(inFlags('the option limits.memory or limits.memory in the policy allows more')).toBe(
      '--memory or limits.memory in the policy allows more',
    );
    expect(inFlags('the option approved runs it; the option ask: "queue" waits')).toBe(
      '--approved runs it; --ask queue waits',
    );
    expect(inFlags('the option of git and the option constructor')).toBe(
      'the option of git and the option constructor',
    );
  });

  it('are all that the library says of options: none is named as on the command line', () => {
    const rooms = ['run', 'workspace', 'confine', 'judge', 'gate/decide'].map((name) => `src/${name}`);
    const flags =
      /--(?:ro|rw|approved|ask|autonomy|workspace|backend|memory|cpu-time|max-[a-z]+|idle-timeout|timeout|profile)\b/;
    const grep = ['-rnE', '--', flags.source.replaceAll('(?:', '('), ...rooms];
    const found = execFileSync('grep', grep, { cwd: join(ROOT), encoding: 'utf8' }).split('\n');
    // Options of other programs that we start or know.
    const ours = found.filter(
      (line) => line !== '' && !/firejail|--profile=\/proc|--no-commit-header|\/\/ |\* /.test(line),
    );
    expect(ours).toEqual([]);
  });
});
