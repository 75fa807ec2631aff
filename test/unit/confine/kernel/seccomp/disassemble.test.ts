import { describe, expect, it } from 'vitest';
import { SECCOMP_ARCHITECTURES } from '../../../../../src/confine/kernel/seccomp/architecture.ts';
import { assembleFilter } from '../../../../../src/confine/kernel/seccomp/assemble.ts';
import { buildFilter, seccompGroupsFor } from '../../../../../src/confine/kernel/seccomp/filter.ts';
import { disassemble } from './disassemble.ts';

describe.each(SECCOMP_ARCHITECTURES)('disassemble for %s', (architecture) => {
  it('reads as the default filter is meant', async () => {
    const groups = seccompGroupsFor({
      network: 'refused',
      unixSockets: 'allowed',
      tracing: 'own',
      ipcObjects: 'own',
    });
    const program = assembleFilter(buildFilter(groups), architecture);
    await expect(disassemble(program)).toMatchFileSnapshot(
      `../../../../golden/seccomp-default-${architecture}.txt`,
    );
  });

  it('names every call, field and error, and leaves nothing undecoded', () => {
    const groups = seccompGroupsFor({
      network: 'open',
      unixSockets: 'refused',
      tracing: 'own',
      ipcObjects: 'own',
    });
    const text = disassemble(assembleFilter(buildFilter(groups), architecture));
    expect(text).toContain('if number == keyctl goto');
    expect(text).toContain(`if architecture == ${architecture} goto`);
    expect(text).toContain('return ERRNO EAFNOSUPPORT');
    expect(text).not.toMatch(/unknown|if A |number [=>]+ 0x|return 0x/);
  });
});
