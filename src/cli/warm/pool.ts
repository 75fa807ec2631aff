import { createHash } from 'node:crypto';
import { loadAddon } from '../../confine/native/load.ts';
import { type Policy, reviewerSettings, type SandboxOptions } from '../../model/index.ts';
import {
  type Checker,
  type CheckerParts,
  checkerOf,
  closePrepared,
  commandEnvironment,
  HostFindings,
  type OpenSandbox,
  type PreparedSandbox,
  RepeatedLook,
  type ResolvedPolicy,
  realPath,
  resolvePolicy,
  sandboxOn,
} from '../../run/index.ts';
import { createPathLookup, type Environment, identityOf, type Surroundings } from '../../workspace/index.ts';
import type { AgentCommands } from './background.ts';
import { type Company, Machines, type Shared } from './machines.ts';
import { NextRun, stampOf } from './next-run.ts';

/** Something that stays open for the next call, lent to one or several. */
export interface Lease<T> extends Disposable, Company {
  readonly lent: T;
}

type Sharing = Pick<Shared, 'machine' | 'session'>;

const ALONE: Sharing = { machine: undefined, session: undefined };

interface Kept<T> extends Sharing {
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
  readonly #onClosed: () => void;

  /** `onClosed`: something that nobody used is open no more. */
  constructor(onClosed: () => void = () => {}) {
    this.#onClosed = onClosed;
  }

  /** What was made of the same before, or is made now. */
  async lease(from: string, make: () => Promise<T>, shared: Sharing = ALONE): Promise<Lease<T>> {
    const kept = this.#kept.get(from) ?? { made: make(), ...shared, users: 0, lastUsed: 0 };
    this.#kept.set(from, kept);
    kept.users += 1;
    let isBack = false;
    const giveBack = () => {
      if (isBack) return;
      isBack = true;
      kept.users -= 1;
      kept.lastUsed = Date.now();
      // Its session has ended meanwhile.
      if (this.#kept.get(from) !== kept && kept.users === 0) closeSoon(kept);
      this.#closeIdle();
    };
    try {
      return { lent: await kept.made, [Symbol.dispose]: giveBack };
    } catch (error) {
      if (this.#kept.get(from) === kept) this.#kept.delete(from);
      throw error;
    }
  }

  /** Closes what is for a session that has ended: at once, or with the last call that it is lent to. */
  endSession(isOver: (session: string) => boolean): void {
    for (const [from, kept] of this.#kept) {
      if (kept.session === undefined || !isOver(kept.session)) continue;
      this.#kept.delete(from);
      if (kept.users === 0) closeSoon(kept);
    }
    this.#onClosed();
  }

  has(from: string): boolean {
    return this.#kept.has(from);
  }

  /** Whether something is open that shares this. */
  shares(machine: string): boolean {
    return [...this.#kept.values()].some((kept) => kept.machine === machine);
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
    for (const [at, [from, kept]] of idle.entries()) {
      if (at < MOST_IDLE && now - kept.lastUsed < IDLE_MS) continue;
      this.#kept.delete(from);
      closeSoon(kept);
    }
    this.#onClosed();
  }
}

/** Closes something that is lent to nobody. Nobody waits for that, so a failure is told to nobody. */
function closeSoon({ made }: { readonly made: Promise<{ close(): Promise<void> }> }): void {
  void made.then((one) => one.close()).catch(() => {});
}

/**
 * Sandboxes and checkers that stay open for the next call. Policy, environment and settings are read anew for each, as a start
 * of this program reads them, and only what was made of the very same is used again.
 */
export class OpenPolicies {
  readonly #sandboxes: Pool<OpenSandbox> = new Pool(() =>
    this.#machines.forgetUnused(this.#prepared?.shared.machine),
  );
  readonly #machines: Machines;
  readonly #checkers = new Pool<Checker>();
  /** By workspace; the one that was used last comes last. */
  readonly #looks = new Map<string, RepeatedLook>();
  /** What was prepared for a sandbox that nobody has asked for yet. */
  #prepared:
    | {
        readonly from: string;
        readonly shared: Shared;
        readonly made: Promise<PreparedSandbox>;
      }
    | undefined;
  readonly #onPlugins: () => void;
  readonly #next = new NextRun();

  /**
   * `agents` learns what runs in the background. `onPlugins`: a policy has plug-ins. They are loaded once in a process, so that
   * the next call needs another one to see what was changed in them.
   */
  constructor(agents: AgentCommands, onPlugins: () => void) {
    this.#machines = new Machines(agents, (machine) => this.#sandboxes.shares(machine));
    this.#onPlugins = onPlugins;
  }

  /** @throws {SandboxError} as `openSandbox`. */
  async sandbox(options: SandboxOptions, around: Surroundings): Promise<Lease<OpenSandbox>> {
    const { from, resolved } = await this.#sandboxOf(options, around);
    const shared = this.#machines.joined(this.#machines.sharedOf(options, resolved));
    const lease = await this.#lease(from, shared, resolved, options);
    return Object.assign(lease, this.#machines.lend(shared));
  }

  /**
   * The same for a service: commands of the same workspace and policy share its machine from now on, until what is returned is
   * given back.
   * @throws {SandboxError} as `openSandbox`.
   */
  async serviceSandbox(options: SandboxOptions, around: Surroundings): Promise<Lease<OpenSandbox>> {
    const { from, resolved } = await this.#sandboxOf(options, around);
    const { place, session } = this.#machines.sharedOf(options, resolved);
    const service = this.#machines.beginService(place);
    try {
      const shared = { machine: place, place, session };
      const { lent, ...lease } = await this.#lease(from, shared, resolved, options);
      const giveBack = () => {
        service[Symbol.dispose]();
        lease[Symbol.dispose]();
      };
      return { lent, [Symbol.dispose]: giveBack };
    } catch (error) {
      service[Symbol.dispose]();
      throw error;
    }
  }

  /** Whether commands with these options would share a machine with services that run. @throws {SandboxError} for a wrong policy. */
  async reachesServices(options: SandboxOptions, around: Surroundings): Promise<boolean> {
    const { hasAnyServices } = this.#machines;
    if (!hasAnyServices) return false;
    return this.#machines.hasServices(
      this.#machines.sharedOf(options, await this.#resolve(options, around)).place,
    );
  }

  /** `from`: what it is made of. Made on another machine it is another one. */
  #lease(from: string, shared: Shared, resolved: ResolvedPolicy, options: SandboxOptions) {
    const make = async () =>
      sandboxOn(
        await (this.#takePrepared(from) ?? this.#machines.prepare(shared, resolved, options)),
        options,
      );
    return this.#sandboxes.lease(JSON.stringify([from, shared.machine]), make, shared);
  }

  /**
   * A session of an agent has ended: what its commands shared goes when the last of them has ended. A command that begins
   * later is of a session that was begun anew.
   */
  endSession(isOver: (session: string) => boolean): void {
    const session = this.#prepared?.shared.session;
    if (session !== undefined && isOver(session)) this.#dropPrepared();
    this.#sandboxes.endSession(isOver);
  }

  /** Makes the kernel objects of a sandbox for when it is asked for: no session begins by that, and nothing is recorded. */
  async prepare(options: SandboxOptions, around: Surroundings): Promise<void> {
    const { from, resolved } = await this.#sandboxOf(options, around);
    const shared = this.#machines.sharedOf(options, resolved);
    const isMade = this.#sandboxes.has(JSON.stringify([from, shared.machine]));
    if (isMade || this.#prepared?.from === from) return;
    this.#dropPrepared();
    const made = this.#machines.prepare(shared, resolved, options);
    this.#prepared = { from, shared, made };
    await made;
  }

  /** Whether anything that is opened for these options is worth it for a later call. */
  async isWorthOpening(options: SandboxOptions, around: Surroundings): Promise<boolean> {
    return (await resolvePolicy(options, around)).policy.hooks.plugins.length === 0;
  }

  #takePrepared(from: string): Promise<PreparedSandbox> | undefined {
    if (this.#prepared?.from !== from) return undefined;
    const { made } = this.#prepared;
    this.#prepared = undefined;
    return made;
  }

  #dropPrepared(): void {
    const made = this.#prepared?.made;
    this.#prepared = undefined;
    void made?.then(closePrepared).catch(() => {});
  }

  async #sandboxOf(options: SandboxOptions, around: Surroundings) {
    const ahead = await this.#next.takePolicy(options, around);
    const resolved =
      ahead === undefined
        ? await this.#resolve(options, around, this.#next.takeFindings(options))
        : { ...ahead, around: ofNoCall(around) };
    // A repository that came since the last call, say: only a sandbox that is made now keeps commands off its hooks.
    const found = await this.#lookThrough(resolved.workspace).find(loadAddon(), resolved);
    // What is to be hidden is looked for by the sandbox itself, before each command.
    // Where the names lead is what is shut: a link on the way may lead elsewhere by now.
    const lookup = createPathLookup();
    const obeyed = found && [found.obeyed, found.nested];
    const inWorkspace = JSON.stringify([
      obeyed?.map((some) => some.map(({ path, reason }) => [path, reason, lookup.resolve(path)])),
      ...[found?.nestedDirectories, found?.nestedTops, found?.hooks],
      ...[found?.configurations, found?.shortfall],
      identityOf(resolved.workspace),
    ]);
    return { from: inputsOf(options, resolved, {}) + inWorkspace, resolved };
  }

  /** A checker that is given back when it is closed. @throws {SandboxError} as `createChecker`. */
  async checker(options: SandboxOptions, around: Surroundings, parts: CheckerParts = {}): Promise<Checker> {
    const host = new HostFindings();
    const resolved = await this.#resolve(options, around, host);
    this.#next.foundBy(options, host);
    const { lent, ...lease } = await this.#checkers.lease(inputsOf(options, resolved, parts), () =>
      checkerOf(resolved, options, parts),
    );
    return { ...lent, close: async () => lease[Symbol.dispose]() };
  }

  /** Resolves the policy of a run that is about to come; it is used if it comes at once, and nothing that it was read from has changed. */
  lookAhead(options: SandboxOptions, around: Surroundings): Promise<void> {
    return this.#next.lookAhead(options, around, () =>
      this.#resolve(options, around, this.#next.takeFindings(options)),
    );
  }

  #lookThrough(workspace: string): RepeatedLook {
    const look = this.#looks.get(workspace) ?? new RepeatedLook();
    this.#looks.delete(workspace);
    this.#looks.set(workspace, look);
    const [oldest] = this.#looks.keys();
    if (this.#looks.size > MOST_IDLE && oldest !== undefined) this.#looks.delete(oldest);
    return look;
  }

  /** What stays open serves other calls, too, each of which has a directory and streams of its own. */
  async #resolve(
    options: SandboxOptions,
    around: Surroundings,
    host?: HostFindings,
  ): Promise<ResolvedPolicy> {
    const resolved = { ...(await resolvePolicy(options, around, host)), around: ofNoCall(around) };
    if (resolved.policy.hooks.plugins.length > 0) this.#onPlugins();
    return resolved;
  }

  async close(): Promise<void> {
    this.#dropPrepared();
    await Promise.all([this.#sandboxes.close(), this.#checkers.close()]);
  }
}

/** Variables of a caller that say where the settings of its git, its agent of SSH and its directories are: what is told of denials depends on them. */
const TELLING = /^(?:GIT_CONFIG_\w+|SSH_AUTH_SOCK|XDG_\w+)$/;

const tellingOf = (env: Environment) =>
  Object.keys(env)
    .filter((name) => TELLING.test(name))
    .sort()
    .map((name) => [name, env[name]]);

/** The variables of a call alone. */
const ofNoCall = ({ env }: Surroundings): Surroundings => ({
  env,
  cwd: () => {
    throw new Error('what stays open from call to call has no current directory');
  },
  get stdio(): never {
    throw new Error('what stays open from call to call has no streams');
  },
});

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
  const { env } = resolved.around;
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
    ...[networkRules, policy.filesystem.rules, policy.environment.set, commandEnvironment(policy, env)],
    ...[openedWith(policy, env), tellingOf(env)],
  ]);
}

/** What is looked at when one is opened, and of which the policy has the name only: as it is now. */
function openedWith(policy: Policy, env: Environment): readonly (string | undefined)[] {
  const { hmacKeyFile } = policy.audit;
  const reviewer = reviewerSettings(policy);
  const key = reviewer?.kind === 'model' ? env[reviewer.keyVariable] : undefined;
  return [
    hmacKeyFile && stampOf(hmacKeyFile),
    reviewer?.kind === 'command' ? realPath(reviewer.argv[0]) : undefined,
    // It is nothing to be kept as it is.
    key && createHash('sha256').update(key).digest('hex'),
  ];
}
