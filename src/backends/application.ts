import { SandboxError } from '../errors/sandbox-error.ts';
import type { ResolvedStage, ResolvedSteps, StepRedirect } from '../model/command-line.ts';
import { programBesideAddon } from '../native/load.ts';
import { assertNever } from '../util/assert-never.ts';
import type { Backend } from './backend.ts';
import { confinementSpec } from './confinement-spec.ts';

const STEPS = 'sandbox-run-steps';

/**
 * No shell: programs that are on a list, with arguments that are understood and paths that lead into the workspace. What is
 * started is a program of our own, which runs a list of argument vectors and opens the files of redirects beneath the
 * workspace. Nothing holds what runs, except that seccomp is used where the kernel has it.
 */
export const application: Backend = {
  id: 'application',
  summary: 'no shell, only words and paths that are understood; nothing holds what runs',
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
  steps: ({ workspace }, steps) => {
    const program = programBesideAddon(STEPS);
    return { program, argv: [program, workspace, ...encodeSteps(steps)] };
  },
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
