import { statSync } from 'node:fs';
import { errnoOf } from '../../base/errno-of.ts';
import { orElse } from '../../base/or-else.ts';
import type { SandboxOptions } from '../../model/index.ts';
import { type HostFindings, policyFiles, type ResolvedPolicy, trustDirectory } from '../../run/index.ts';
import type { Surroundings } from '../../workspace/index.ts';

/** An agent runs what a hook has answered within so long, unless it asks its user first. */
const LASTS_MS = 1_000;
/** A file that was changed within so long may be changed once more before the clock of its file system goes on. */
const JUST_NOW_MS = 100;

/**
 * What is known of the run that comes next, because a hook has just decided about it: what was found on the host, and its
 * resolved policy. Each is good for one run that comes at once.
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

  /** Notes what a decision for the session of an agent finds on the host. */
  foundBy({ session }: SandboxOptions, host: HostFindings): void {
    if (typeof session === 'string') this.#findings = { session, host, at: performance.now() };
  }

  /** Takes what the last decision found on the host, if that was for the same session. */
  takeFindings({ session }: SandboxOptions): HostFindings | undefined {
    const findings = this.#findings;
    if (findings === undefined || findings.session !== session) return undefined;
    this.#findings = undefined;
    return performance.now() - findings.at < LASTS_MS ? findings.host : undefined;
  }

  /** Resolves the policy of a run before it comes, unless one is resolved already or what it is read from has just changed. */
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

  /** Takes the policy of `lookAhead`, if it is that of this run and nothing that it was read from has changed. */
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

const isJustChanged = (path: string) =>
  orElse(() => statSync(path).ctimeMs > Date.now() - JUST_NOW_MS, false);

/** Which file it is, and when it was changed last; text to be compared. */
export function stampOf(path: string): string {
  try {
    const { dev, ino, size, mode, ctimeNs } = statSync(path, { bigint: true });
    return [dev, ino, size, mode, ctimeNs].join(':');
  } catch (error) {
    return errnoOf(error) ?? 'unknown';
  }
}
