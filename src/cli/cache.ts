import { realpathSync } from 'node:fs';
import { resolve } from 'node:path';
import { SandboxError } from '../base/errors/sandbox-error.ts';
import { orElse } from '../base/or-else.ts';
import { visibleLine } from '../base/visible-text.ts';
import type { NativeAddon } from '../confine/native/contract.ts';
import { loadAddon } from '../confine/native/load.ts';
import { CACHE_LIMITS, type CacheEntry, clearCache, listCaches, sizeOfCache } from '../run/index.ts';
import { currentDirectory } from './shared/caller.ts';
import { withSubcommands } from './shared/parse.ts';
import { jsonLine } from './shared/print.ts';

const GIB = 1024 ** 3;

const HELP_AFTER = `
What tools cache in the private home of a command (~/.cache, ~/.npm, ~/.cargo/registry, ~/go/pkg,
~/.gradle/caches, ~/.m2/repository, …) is kept per workspace in the state directory and shown to
later commands in the same workspace, unless the policy says [filesystem] cache = "private" or the
workspace cannot be written. Nothing outside of the sandbox reads it. A workspace's cache has at
most ${CACHE_LIMITS.workspaceBytes / GIB} GiB and all together ${CACHE_LIMITS.totalBytes / GIB}: looked at once an hour, the largest parts and what was used
least lately go first.

Examples:
  sandbox-run cache show
  sandbox-run cache clear
  sandbox-run cache clear --workspace ~/project
  sandbox-run cache clear --all

Exit status: 0; 125 if a command uses a cache that was to be cleared, or anything else failed.`;

/** How long commands that just end are waited for. */
const PATIENCE_MS = 1_000;

/** `sandbox-run cache`: what commands of a workspace keep for each other. */
export async function cache(args: readonly string[]): Promise<number> {
  const { command, does, run } = withSubcommands(
    'sandbox-run cache',
    'Shows or clears what tools in sandboxes cached, by workspace.',
    HELP_AFTER,
  );
  command('show', 'size, last use and workspace of each cache, the last used first')
    .option('--json', 'one JSON object per line')
    .action(({ json }: { readonly json?: boolean }) => does(() => show(loadAddon(), json === true)));
  command('clear', 'removes what the commands of a workspace cached')
    .option('--workspace <dir>', 'the workspace (default: the current directory)')
    .option('--all', 'clear the caches of all workspaces')
    .action((options: { readonly workspace?: string; readonly all?: boolean }) =>
      does(() => clear(loadAddon(), options)),
    );
  return run(args);
}

async function show(addon: NativeAddon, json: boolean): Promise<string> {
  const lines: string[] = [];
  let total = 0;
  for (const entry of listCaches(addon)) {
    const { bytes, complete } = await sizeOfCache(addon, entry);
    total += bytes;
    lines.push(json ? jsonLine(plain(entry, bytes, complete)) : describe(entry, bytes, complete));
  }
  if (json) return lines.join('');
  return lines.length === 0
    ? 'nothing is cached\n'
    : `${lines.join('')}${inMib(total).padStart(12)}  in all\n`;
}

function plain(
  { id, workspace, isThere, usedAt, inUse, directory }: CacheEntry,
  bytes: number,
  complete: boolean,
) {
  return {
    id,
    workspace: workspace ?? null,
    workspaceExists: isThere,
    bytes,
    complete,
    usedAt: usedAt.getTime(),
    inUse,
    directory,
  };
}

function describe(
  { workspace, isThere, usedAt, inUse, id }: CacheEntry,
  bytes: number,
  complete: boolean,
): string {
  const size = `${complete ? '' : 'over '}${inMib(bytes)}`.padStart(12);
  const remarks = [...(isThere ? [] : ['the workspace is gone']), ...(inUse ? ['a command uses it'] : [])];
  const said = remarks.length === 0 ? '' : ` (${remarks.join('; ')})`;
  return `${size}  ${usedAt.toISOString().slice(0, 16)}Z  ${visibleLine(workspace ?? id, 4096)}${said}\n`;
}

const inMib = (bytes: number) => `${(bytes / 1024 ** 2).toFixed(1)} MiB`;

async function clear(
  addon: NativeAddon,
  { workspace, all }: { readonly workspace?: string; readonly all?: boolean },
): Promise<string> {
  if (all === true && workspace !== undefined)
    throw new SandboxError('usage.invalid', '--all and --workspace exclude each other; give one of them');
  const named = resolve(workspace ?? (all === true ? '/' : currentDirectory()));
  // Caches know a workspace by its canonical path; if it is gone, by the path as named.
  const path = orElse(() => realpathSync(named), named);
  const chosen = listCaches(addon).filter((entry) => all === true || entry.workspace === path);
  if (chosen.length === 0) return all === true ? 'nothing is cached\n' : `nothing is cached for ${path}\n`;
  const said: string[] = [];
  for (const entry of chosen) {
    const name = visibleLine(entry.workspace ?? entry.id, 4096);
    const done = await clearCache(addon, entry, PATIENCE_MS);
    if (done === 'cleared') said.push(`${name}: cleared\n`);
    else if (all !== true || done === 'failed') throw cannotClear(name, done);
    else said.push(`${name}: a command uses it\n`);
  }
  return said.join('');
}

function cannotClear(name: string, why: 'in-use' | 'failed'): SandboxError {
  return why === 'in-use'
    ? new SandboxError('cache.in_use', `a command uses the cache of ${name}; wait for its end, or end it`)
    : new SandboxError(
        'state.unusable',
        `not all of the cache of ${name} could be removed; look at it with sandbox-run cache show --json`,
      );
}
