import type { SandboxOptions } from '../../model/options.ts';
import { loadAddon } from '../../native/load.ts';
import { type Checker, type CheckerParts, checkerOf, commandEnvironment } from '../../run/assemble.ts';
import { prepareOf } from '../../run/resolve/prepare-sandbox.ts';
import { type ResolvedPolicy, resolvePolicy } from '../../run/resolve/resolve-policy.ts';
import { findInWorkspace } from '../../run/resolve/workspace-findings.ts';
import { type OpenSandbox, sandboxOn } from '../../run/sandbox.ts';

/** Something that stays open for the next call, lent to one or several. */
export interface Lease<T> extends Disposable {
  readonly lent: T;
}

interface Kept<T> {
  readonly made: Promise<T>;
  /** Calls that it is lent to. */
  users: number;
  lastUsed: number;
}

/** So many stay open that nobody uses; a sandbox has a few processes and private directories. */
const MOST_IDLE = 6;
const IDLE_MS = 600_000;
const LOOK_MS = 60_000;

/** What stays open, by what it was made of. */
class Pool<T extends { close(): Promise<void> }> {
  readonly #kept = new Map<string, Kept<T>>();
  readonly #look = setInterval(() => this.#closeIdle(), LOOK_MS).unref();

  /** What was made of the same before, or is made now. */
  async lease(from: string, make: () => Promise<T>): Promise<Lease<T>> {
    const kept = this.#kept.get(from) ?? { made: make(), users: 0, lastUsed: 0 };
    this.#kept.set(from, kept);
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
      return { lent: await kept.made, [Symbol.dispose]: giveBack };
    } catch (error) {
      this.#kept.delete(from);
      throw error;
    }
  }

  async close(): Promise<void> {
    clearInterval(this.#look);
    const all = [...this.#kept.values()];
    this.#kept.clear();
    await Promise.allSettled(all.map(async ({ made }) => (await made).close()));
  }

  /** Closes what nobody has used for long, and the oldest beyond as many as stay. */
  #closeIdle(): void {
    const now = Date.now();
    const idle = [...this.#kept]
      .filter(([, { users }]) => users === 0)
      .sort(([, one], [, two]) => two.lastUsed - one.lastUsed);
    for (const [at, [from, { made, lastUsed }]] of idle.entries()) {
      if (at < MOST_IDLE && now - lastUsed < IDLE_MS) continue;
      this.#kept.delete(from);
      void made.then((one) => one.close()).catch(() => {});
    }
  }
}

/**
 * Sandboxes and checkers that stay open for the next call. Policy, environment and settings are read anew for each, as a start
 * of this program reads them, and only what was made of the very same is used again.
 */
export class OpenPolicies {
  readonly #sandboxes = new Pool<OpenSandbox>();
  readonly #checkers = new Pool<Checker>();
  readonly #onPlugins: () => void;

  /**
   * `onPlugins`: a policy has plug-ins. They are loaded once in a process, so that the next call needs another one to see what
   * was changed in them.
   */
  constructor(onPlugins: () => void) {
    this.#onPlugins = onPlugins;
  }

  /** @throws {SandboxError} as `openSandbox`. */
  async sandbox(options: SandboxOptions): Promise<Lease<OpenSandbox>> {
    const resolved = await this.#resolve(options);
    // A repository that came since the last call, say: only a sandbox that is made now keeps commands off its hooks.
    const found = await findInWorkspace(loadAddon(), resolved);
    // What is to be hidden is looked for by the sandbox itself, before each command.
    const inWorkspace = JSON.stringify([found?.obeyed, found?.configurations, found?.shortfall]);
    return this.#sandboxes.lease(inputsOf(options, resolved, {}) + inWorkspace, async () =>
      sandboxOn(await prepareOf(resolved, options), options),
    );
  }

  /** A checker that is given back when it is closed. @throws {SandboxError} as `createChecker`. */
  async checker(options: SandboxOptions, parts: CheckerParts = {}): Promise<Checker> {
    const resolved = await this.#resolve(options);
    const { lent, ...lease } = await this.#checkers.lease(inputsOf(options, resolved, parts), () =>
      checkerOf(resolved, options, parts),
    );
    return { ...lent, close: async () => lease[Symbol.dispose]() };
  }

  async #resolve(options: SandboxOptions): Promise<ResolvedPolicy> {
    const resolved = await resolvePolicy(options);
    if (resolved.policy.hooks.plugins.length > 0) this.#onPlugins();
    return resolved;
  }

  async close(): Promise<void> {
    await Promise.all([this.#sandboxes.close(), this.#checkers.close()]);
  }
}

/**
 * All that a sandbox depends on and that can be another one for the next command, as text. The rest of a resolved policy is
 * made of this.
 */
function inputsOf(
  { gate, ...options }: SandboxOptions,
  resolved: ResolvedPolicy,
  parts: CheckerParts,
): string {
  const { layers, workspace, workspaceAsNamed, home, temporaryParent, settings, policy, networkRules } =
    resolved;
  return JSON.stringify([
    // Of the gate which parts there are: what they do is the same for every caller.
    ...[
      options,
      Object.keys(gate ?? {}),
      parts,
      layers,
      workspace,
      workspaceAsNamed,
      home,
      temporaryParent,
      settings,
    ],
    ...[networkRules, policy.filesystem.rules, policy.environment.set, commandEnvironment(policy)],
  ]);
}
