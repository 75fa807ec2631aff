import { describe, expect, it } from 'vitest';
import { SECCOMP_ARCHITECTURES } from '../../../../../src/confine/kernel/seccomp/architecture.ts';
import { assembleFilter } from '../../../../../src/confine/kernel/seccomp/assemble.ts';
import {
  buildFilter,
  SHELL_GROUPS,
  seccompGroupsFor,
  USUAL_NEEDS,
} from '../../../../../src/confine/kernel/seccomp/filter.ts';
import {
  generatedProgram,
  SECCOMP_PROGRAMS,
  seccompProgram,
} from '../../../../../src/confine/kernel/seccomp/program.ts';

describe.each(SECCOMP_ARCHITECTURES)('generated programs for %s', (architecture) => {
  it.each(USUAL_NEEDS)('are what the assembler makes now: %o', (needs) => {
    const groups = seccompGroupsFor(needs);
    const now = assembleFilter(buildFilter(groups), architecture);
    const generated = generatedProgram(groups, architecture);
    expect(generated?.length, 'run node scripts/generate-seccomp-programs.mjs').toBe(now.length);
    expect(Buffer.from(generated?.bytes ?? []).equals(now.bytes)).toBe(true);
  });

  it('are found whatever the order and repetition of the names', () => {
    const groups = seccompGroupsFor({
      network: 'refused',
      unixSockets: 'refused',
      tracing: 'own',
      ipcObjects: 'own',
    });
    const shuffled = [...groups, ...groups].reverse();
    expect(generatedProgram(shuffled, architecture)).toEqual(generatedProgram(groups, architecture));
  });
});

describe('generated programs', () => {
  it('hold no group set that is not a default one', () => {
    const defaults = new Set(USUAL_NEEDS.map((needs) => seccompGroupsFor(needs).join(' ')));
    defaults.add(SHELL_GROUPS.join(' '));
    expect(new Set(SECCOMP_PROGRAMS.map((program) => program.groups.join(' ')))).toEqual(defaults);
  });

  it('leave every other set to the assembler', async () => {
    const groups = seccompGroupsFor({
      network: 'refused',
      unixSockets: 'allowed',
      tracing: 'own',
      ipcObjects: 'own',
    });
    const fewer = groups.slice(1);
    expect(generatedProgram(fewer, 'x64')).toBeUndefined();
    expect(await seccompProgram(fewer, 'x64')).toEqual(assembleFilter(buildFilter(fewer), 'x64'));
  });

  it('refuse unknown names', async () => {
    await expect(seccompProgram(['@no-such-group' as never], 'x64')).rejects.toThrow(RangeError);
  });
});
