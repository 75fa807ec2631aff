import { constants } from 'node:os';
import { describe, expect, it } from 'vitest';
import { processListFacility } from '../../../../src/confine/probe.ts';

const line = (place: string, filesystem: string, options: string) =>
  `24 30 0:22 / ${place} rw,nosuid shared:12 - ${filesystem} none ${options}\n`;
const PLAIN = line('/proc', 'proc', 'rw');

describe('processListFacility', () => {
  it('is there where /proc shows everybody', () => {
    expect(processListFacility(0, false, () => PLAIN)).toEqual({ available: true });
  });

  it.each(['hidepid=1', 'hidepid=invisible', 'gid=5,hidepid=ptraceable'])(
    'is not there with %s',
    (option) => {
      const mounts = PLAIN + line('/proc', 'proc', `rw,${option}`);
      const found = processListFacility(0, false, () => mounts);
      expect(found).toMatchObject({ available: false, reason: expect.stringContaining('hidepid=') });
      // Nothing hides from who may trace everybody.
      expect(processListFacility(0, true, () => mounts)).toEqual({ available: true });
    },
  );

  it('is there if the mount that hides is not the one that is seen, or hides nothing', () => {
    for (const mounts of [
      line('/proc', 'proc', 'rw,hidepid=2') + PLAIN,
      line('/other/proc', 'proc', 'rw,hidepid=2') + PLAIN,
      line('/proc', 'proc', 'rw,hidepid=off'),
      line('/proc', 'proc', 'rw,hidepid=0'),
    ]) {
      expect(processListFacility(0, false, () => mounts)).toEqual({ available: true });
    }
  });

  it.each([
    ['ENOENT', /cannot be read \(ENOENT\)/],
    ['ESRCH', /another process namespace/],
  ] as const)('says why not: %s', (errno, why) => {
    const found = processListFacility(constants.errno[errno], true, () => PLAIN);
    expect(found).toMatchObject({ available: false, reason: expect.stringMatching(why) });
  });
});
