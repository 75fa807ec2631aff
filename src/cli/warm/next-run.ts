import { statSync } from 'node:fs';
import { errnoOf } from '../../base/errno-of.ts';
import { orElse } from '../../base/or-else.ts';
import type { SandboxOptions } from '../../model/index.ts';
import { type HostFindings, policyFiles, type ResolvedPolicy, trustDirectory } from '../../run/index.ts';
import type { Surroundings } from '../../workspace/index.ts';

/** Milliseconds within which an agent starts a command after its hook, unless it asks its user first. */
const LASTS_MS = 1_000;
/** Milliseconds for which a changed file may be changed again without a new timestamp: file system clocks are coarse. */
const JUST_NOW_MS = 100;

/**
 * Saves work for a command whose hook has just been answered: what the hook found on the host, and the resolved policy. Each is used
 * at most once, by a command that follows within `LASTS_MS`.
 */
export class NextRun {
  #findings: { readonly session: string; readonly host: HostFindings; readonly at: number } | undefined;
  #ahead:
    | {
        readonly question: string;
        readonly files: readonly { readonly path: string; readonly was: string }[];
        readonly resolved: Promise<ResolvedPolicy>;
        readonly at: number;
      }
    | undefined;

  /** Keeps what a decision for an agent session has found on the host. */
  foundBy({ session }: SandboxOptions, host: HostFindings): void {
    if (typeof session === 'string') this.#findings = { session, host, at: performance.now() };
  }

  /** Takes what the last decision found on the host; `undefined`: it was for another session or is too old. */
  takeFindings({ session }: SandboxOptions): HostFindings | undefined {
    const findings = this.#findings;
    if (findings === undefined || findings.session !== session) return undefined;
    this.#findings = undefined;
    return performance.now() - findings.at < LASTS_MS ? findings.host : undefined;
  }

  /** Resolves the policy of an expected command, unless one is kept already or a file that it depends on has just changed. */
  async lookAhead(
    options: SandboxOptions,
    around: Surroundings,
    resolve: () => Promise<ResolvedPolicy>,
  ): Promise<void> {
    const { workspace } = options;
    if (typeof workspace !== 'string' || this.#ahead !== undefined) return;
    const paths = [...policyFiles(options, workspace), trustDirectory()];
    const files = paths.map((path) => ({ path, was: stampOf(path) }));
    if (files.some(({ path }) => isJustChanged(path))) return;
    const resolved = resolve();
    const ahead = { question: questionOf(options, around), files, resolved, at: performance.now() };
    this.#ahead = ahead;
    setTimeout(() => {
      if (this.#ahead === ahead) this.#ahead = undefined;
    }, LASTS_MS).unref();
    await resolved;
  }

  /** Takes the policy of `lookAhead`; `undefined`: options or variables differ, a file has changed, or the policy is too old. */
  async takePolicy(options: SandboxOptions, around: Surroundings): Promise<ResolvedPolicy | undefined> {
    const ahead = this.#ahead;
    if (ahead === undefined || ahead.question !== questionOf(options, around)) return undefined;
    this.#ahead = undefined;
    const resolved = await ahead.resolved.catch(() => undefined);
    const isSoon = performance.now() - ahead.at < LASTS_MS;
    const isSame = ahead.files.every(({ path, was }) => was === stampOf(path));
    return isSoon && isSame ? resolved : undefined;
  }
}

/** Variables that a shell or an agent changes for each process that it starts. No policy or setting depends on them. */
const OF_ITS_SHELL = /^(?:_|PWD|OLDPWD|SHLVL|GIT_EDITOR|TRACEPARENT|CLAUDE\w*)$/;

/** Everything in a call that its policy depends on, as text. */
const questionOf = ({ gate, ...options }: SandboxOptions, { env }: Surroundings): string =>
  JSON.stringify([
    options,
    Object.keys(gate ?? {}),
    Object.entries(env)
      .filter(([name]) => !OF_ITS_SHELL.test(name))
      .sort(([one], [two]) => (one < two ? -1 : 1)),
  ]);

const isJustChanged = (path: string) =>
  orElse(() => statSync(path).ctimeMs > Date.now() - JUST_NOW_MS, false);

/** The identity and last change of a file, as text to be compared. */
export function stampOf(path: string): string {
  try {
    const { dev, ino, size, mode, ctimeNs } = statSync(path, { bigint: true });
    return [dev, ino, size, mode, ctimeNs].join(':');
  } catch (error) {
    return errnoOf(error) ?? 'unknown';
  }
}
