import { execa } from 'execa';
import { CLI, type Place } from '../cli/support.ts';

/**
 * Starts `sandbox-run hook` as an agent does, as a process of its own: how it ends when something is wrong with it is a part
 * of what agents see.
 */
export async function hookProcess(
  place: Pick<Place, 'workspace' | 'env'>,
  args: readonly string[],
  { input, env }: { readonly input: string | Uint8Array; readonly env: Readonly<Record<string, string>> },
) {
  const { exitCode, stdout, stderr } = await execa(process.execPath, [CLI, 'hook', ...args], {
    cwd: place.workspace,
    env: { ...place.env, ...env },
    extendEnv: false,
    reject: false,
    stripFinalNewline: false,
    input,
  });
  return { exitCode, stdout, stderr };
}
