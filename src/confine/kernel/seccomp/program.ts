import type { SeccompArchitecture } from './architecture.ts';
import type { SeccompProgram } from './assemble.ts';
import type { SeccompGroupName } from './groups.ts';
import table from './programs.gen.json' with { type: 'json' };

/** Assembled programs (base64 of `struct sock_filter[]`) per architecture, with the groups that each refuses. */
export const SECCOMP_PROGRAMS: readonly ({ readonly groups: readonly string[] } & Readonly<
  Record<SeccompArchitecture, string>
>)[] = table.programs;

/** Size of `struct sock_filter`. */
const INSTRUCTION_BYTES = 8;

/**
 * The program for a set of groups. Those of the default sets were assembled when this package was made; the assembler,
 * which takes some milliseconds to start, is loaded for other sets only.
 *
 * @throws RangeError on a name that is not in the table of groups.
 */
export async function seccompProgram(
  groups: readonly SeccompGroupName[],
  architecture: SeccompArchitecture,
): Promise<SeccompProgram> {
  return generatedProgram(groups, architecture) ?? (await assembleNow(groups, architecture));
}

/** The program that was assembled beforehand for exactly these groups, in any order, if there is one. */
export function generatedProgram(
  groups: readonly SeccompGroupName[],
  architecture: SeccompArchitecture,
): SeccompProgram | undefined {
  const wanted = new Set<string>(groups);
  const found = SECCOMP_PROGRAMS.find(
    (program) => program.groups.length === wanted.size && program.groups.every((name) => wanted.has(name)),
  );
  if (found === undefined) return undefined;
  const bytes = Buffer.from(found[architecture], 'base64');
  return { architecture, bytes, length: bytes.length / INSTRUCTION_BYTES };
}

async function assembleNow(
  groups: readonly SeccompGroupName[],
  architecture: SeccompArchitecture,
): Promise<SeccompProgram> {
  const [{ assembleFilter }, { buildFilter }] = await Promise.all([
    import('./assemble.ts'),
    import('./filter.ts'),
  ]);
  return assembleFilter(buildFilter(groups), architecture);
}
