import { createHash } from 'node:crypto';
import { type BigIntStats, statSync } from 'node:fs';
import { fingerprint } from '../gate/approvals/fingerprint.ts';
import type { ApprovalRequest } from '../model/approval.ts';
import type { Decision } from '../model/decision.ts';
import type { Command } from '../model/execution-request.ts';
import type { LaunchPlan } from '../model/launch-plan.ts';
import type { Policy } from '../model/policy.ts';
import type { CommandEffects } from '../policy/effects.ts';
import { packageVersion } from '../version.ts';

/** What does not change from command to command of one sandbox. */
export interface ApprovalSurroundings {
  readonly policy: Policy;
  /** `undefined`: nothing is enforced by us, the command runs somewhere else. */
  readonly plan: LaunchPlan | undefined;
  readonly principal: string;
  readonly session: string | undefined;
}

/** What is asked about. */
export interface AskedCommand {
  readonly command: Command;
  /** Canonical. */
  readonly cwd: string;
  readonly decision: Decision;
  readonly effects: CommandEffects;
  /** The command's whole environment; HOME and TMPDIR may be missing. */
  readonly variables: Readonly<Record<string, string | undefined>>;
}

/** Makes requests for one sandbox. */
export type ApprovalRequestMaker = (asked: AskedCommand) => ApprovalRequest;

/** Says nothing about what a command does: how the terminal looks, which language people speak. */
const COSMETIC = /^(?:TERM|COLORTERM|NO_COLOR|LANG|LC_\w+|TZ|USER|SHELL|CI)$/;

/**
 * Everything that a person has to see, and the fingerprint over everything that matters. Made again right before the
 * launch, it has the same fingerprint only if nothing of it has changed.
 */
export function approvalRequestMaker(surroundings: ApprovalSurroundings): ApprovalRequestMaker {
  const { policy, plan, principal, session } = surroundings;
  const confinement =
    plan === undefined ? ['nothing here: it runs somewhere else'] : confinementOf(policy, plan);
  const digest = (value: unknown) => createHash('sha256').update(JSON.stringify(value)).digest('hex');
  const planDigest = digest(plan ?? null);
  const policyVersion = digest([packageVersion, policy]);
  return ({ command, cwd, decision, effects, variables }) => {
    const environment = Object.entries(variables)
      .filter(([name]) => !COSMETIC.test(name))
      .map(([name, value]) => (value === undefined ? `-${name}` : `${name}=${value}`))
      .sort();
    const files = effects.parts.flatMap(({ executable, files }) =>
      executable === undefined ? files : [executable, ...files],
    );
    return {
      fingerprint: fingerprint({
        command,
        cwd,
        executables: [...new Set(files)].map((path) => ({ name: path, path, identity: identityOf(path) })),
        environment,
        profile: policy.profile,
        confinement: [planDigest],
        policyVersion,
      }),
      principal,
      session,
      command,
      cwd,
      decision,
      parts: effects.parts.map(({ source, executable, remarks }) => ({ source, executable, remarks })),
      environment,
      profile: policy.profile,
      confinement,
    };
  };
}

/**
 * Which file a path names, and in which state: the time of its last change of any kind cannot be set by a program
 * (utimensat(2) changes it to now), so new content is noticed without reading it.
 */
function identityOf(path: string): string {
  let info: BigIntStats | undefined;
  try {
    info = statSync(path, { bigint: true, throwIfNoEntry: false });
  } catch {
    // As one that is not there: then it cannot be run either.
  }
  if (info === undefined) return 'missing';
  const { dev, ino, mode, uid, size, mtimeNs, ctimeNs } = info;
  return [dev, ino, mode, uid, size, mtimeNs, ctimeNs].join(':');
}

/** What a command is kept from, for whoever decides about it. */
function confinementOf(policy: Policy, plan: LaunchPlan): readonly string[] {
  const writable = plan.paths.filter(({ access }) => access === 'write').map(({ path }) => path);
  const missing = plan.report.controls.filter(({ state }) => state === 'unsupported' || state === 'degraded');
  return [
    `it can write ${writable.join(', ') || 'nothing'}${policy.filesystem.tmp === 'private' ? ' and a temporary directory of its own' : ''}`,
    policy.network.mode === 'off' ? 'it has no network' : 'it can use the network of this machine',
    policy.filesystem.home === 'private'
      ? 'the home directory is out of its reach'
      : 'it can write the home directory',
    ...missing.map(
      ({ id, state, reason }) =>
        `${state === 'degraded' ? 'only in part' : 'not at all'} enforced here: ${id} (${reason})`,
    ),
  ];
}
