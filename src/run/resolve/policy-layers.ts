import { statSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { absoluteOr } from '../../base/absolute-path.ts';
import { orElse } from '../../base/or-else.ts';
import { PLACED_KEYS, type Policy, type SandboxOptions } from '../../model/index.ts';
import {
  effectivePolicy,
  type LayerName,
  type PolicyLayer,
  putAt,
  valueAt,
  type WorkspaceFile,
} from '../../policy/index.ts';
import { homeDirectory } from '../../workspace/index.ts';

/** The policy of the machine. */
const SYSTEM_POLICY = '/etc/sandbox-run/policy.toml';
/** The file of a workspace, which can only take away until a person trusts it. */
export const WORKSPACE_POLICY = '.sandbox-run.toml';

/** The policy of the user. A relative XDG_CONFIG_HOME is to be ignored (XDG Base Directory Specification). */
export function userPolicyPath(home: string, configHome: string | undefined): string {
  return join(absoluteOr(configHome, join(home, '.config')), 'sandbox-run/policy.toml');
}

/**
 * The operator's layers that are there, weakest first. The libraries for reading them are loaded only if there are any.
 * @throws {SandboxError} for anything wrong with any of them.
 */
export async function loadOperatorLayers(
  home: string,
  policy: SandboxOptions['policy'],
  withFiles = true,
): Promise<readonly PolicyLayer[]> {
  const files: readonly { readonly name: LayerName; readonly path: string }[] = [
    ...(withFiles
      ? ([
          { name: 'system', path: SYSTEM_POLICY },
          { name: 'user', path: userPolicyPath(home, process.env.XDG_CONFIG_HOME) },
        ] as const)
      : []),
    ...(typeof policy === 'string' ? [{ name: 'option', path: policy } as const] : []),
  ];
  const layers: PolicyLayer[] = [];
  for (const { name, path } of files) {
    // A file that an option names must exist.
    const required = name === 'option';
    if (!required && !mayExist(path)) continue;
    const { loadLayer } = await import('../validation.ts');
    const layer = await loadLayer(name, path, { required });
    if (layer !== undefined) layers.push(layer);
  }
  if (typeof policy === 'object') {
    const { checkPolicy } = await import('../validation.ts');
    layers.push({ name: 'option', says: await checkPolicy(policy) });
  }
  for (const layer of layers) await tryExamples(layer);
  return layers;
}

/** Where it is looked for what files say of a policy for a workspace; they need not be there. */
export const policyFiles = (
  { policy, shadow }: Pick<SandboxOptions, 'policy' | 'shadow'>,
  workspace: string,
): readonly string[] => [
  ...[SYSTEM_POLICY, userPolicyPath(homeDirectory(), process.env.XDG_CONFIG_HOME)],
  ...[policy, shadow].filter((one) => typeof one === 'string'),
  join(workspace, WORKSPACE_POLICY),
];

/** The workspace that files of the operator name; it may begin with `~`. */
export function workspaceNamed(layers: readonly PolicyLayer[]): string | undefined {
  return layers.findLast(({ says }) => says.security?.workspace_dir !== undefined)?.says.security
    ?.workspace_dir;
}

/** What the caller says by options of `createSandbox`, as a layer of its own: after all files of the operator. */
export function callerLayer(options: SandboxOptions): PolicyLayer {
  const says: Record<string, unknown> = {};
  for (const { place, row } of PLACED_KEYS) {
    if (row.option === undefined) continue;
    const given = valueAt(options, row.option.name.split('.'));
    if (given !== undefined) putAt(says, place, row.option.said?.(given as never) ?? given);
  }
  const lists = options.net !== undefined || options.unix !== undefined || options.unlisted === 'ask';
  if (lists) putAt(says, ['network', 'mode'], 'listed');
  const { maxOutput } = options;
  // Half and half, if only one number is given, unless the policy says otherwise.
  if (typeof maxOutput === 'number') putAt(says, ['limits', 'output_bytes'], maxOutput);
  if (typeof maxOutput === 'object') {
    putAt(says, ['limits', 'output_bytes'], maxOutput.head + maxOutput.tail);
    putAt(says, ['limits', 'output_head_bytes'], maxOutput.head);
  }
  return { name: 'caller', says };
}

/**
 * What the policy of the machine and the user says about where the state is; `undefined`: nothing, and nothing was loaded
 * where there is no file.
 * @throws {SandboxError} for anything wrong with any of the files.
 */
export async function operatorStateSettings(): Promise<Policy['state'] | undefined> {
  const home = homeDirectory();
  const layers = await loadOperatorLayers(home, undefined);
  if (!layers.some(({ says }) => says.state !== undefined)) return undefined;
  return effectivePolicy(layers, { workspace: home, home }).policy.state;
}

/**
 * The policy of the machine and the user, for what has to do with no workspace.
 * @throws {SandboxError} for anything wrong with any of the files.
 */
export async function operatorPolicy(named?: string): Promise<Policy> {
  const home = homeDirectory();
  const layers = await loadOperatorLayers(home, named);
  return effectivePolicy(layers, { workspace: home, home }).policy;
}

/**
 * What the files of policy hide from commands in a directory, without any option: canonical paths. `directory` is canonical.
 * @throws {SandboxError} for anything wrong with any of the files, and where it cannot be known.
 */
export async function hiddenIn(directory: string): Promise<readonly string[]> {
  const home = homeDirectory();
  const own = await loadOwnFile(directory);
  const layers = [...(await loadOperatorLayers(home, undefined)), ...(own === undefined ? [] : [own.layer])];
  const { hide } = effectivePolicy(layers, { workspace: directory, home }).policy.filesystem;
  if (hide.length === 0) return [];
  const { HiddenFinder } = await import('../hidden-files.ts');
  const within = [directory];
  return new HiddenFinder(hide, { workspace: directory, home, own: within, all: within }).look().files.paths;
}

/** The workspace's file, if it is there. `workspace` is canonical. */
export async function loadOwnFile(workspace: string): Promise<WorkspaceFile | undefined> {
  const path = join(workspace, WORKSPACE_POLICY);
  if (!mayExist(path)) return undefined;
  const { loadWorkspaceFile } = await import('../validation.ts');
  const file = await loadWorkspaceFile(path, statSync(workspace).uid);
  await tryExamplesOf(file);
  return file;
}

async function tryExamplesOf(file: WorkspaceFile | undefined): Promise<void> {
  if (file === undefined) return;
  await tryExamples(file.layer);
  if (file.wanted !== undefined) await tryExamples(file.wanted);
}

/**
 * Checks one file as a run would. `narrowing`: as the file of a workspace.
 * @throws {SandboxError} for anything wrong with it.
 */
export async function validateFile(path: string, narrowing: boolean): Promise<void> {
  const { loadLayer, loadWorkspaceFile } = await import('../validation.ts');
  if (narrowing)
    return tryExamplesOf(await loadWorkspaceFile(path, ownerOf(dirname(path)), { required: true }));
  const layer = await loadLayer('option', path, { required: true });
  if (layer !== undefined) await tryExamples(layer);
}

async function tryExamples(layer: PolicyLayer): Promise<void> {
  if ((layer.says.commands?.rules ?? []).length === 0) return;
  const [{ checkRuleExamples }, { parseShell }] = await Promise.all([
    import('../../gate/decide/rule-examples.ts'),
    import('../../gate/decide/judgement.ts'),
  ]);
  await checkRuleExamples(layer, parseShell);
}

/** A place that we may not look into may hold a policy: reading it will say what is wrong. */
function mayExist(path: string): boolean {
  return orElse(() => statSync(path, { throwIfNoEntry: false }) !== undefined, true);
}

function ownerOf(directory: string): number {
  // A directory that is not there: reading the file in it will say so.
  return statSync(directory, { throwIfNoEntry: false })?.uid ?? 0;
}
