import type { SandboxOptions } from '../../model/options.ts';
import { commandEnvironment } from '../../run/assemble.ts';
import { prepareOf } from '../../run/resolve/prepare-sandbox.ts';
import { type ResolvedPolicy, resolvePolicy } from '../../run/resolve/resolve-policy.ts';
import { type OpenSandbox, sandboxOn } from '../../run/sandbox.ts';

/** A sandbox that is lent for a command. */
export interface Lease extends Disposable {
  readonly sandbox: OpenSandbox;
}

interface Kept {
  /** What it was made of. */
  readonly from: string;
  readonly sandbox: Promise<OpenSandbox>;
  /** Commands that it is lent for. */
  users: number;
  lastUsed: number;
}

/** So many stay open that nothing runs in; each has a few processes and private directories. */
const MOST_IDLE = 6;
const IDLE_MS = 600_000;
const LOOK_MS = 60_000;

/**
 * Sandboxes that stay open for the next command. Policy, environment and settings are read anew for each command, as a start
 * of this program reads them, and only a sandbox that was made of the very same is used again.
 */
export class SandboxPool {
  readonly #kept = new Set<Kept>();
  readonly #look = setInterval(() => this.#closeIdle(), LOOK_MS).unref();

  /** @throws {SandboxError} as `openSandbox`. */
  async lease(options: SandboxOptions): Promise<Lease> {
    const resolved = await resolvePolicy(options);
    const from = inputsOf(options, resolved);
    const kept = [...this.#kept].find((one) => one.from === from) ?? {
      ...{ from, sandbox: open(options, resolved), users: 0, lastUsed: 0 },
    };
    this.#kept.add(kept);
    kept.users += 1;
    let isBack = false;
    const giveBack = () => {
      if (isBack) return;
      isBack = true;
      kept.users -= 1;
      kept.lastUsed = Date.now();
      this.#closeIdle();
    };
    try {
      return { sandbox: await kept.sandbox, [Symbol.dispose]: giveBack };
    } catch (error) {
      this.#kept.delete(kept);
      throw error;
    }
  }

  async close(): Promise<void> {
    clearInterval(this.#look);
    const all = [...this.#kept];
    this.#kept.clear();
    await Promise.allSettled(all.map(async ({ sandbox }) => (await sandbox).close()));
  }

  /** Closes what nothing has run in for long, and the oldest beyond as many as stay. */
  #closeIdle(): void {
    const now = Date.now();
    const idle = [...this.#kept]
      .filter(({ users }) => users === 0)
      .sort((one, two) => two.lastUsed - one.lastUsed);
    for (const [at, kept] of idle.entries()) {
      if (at < MOST_IDLE && now - kept.lastUsed < IDLE_MS) continue;
      this.#kept.delete(kept);
      void kept.sandbox.then((one) => one.close()).catch(() => {});
    }
  }
}

/**
 * All that a sandbox depends on and that can be another one for the next command, as text. The rest of a resolved policy is
 * made of this.
 */
function inputsOf({ gate: _, ...options }: SandboxOptions, resolved: ResolvedPolicy): string {
  const { layers, workspace, workspaceAsNamed, home, temporaryParent, settings, policy } = resolved;
  return JSON.stringify([
    ...[options, layers, workspace, workspaceAsNamed, home, temporaryParent, settings],
    ...[policy.filesystem.rules, policy.environment.set, commandEnvironment(policy)],
  ]);
}

async function open(options: SandboxOptions, resolved: ResolvedPolicy): Promise<OpenSandbox> {
  return sandboxOn(await prepareOf(resolved), options);
}
