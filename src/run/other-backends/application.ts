import { assertNever } from '../../base/assert-never.ts';
import { SandboxError } from '../../base/errors/sandbox-error.ts';
import type { Backend } from '../../confine/backends/backend.ts';
import { confinementSpec } from '../../confine/backends/confinement-spec.ts';
import { programBesideAddon } from '../../confine/native/load.ts';
import { named, notTold } from '../../confine/plan/controls-in-words.ts';
import type { ControlId } from '../../confine/plan/enforcement-report.ts';
import type { LaunchPlan } from '../../confine/plan/launch-plan.ts';
import { type Judge, WITHOUT_KERNEL } from '../../confine/plan/mechanisms.ts';
import type { ResolvedStage, ResolvedSteps, StepRedirect } from '../../model/index.ts';

const STEPS = 'sandbox-run-steps';

const CHECKED = 'checked before a command runs, and nothing holds it while it runs';

/** What the report says of each control if a command is held only by judging its text. */
const APPLICATION_JUDGES: Partial<Readonly<Record<ControlId, Judge>>> = {
  filesystem: () => [
    'unsupported',
    `programs, options and paths are ${CHECKED}: what others put in the way of a path meanwhile is followed (not by redirects, which follow no links)`,
  ],
  'filesystem-view': () => ['unsupported', 'the whole file system of the host is there'],
  rename: () => ['unsupported', `paths are ${CHECKED}`],
  truncate: () => ['unsupported', `paths are ${CHECKED}`],
  metadata: () => ['unsupported', `paths are ${CHECKED}`],
  'protected-paths': () => [
    'unsupported',
    `.git/hooks and its like are ${CHECKED}; they are put back when it ends`,
  ],
  'hidden-paths': (_used, _policy, _features, { hidden }) =>
    hidden === undefined || hidden.paths.length === 0
      ? ['enforced', 'nothing that matches is there']
      : ['unsupported', `${named(hidden.paths)} can be read by a program that finds it`],
  'private-tmp': () => [
    'degraded',
    'TMPDIR is private; that /tmp and /dev/shm are left alone is only checked',
  ],
  devices: () => ['unsupported', `paths are ${CHECKED}`],
  network: (used) =>
    used.seccomp
      ? [
          'degraded',
          'seccomp refuses sockets, but files are not held, and so not what may be reached through them',
        ]
      : ['unsupported', `programs are ${CHECKED}: none that uses the network is let through`],
  'unix-sockets': (used) =>
    used.seccomp
      ? ['enforced', 'socket(AF_UNIX) is refused altogether; socketpair works']
      : ['unsupported', `programs are ${CHECKED}`],
  denials: () => notTold('what is refused is said before a command runs, and nobody looks while it runs'),
};

/**
 * Runs no shell: only listed programs, with arguments that are understood and paths that lead into the workspace. Our own
 * program runs the list of argument vectors, and opens the files of redirects beneath the workspace. Running programs are not
 * confined, except by seccomp where the kernel has it.
 */
export const application: Backend = {
  id: 'application',
  summary: 'no shell, only words and paths that are understood; nothing holds what runs',
  // Defence in depth: seccomp is used where the kernel has it, although the claim of this backend does not depend on it.
  mechanisms: ({ network: { mode, unixSockets } }) => ({
    ...{ ...WITHOUT_KERNEL, shutsInside: false, ownIpc: false, networkNamespace: false },
    inetSockets: mode === 'open' ? 'open' : 'refused',
    unixSockets: unixSockets === 'allowed' ? 'allowed' : 'refused',
    socketsOfOthers: unixSockets === 'allowed',
  }),
  judges: APPLICATION_JUDGES,
  givesUp: ['filesystem', 'network'],
  noCache: 'the backend application runs nothing that has one',
  probe(features) {
    try {
      programBesideAddon(STEPS);
      return { usable: true, features };
    } catch (error) {
      if (!(error instanceof SandboxError)) throw error;
      return { usable: false, reason: error.message };
    }
  },
  confinement: confinementSpec,
};

/** How a list of programs is started in place of a shell. */
export type StartSteps = (
  plan: LaunchPlan,
  steps: ResolvedSteps,
) => { readonly program: string; readonly argv: readonly [string, ...string[]] };

/**
 * With a backend that starts every command as a list of programs: how it does that. `undefined`: a shell string runs under bash.
 * Such a backend relies on the decision: commands are always judged.
 */
export const stepsOf = ({ id }: Pick<Backend, 'id'>): StartSteps | undefined =>
  id === application.id ? startSteps : undefined;

const startSteps: StartSteps = ({ workspace }, steps) => {
  const program = programBesideAddon(STEPS);
  return { program, argv: [program, workspace, ...encodeSteps(steps)] };
};

/**
 * Steps as the arguments of `sandbox-run-steps`: one token each, counts before what they count, so that nothing is quoted
 * and nothing is split. native/steps/step_list.h has the grammar.
 */
function encodeSteps({ pipelines }: ResolvedSteps): readonly string[] {
  return [
    '1',
    String(pipelines.length),
    ...pipelines.flatMap(({ joinedBy, stages }) => [
      joinedBy,
      String(stages.length),
      ...stages.flatMap(encodeStage),
    ]),
  ];
}

function encodeStage({ redirects, words, program }: ResolvedStage): readonly string[] {
  return [String(redirects.length), ...redirects.flatMap(encodeRedirect), ...encodeCommand(words, program)];
}

function encodeCommand(words: readonly string[], program: ResolvedStage['program']): readonly string[] {
  const [name] = words;
  if (name === undefined || program === undefined) return ['nothing'];
  if (program.kind === 'missing') return ['missing', String(program.status), name];
  if (program.kind === 'cd') return ['cd', program.directory];
  return ['run', program.path, String(words.length), ...words];
}

function encodeRedirect(redirect: StepRedirect): readonly string[] {
  const { kind } = redirect;
  const fd = String(redirect.fd);
  switch (kind) {
    case 'read':
    case 'write':
    case 'append':
    case 'update':
      return [kind, fd, redirect.path];
    case 'copy':
      return [kind, fd, String(redirect.from)];
    case 'close':
      return [kind, fd];
    case 'text':
      return [kind, fd, redirect.text];
    default:
      return assertNever(kind);
  }
}
