import type { Backend, StartedProgram } from '../../backends/backend.ts';
import type { ProgramFinder } from '../../decide/program-finder.ts';
import type { Command } from '../../model/command.ts';
import type { LaunchPlan } from '../../model/launch-plan.ts';
import type { ResolvedStage, Stage, Steps } from '../../model/steps.ts';
import { assertNever } from '../../util/assert-never.ts';

/** What is started for a command in place of a shell, or why nothing is. */
type ResolvedLine =
  | ({ readonly ok: true } & Pick<StartedProgram, 'program' | 'argv'>)
  | { readonly ok: false; readonly message: string };

/** Resolves commands for a backend that runs no shell. */
export type StepsResolver = (command: Command, searchPath: string, cwd: string) => ResolvedLine;

/** `start`: of a backend that runs no shell. */
export async function createStepsResolver(
  start: NonNullable<Backend['steps']>,
  plan: LaunchPlan,
  find: ProgramFinder,
): Promise<StepsResolver> {
  const { stepsOf } = await import('../../decide/judgement.ts');
  return (command, searchPath, cwd) => {
    const read = typeof command === 'string' ? stepsOf(command) : oneStep(command);
    if (!read.ok) return { ok: false, message: read.problem.message };
    // Where a relative program name leads depends on the directory, which a `cd` may change: such names are refused.
    const resolveStage = (stage: Stage): ResolvedStage => ({
      ...stage,
      program: programOf(stage, typeof command === 'string'),
    });
    const programOf = ({ words }: Stage, inShell: boolean): ResolvedStage['program'] => {
      const [name, target] = words;
      if (name === undefined) return undefined;
      if (inShell && name === 'cd' && target !== undefined) return { kind: 'cd', directory: target };
      const found = find(name, searchPath, cwd);
      switch (found.kind) {
        case 'found':
          return { kind: 'found', path: found.path };
        case 'not-found':
          return { kind: 'missing', status: 127 };
        case 'not-executable':
          return { kind: 'missing', status: 126 };
        default:
          return assertNever(found);
      }
    };
    const pipelines = read.steps.pipelines.map((pipeline) => ({
      ...pipeline,
      stages: pipeline.stages.map(resolveStage),
    }));
    return { ok: true, ...start(plan, { pipelines }) };
  };
}

function oneStep(words: readonly string[]): { readonly ok: true; readonly steps: Steps } {
  return { ok: true, steps: { pipelines: [{ joinedBy: 'then', stages: [{ words, redirects: [] }] }] } };
}
