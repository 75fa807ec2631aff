import { createHash } from 'node:crypto';
import { statSync } from 'node:fs';
import { errnoOf } from '../../base/errno-of.ts';
import { orElse } from '../../base/or-else.ts';
import { loadAddon } from '../../confine/native/load.ts';
import { type Policy, reviewerSettings, type SandboxOptions } from '../../model/index.ts';
import {
  type Beside,
  type Checker,
  type CheckerParts,
  callerLayer,
  checkerOf,
  closePrepared,
  commandEnvironment,
  HostFindings,
  type OpenSandbox,
  type PreparedSandbox,
  policyFiles,
  prepareOf,
  RepeatedLook,
  type ResolvedPolicy,
  realPath,
  resolvePolicy,
  sandboxOn,
  trustDirectory,
} from '../../run/index.ts';
import { createPathLookup, type Environment, identityOf, type Surroundings } from '../../workspace/index.ts';
import { sharedOptions } from '../shared/options.ts';
import { type AgentCommands, SessionBackground } from './background.ts';

/** Something that stays open for the next call, lent to one or several. */
export interface Lease<T> extends Disposable {
  readonly lent: T;
  /** What runs in the background of the agent’s session; `undefined`: the call belongs to no session. */
  readonly background?: SessionBackground | undefined;
  /** Services of the user run on the same machine. */
  readonly reachesServices?: boolean;
}

/** What something that stays open shares with others. */
interface Shared {
  /** `undefined`: it has a machine alone. */
  readonly machine: string | undefined;
  /** The machine of services of the same workspace and policy, which it joins if they run. */
  readonly place: string;
  /** The session of an agent that it is for. */
  readonly session: string | undefined;
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
/** An agent runs what a hook has answered within so long, unless it asks its user first. */
const LOOK_LASTS_MS = 1_000;

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
  readonly #sandboxes = new Pool<OpenSandbox>(() => this.#forgetMachines());
  /** The machines of sessions: the last sandbox that was made on each, which the next one shares it with. */
  readonly #machines = new Map<string, Promise<Beside | undefined>>();
  /** By machine. */
  readonly #backgrounds = new Map<string, SessionBackground>();
  /** The machine of the session that was used last in each place, which services that begin there join. */
  readonly #lastSessions = new Map<string, string>();
  /** Machines of sessions that those of services were made on, or the other way round. */
  readonly #besideServices = new Map<string, string>();
  /** How many services run in each place. */
  readonly #services = new Map<string, number>();
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
  readonly #agents: AgentCommands;
  readonly #onPlugins: () => void;
  /** What a run that is about to come will ask for. */
  #ahead:
    | {
        readonly question: string;
        readonly files: readonly { readonly path: string; readonly was: string }[];
        readonly made: Promise<ResolvedPolicy>;
        readonly at: number;
      }
    | undefined;
  /** What the last decision for the session of an agent found on the host. */
  #lastLook: { readonly session: string; readonly host: HostFindings; readonly at: number } | undefined;

  /**
   * `agents` learns what runs in the background. `onPlugins`: a policy has plug-ins. They are loaded once in a process, so that the next call needs another one to see what
   * was changed in them.
   */
  constructor(agents: AgentCommands, onPlugins: () => void) {
    this.#agents = agents;
    this.#onPlugins = onPlugins;
  }

  /** @throws {SandboxError} as `openSandbox`. */
  async sandbox(options: SandboxOptions, around: Surroundings): Promise<Lease<OpenSandbox>> {
    const { from, resolved } = await this.#sandboxOf(options, around);
    const shared = this.#joined(sharedOf(options, resolved, this.#agents));
    const lease = await this.#lease(from, shared, resolved, options);
    const { machine } = shared;
    if (shared.session !== undefined && machine !== undefined) this.#lastSessions.set(shared.place, machine);
    if (machine === undefined || !this.#sandboxes.shares(machine)) return lease;
    const background = this.#backgrounds.get(machine) ?? new SessionBackground(this.#agents);
    this.#backgrounds.set(machine, background);
    const reachesServices =
      this.#hasServices(shared.place) && this.#besideServices.get(machine) === shared.place;
    return Object.assign(lease, { background, reachesServices });
  }

  /**
   * The same for a service: commands of the same workspace and policy share its machine from now on, until what is returned is
   * given back.
   * @throws {SandboxError} as `openSandbox`.
   */
  async serviceSandbox(options: SandboxOptions, around: Surroundings): Promise<Lease<OpenSandbox>> {
    const { from, resolved } = await this.#sandboxOf(options, around);
    const { place, session } = sharedOf(options, resolved, this.#agents);
    const count = (more: number) => this.#services.set(place, (this.#services.get(place) ?? 0) + more);
    count(1);
    try {
      const { lent, ...lease } = await this.#lease(
        from,
        { machine: place, place, session },
        resolved,
        options,
      );
      let isBack = false;
      const giveBack = () => {
        if (!isBack) count(-1);
        isBack = true;
        lease[Symbol.dispose]();
      };
      return { lent, [Symbol.dispose]: giveBack };
    } catch (error) {
      count(-1);
      throw error;
    }
  }

  /** Whether commands with these options would share a machine with services that run. @throws {SandboxError} for a wrong policy. */
  async reachesServices(options: SandboxOptions, around: Surroundings): Promise<boolean> {
    const isAny = [...this.#services.values()].some((count) => count > 0);
    return (
      isAny && this.#hasServices(sharedOf(options, await this.#resolve(options, around), this.#agents).place)
    );
  }

  #hasServices(place: string): boolean {
    return (this.#services.get(place) ?? 0) > 0;
  }

  /** What belongs to no session shares the machine of services that run. */
  #joined(shared: Shared): Shared {
    const isJoined = shared.machine === undefined && this.#hasServices(shared.place);
    return isJoined ? { ...shared, machine: shared.place } : shared;
  }

  /** `from`: what it is made of. Made on another machine it is another one. */
  #lease(from: string, shared: Shared, resolved: ResolvedPolicy, options: SandboxOptions) {
    const make = async () =>
      sandboxOn(await (this.#takePrepared(from) ?? this.#prepareOn(shared, resolved, options)), options);
    return this.#sandboxes.lease(JSON.stringify([from, shared.machine]), make, shared);
  }

  /**
   * What commands of one session start is reached by the others, though they have other time limits, say. The first sandbox on a
   * machine begins it, unless services run in its place, or a session was before them there: then it is theirs.
   */
  #prepareOn(
    { machine, place, session }: Shared,
    resolved: ResolvedPolicy,
    options: SandboxOptions,
  ): Promise<PreparedSandbox> {
    if (machine === undefined) return prepareOf(resolved, options);
    const isOfServices = machine === place;
    const other = isOfServices ? this.#lastSessions.get(place) : this.#hasServices(place) ? place : undefined;
    const before: Promise<Beside | undefined> =
      this.#machines.get(machine) ??
      (other === undefined ? undefined : this.#machines.get(other)) ??
      Promise.resolve(undefined);
    if (!this.#machines.has(machine) && other !== undefined && this.#machines.has(other))
      this.#besideServices.set(isOfServices ? other : machine, place);
    const made = before.then((beside) =>
      prepareOf(resolved, options, { beside, isOfSession: isOfServices || session !== undefined }),
    );
    // One that cannot be made takes nothing from the others.
    this.#machines.set(
      machine,
      made.catch(() => before),
    );
    return made;
  }

  /** Namespaces that nothing has any more are given up. */
  #forgetMachines(): void {
    for (const machine of this.#machines.keys())
      if (!this.#sandboxes.shares(machine) && this.#prepared?.shared.machine !== machine)
        this.#machines.delete(machine);
    for (const machine of this.#backgrounds.keys())
      if (!this.#machines.has(machine)) this.#backgrounds.delete(machine);
    for (const machine of this.#besideServices.keys())
      if (!this.#machines.has(machine)) this.#besideServices.delete(machine);
    for (const [place, machine] of this.#lastSessions)
      if (!this.#machines.has(machine)) this.#lastSessions.delete(place);
    for (const [place, count] of this.#services) if (count === 0) this.#services.delete(place);
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
    const shared = sharedOf(options, resolved, this.#agents);
    const isMade = this.#sandboxes.has(JSON.stringify([from, shared.machine]));
    if (isMade || this.#prepared?.from === from) return;
    this.#dropPrepared();
    const made = this.#prepareOn(shared, resolved, options);
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
    const resolved =
      (await this.#takeAhead(options, around)) ??
      (await this.#resolve(options, around, this.#takeLook(options)));
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
    if (typeof options.session === 'string')
      this.#lastLook = { session: options.session, host, at: performance.now() };
    const { lent, ...lease } = await this.#checkers.lease(inputsOf(options, resolved, parts), () =>
      checkerOf(resolved, options, parts),
    );
    return { ...lent, close: async () => lease[Symbol.dispose]() };
  }

  /** What the hook found for the command that it has just decided about: good for one run, which comes at once. */
  #takeLook({ session }: SandboxOptions): HostFindings | undefined {
    const look = this.#lastLook;
    if (look === undefined || look.session !== session) return undefined;
    this.#lastLook = undefined;
    return performance.now() - look.at < LOOK_LASTS_MS ? look.host : undefined;
  }

  /** Resolves the policy of a run that is about to come; it is used if it comes at once, and nothing that it was read from has changed. */
  async lookAhead(options: SandboxOptions, around: Surroundings): Promise<void> {
    const { workspace } = options;
    if (typeof workspace !== 'string' || this.#ahead !== undefined) return;
    const paths = [...policyFiles(options, workspace), trustDirectory()];
    const files = paths.map((path) => ({ path, was: stampOf(path) }));
    // Changed once more before the clock of its file system goes on, it would look the same.
    if (files.some(({ path }) => isJustChanged(path))) return;
    const made = this.#resolve(options, around, this.#takeLook(options));
    const ahead = { question: questionOf(options, around), files, made, at: performance.now() };
    this.#ahead = ahead;
    setTimeout(() => {
      if (this.#ahead === ahead) this.#ahead = undefined;
    }, LOOK_LASTS_MS).unref();
    await made;
  }

  async #takeAhead(options: SandboxOptions, around: Surroundings): Promise<ResolvedPolicy | undefined> {
    const ahead = this.#ahead;
    if (ahead === undefined || ahead.question !== questionOf(options, around)) return undefined;
    this.#ahead = undefined;
    const resolved = await ahead.made.catch(() => undefined);
    const isSoon = performance.now() - ahead.at < LOOK_LASTS_MS;
    const isSame = ahead.files.every(({ path, was }) => was === stampOf(path));
    return resolved !== undefined && isSoon && isSame ? { ...resolved, around: ofNoCall(around) } : undefined;
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

/** Variables that a shell or an agent sets for what it starts, and that say nothing to the settings that are read. */
const OF_ITS_SHELL = /^(?:_|PWD|OLDPWD|SHLVL|GIT_EDITOR|TRACEPARENT|CLAUDE\w*)$/;

/** All that a policy is resolved from and that a call brings with it. */
const questionOf = ({ gate, ...options }: SandboxOptions, { env }: Surroundings): string =>
  JSON.stringify([
    options,
    Object.keys(gate ?? {}),
    Object.entries(env)
      .filter(([name]) => !OF_ITS_SHELL.test(name))
      .sort(([one], [two]) => (one < two ? -1 : 1)),
  ]);

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

/**
 * What the commands of one session of an agent have to have in common to share loopback, /tmp and /dev/shm, as text: all but
 * what a command line says of one command. The id comes from the agent, by way of its hook: no command gets at a server.
 */
function sharedOf(options: SandboxOptions, resolved: ResolvedPolicy, agents: AgentCommands): Shared {
  const { timeout, tool, gate, ...same } = options;
  const { workspace, workspaceAsNamed, home, networkRules } = resolved;
  const sharing = (kept: SandboxOptions, ...others: readonly unknown[]) => {
    const layers = resolved.layers.map((layer) => (layer.name === 'caller' ? callerLayer(kept) : layer));
    return JSON.stringify([kept, layers, workspace, identityOf(workspace), ...others, home, networkRules]);
  };
  const place = sharing(sharedOptions(same));
  // A session that a caller opened itself has its own life, which is not known here.
  if (typeof options.session !== 'string') return { machine: undefined, place, session: undefined };
  const ofFirst = { ...same, session: agents.firstOf(options.session) };
  return { machine: sharing(ofFirst, workspaceAsNamed), place, session: options.session };
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

const JUST_NOW_MS = 100;
const isJustChanged = (path: string) =>
  orElse(() => statSync(path).ctimeMs > Date.now() - JUST_NOW_MS, false);

/** Which file it is, and when it was changed last. */
function stampOf(path: string): string {
  try {
    const { dev, ino, size, mode, ctimeNs } = statSync(path, { bigint: true });
    return [dev, ino, size, mode, ctimeNs].join(':');
  } catch (error) {
    return errnoOf(error) ?? 'unknown';
  }
}
